package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/execution"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/reset"
	"go.temporal.io/sdk/workflow"
	"time"
)

// scheduler is one run of Scheduler.
type scheduler struct {
	*loop
	cluster   string
	controls  *controls
	ledger    *ledger
	decisions *decisions
	intake    *intake
	commands  *commands
	outbox    *outbox
	observer  *observer
	watcher   *watcher
	reclaimer *reclaimer
	returns   *returns
	strays    *strays
	knowledge
}

// knowledge is what a scheduler knows of its own knowledge.
type knowledge struct {
	// rebuilt says that the holders are known; givenUp that this run ends before they are.
	rebuilt, givenUp bool
	// doubts counts how often that was doubted.
	doubts int
	// previousRun is the scheduler run whose state to take over.
	previousRun string
}

// Scheduler grants slots: it decides which node may go next, and keeps account of who holds one. There is one per
// cluster, under SchedulerID. It has no side effects of its own but signals to maintenances. Packed are the pending
// requests where the run before had many (see pack).
func Scheduler(ctx workflow.Context, given State, packed []byte) error {
	state, refused, err := accepted(ctx, given, packed)
	if err != nil {
		return err
	}
	s := newScheduler(ctx, state)
	if refused != nil {
		s.decisions.record("", "ignored a part of what it was started with", refused.Error())
	}
	if err := s.listen(); err != nil {
		return err
	}
	return reset.Run(ctx, s.wasReset, func(ctx workflow.Context) error {
		s.ctx = ctx
		s.takeUp(state)
		return s.run()
	})
}

// newScheduler puts the parts together.
func newScheduler(ctx workflow.Context, state State) *scheduler {
	l := &loop{ctx: ctx, dirty: true, continueAfter: state.ContinueAfter}
	cluster := api.ClusterOf(workflow.GetInfo(ctx).TaskQueueName)
	log := &decisions{loop: l, entries: state.Decisions}
	commands := newCommands(l)
	s := &scheduler{
		loop: l, cluster: cluster, decisions: log, commands: commands,
		knowledge: knowledge{rebuilt: state.Rebuilt, previousRun: state.PreviousRun},
		controls:  &controls{limits: state.Limits, revision: state.Revision, freezes: state.Freezes, freezeRevision: state.FreezeRevision},
		ledger:    newLedger(state),
		observer:  &observer{loop: l, decisions: log, latest: state.Observed},
		watcher:   newWatcher(l, cluster, log),
		reclaimer: newReclaimer(commands, cluster, log, state.OnOrphan),
		outbox:    &outbox{commands: commands, cluster: cluster},
		strays:    &strays{loop: l, decisions: log, ours: state.Strays},
	}
	s.returns = &returns{
		commands: commands, cluster: cluster, decisions: log, ledger: s.ledger,
		asked: map[string]time.Time{}, asking: map[string]bool{}, free: s.free, heard: s.heard, reclaim: s.reclaimer.reclaim,
	}
	s.intake = &intake{loop: l, cluster: cluster, decisions: log, ledger: s.ledger, outbox: s.outbox, free: s.free, returns: s.returns}
	s.returns.request = s.intake.request
	s.intake.open, s.intake.overQuota = func() bool { return s.rebuilt }, s.overQuota
	news := news{s}
	s.watcher.holds, s.watcher.noticed, s.watcher.failed = s.ledger.holds, news.noticed, s.observer.retryLater
	s.reclaimer.holds, s.reclaimer.free, s.reclaimer.orphaned = s.ledger.holds, s.free, news.orphaned
	s.outbox.gone = func(h api.Holder) { s.reclaimer.reclaim(h, "it ended before it could be told") }
	s.outbox.askAgain, s.outbox.tellAgain = s.ledger.askAgain, s.ledger.tellOnceMore
	s.observer.seen = news.saw
	s.strays.lookedFor = func() { s.doubtHolders("time has passed since a mark was found of which nothing is known") }
	return s
}

// takeUp goes on with what the run before left undone.
func (s *scheduler) takeUp(state State) {
	s.assumeMarked()
	for _, id := range state.GivenBack {
		s.returns.say(id, nil)
	}
	for _, id := range state.Untold {
		if h, ok := s.ledger.holder(id); ok {
			s.outbox.granted(h)
			s.outbox.hold(h, s.controls.notice())
		}
	}
	s.strays.lookLater()
}

// heard takes what a maintenance says of its slot.
func (s *scheduler) heard(h api.Holder, wanted api.SlotWanted) {
	rebuilding{s, map[string]bool{}}.addRunning(execution.Run{WorkflowID: api.MaintenanceID(s.cluster, h.Node, h.Requestor)}, wanted)
}

func (s *scheduler) assumeMarked() {
	for _, h := range s.ledger.holders {
		s.watcher.assumeMarked(h.RequestID)
	}
}

// wasReset has everything found out anew that is not certain any more: this run goes on from the past, and what was
// granted and given back since is not in its history.
func (s *scheduler) wasReset(ctx workflow.Context) (runID string, err error) {
	s.doubtHolders("this run was reset: what was granted and given back since is not in its history")
	s.observer.doubt()
	s.inFlight++
	defer func() { s.inFlight-- }()
	err = workflow.ExecuteActivity(call.Quick(ctx, "see which run this is"), call.Executions.ThisRun).Get(ctx, &runID)
	s.woken = true
	return runID, err
}

// doubtHolders has it found out anew who holds a slot, before anything else is granted.
func (s *scheduler) doubtHolders(why string) {
	if s.rebuilt {
		s.decisions.record("", "finding out anew who holds a slot", why)
	}
	s.doubts++
	s.rebuilt, s.dirty = false, true
}

// state is what the next run begins with.
func (s *scheduler) state() State {
	return State{
		Limits: s.controls.limits, Revision: s.controls.revision, Freezes: s.controls.freezes,
		Holders: s.ledger.holders, Pending: s.ledger.pending, Told: s.ledger.told, Seen: s.ledger.seen, Released: s.ledger.released,
		Observed: s.observer.latest, Decisions: s.decisions.entries, OnOrphan: s.reclaimer.onOrphan,
		Rebuilt: s.rebuilt, PreviousRun: s.previousRun, ContinueAfter: s.continueAfter,
		FreezeRevision: s.controls.freezeRevision, Untold: s.outbox.untold, Strays: s.strays.ours, GivenBack: s.returns.requests(),
	}
}

// run decides whenever something happened, until the history is long enough.
func (s *scheduler) run() error {
	for {
		if !s.rebuilt && !s.leaving() {
			if err := s.rebuild(); err != nil {
				return err
			}
		}
		dirty, err := s.await()
		if err != nil {
			return err
		}
		if s.leaving() {
			s.watcher.stop()
			s.commands.takeBack()
			s.givenUp = !s.rebuilt
			if s.idle() {
				return s.continueAsNew()
			}
			continue
		}
		if !dirty {
			s.tell()
			continue
		}
		if s.rebuilt {
			if err := s.returns.settle(); err != nil {
				return err
			}
			s.ledger.forgetReleased(s.now())
			s.decide()
			s.observe()
			s.keepWatch()
			s.doubtUnwatched()
		}
	}
}

// rebuild finds out who holds a slot, and goes on trying until it is known or this run has to end.
func (s *scheduler) rebuild() error {
	for {
		err := rebuilding{s, map[string]bool{}}.run()
		if err == nil {
			s.decisions.works(notRebuilt)
			s.assumeMarked()
			s.dirty = true // those who wait have waited for this
			return nil
		}
		if s.ctx.Err() != nil {
			return err
		}
		wait := s.decisions.fails(notRebuilt, err, tryAgainLast)
		workflow.GetLogger(s.ctx).Error("rebuild failed", "again", wait, "error", err)
		_, err = workflow.AwaitWithOptions(s.ctx, workflow.AwaitOptions{
			Timeout: wait, TimerOptions: workflow.TimerOptions{Summary: "find out again who holds a slot"},
		}, s.leaving)
		if err != nil {
			return err
		}
		if s.leaving() {
			s.woken = true
			return nil
		}
	}
}

func (s *scheduler) continueAsNew() error {
	state, packed, err := pack(s.state())
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(s.ctx, api.SchedulerType, state, packed)
}

// decide grants what the limits allow, and tells the others why they wait.
func (s *scheduler) decide() {
	if len(s.ledger.pending) == 0 {
		return
	}
	in := schedule.Input{Limits: s.controls.limits.Limits, Freezes: s.controls.freezes, Revision: s.controls.revision}
	if s.observer.latest != nil {
		in.Observed = &s.observer.latest.Observation
	}
	in.Pending, in.Granted = s.ledger.candidates()
	requests := s.ledger.pendingByID()
	decision := schedule.Decide(in)
	for _, granted := range decision.Grants {
		s.grant(requests[granted.ID])
	}
	for _, p := range s.ledger.keepWaiting(decision.Refused, requests) {
		seen := s.ledger.seen[p.ID]
		s.ledger.forget(p.ID)
		s.outbox.refuse(p, seen)
	}
	s.tell()
}

func (s *scheduler) grant(p api.PendingRequest) {
	holder := s.ledger.grant(p, s.now())
	s.outbox.granted(holder)
	if notice := s.controls.notice(); len(notice.Reasons) > 0 {
		s.outbox.hold(holder, notice)
	}
}

// tell lets pending maintenances know why they wait, a few at a time.
func (s *scheduler) tell() {
	for _, p := range s.ledger.takeUntold(s.now(), tellAtOnce-s.outbox.telling) {
		s.outbox.tell(p)
	}
}

// observe asks for the state of the cluster, where requests wait whose nodes' state is not known.
func (s *scheduler) observe() {
	if s.observer.busy || !s.ledger.waitsUnobserved() {
		return
	}
	all, ours := s.ledger.nodes()
	s.observer.observe(cluster.ObserveInput{
		Groups: s.controls.limits.Groups, Revision: s.controls.revision, Names: all, Ours: ours,
		Cluster: s.cluster, Known: append(s.ledger.marks(), s.strays.known()...),
	})
}

// keepWatch has a watch running while requests wait or slots are held, and none otherwise.
func (s *scheduler) keepWatch() {
	if s.ledger.empty() {
		s.watcher.stop()
		return
	}
	if s.watcher.running == nil && s.observer.busy {
		// What is observed may be granted at once, and the watch then begins with the new holders.
		return
	}
	digest := ""
	if len(s.ledger.pending) > 0 {
		digest = s.observer.digest(s.controls.revision)
	}
	// A holder whose slot is being taken back is known to have ended; its mark is no surprise.
	holders, ending := s.reclaimer.part(s.ledger.holders)
	known := append(append(s.ledger.lately(), s.strays.known()...), ending...)
	want := s.watcher.wanted(s.controls.limits.Groups, digest, holders, known)
	want.IgnoreUnknown = s.strays.full()
	s.watcher.keep(want)
}

// doubtUnwatched keeps the next request from being granted on what was observed while nobody looked any more for what
// makes it out of date.
func (s *scheduler) doubtUnwatched() {
	seen := s.observer.latest
	if len(s.ledger.pending) == 0 && seen != nil && !s.watcher.comparesWith(seen.Digest) {
		s.observer.doubt()
	}
}

// free takes a slot back, or a request that waits for one.
func (s *scheduler) free(requestID string) {
	s.ledger.free(requestID, s.now())
	s.watcher.forget(requestID)
}
