// Package scheduler is the workflow that grants slots: the one place where it is decided which node goes next.
package scheduler

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/cluster"
	"drydock/activities/execution"
	"drydock/api"
	"drydock/rules/schedule"
	"drydock/workflows/call"
	"drydock/workflows/handover"
	"drydock/workflows/reset"
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
	hours     *hours
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
	// tellsLater: there is a timer for what is told later.
	tellsLater bool
	// gangs, remediations and kinds tell whether requests may be members of a gang, for a remediation, or of others than maintenances,
	// together whether many grants are told by activities.
	gangs, remediations, kinds, together, restored since
	// asleep are the times in which nothing happened, restoredAt is when a restored Temporal was found last.
	asleep     asleep
	restoredAt time.Time
	// turns are the updates that wait until the holders are known.
	turns turns
	// unknown is what a newer release handed over.
	unknown handover.Unknown
}

// Scheduler grants slots: it decides which node may go next, and keeps account of who holds one. There is one per
// cluster, under SchedulerID. It has no side effects of its own but signals to those who ask. Packed are the pending
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
		knowledge: knowledge{
			rebuilt: state.Rebuilt, previousRun: state.PreviousRun, gangs: since{change: changeGangs},
			remediations: since{change: changeRemediations}, kinds: since{change: changeKinds}, together: since{change: changeTogether},
			restored: since{change: changeRestored}, restoredAt: state.RestoredAt,
			turns: newTurns(ctx), unknown: state.unknown,
		},
		controls: &controls{limits: state.Limits, revision: state.Revision, freezes: state.Freezes, freezeRevision: state.FreezeRevision},
		ledger:   newLedger(state),
		hours:    &hours{loop: l, decisions: log, since: since{change: changeWindows}},
	}
	s.hours.goOn(state.Horizon, state.WindowsOf)
	s.strays = &strays{loop: l, decisions: log, ours: state.Strays, rebuilder: s}
	s.observer = &observer{loop: l, decisions: log, latest: state.Observed, strayMarks: s}
	s.watcher = &watcher{
		loop: l, cluster: cluster, decisions: log, ledger: s.ledger, observer: s.observer, reports: s,
		resting: map[string]bool{}, rested: map[string]time.Duration{}, marked: map[string]bool{},
	}
	s.reclaimer = &reclaimer{
		commands: commands, cluster: cluster, decisions: log, ledger: s.ledger, slots: s, onOrphan: state.OnOrphan,
		reclaiming: map[string]bool{}, failures: map[string]int{},
	}
	s.outbox = &outbox{commands: commands, cluster: cluster, ledger: s.ledger, reclaimer: s.reclaimer}
	s.returns = &returns{
		commands: commands, cluster: cluster, decisions: log, ledger: s.ledger, reclaimer: s.reclaimer, claims: s,
		asked: map[string]time.Time{}, asking: map[string]bool{},
	}
	s.intake = &intake{loop: l, cluster: cluster, decisions: log, ledger: s.ledger, outbox: s.outbox, returns: s.returns, admission: s}
	s.returns.intake = s.intake
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

// isOpen tells whether requests and releases take effect: it is known who holds a slot.
func (s *scheduler) isOpen() bool { return s.rebuilt }

// reconcile takes what a holder says of its slot.
func (s *scheduler) reconcile(h api.Holder, wanted api.SlotWanted) {
	rebuilding{s, map[string]bool{}}.addRunning(execution.Run{WorkflowID: h.WorkflowID(s.cluster)}, wanted)
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
		unknown: s.unknown, RestoredAt: s.restoredAt,
		Limits: s.controls.limits, Revision: s.controls.revision, Freezes: s.controls.freezes,
		Holders: s.ledger.holders, Pending: s.ledger.pending, Told: s.ledger.told, Seen: s.ledger.seen, Released: s.ledger.released,
		Observed: s.observer.latest, Decisions: s.decisions.entries, OnOrphan: s.reclaimer.onOrphan,
		Rebuilt: s.rebuilt, PreviousRun: s.previousRun, ContinueAfter: s.continueAfter,
		FreezeRevision: s.controls.freezeRevision, Untold: s.outbox.untold, Strays: s.strays.ours, GivenBack: s.returns.requests(),
		Horizon: s.hours.horizon, WindowsOf: s.hours.wanted,
	}
}

// run decides whenever something happened, until the history is long enough.
func (s *scheduler) run() error {
	for {
		s.asleep.turn(s.now())
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

// decisionInput is all that a decision depends on.
func (s *scheduler) decisionInput() schedule.Input {
	in := schedule.Input{Limits: s.controls.limits.Limits, Freezes: s.controls.freezes, Revision: s.controls.revision}
	if s.observer.latest != nil {
		in.Observed = &s.observer.latest.Observation
	}
	in.Pending, in.Granted = s.ledger.candidates()
	in.Seen = s.ledger.seen
	return in
}

// decide grants what the limits allow, and tells the others why they wait.
func (s *scheduler) decide() {
	if len(s.ledger.pending) == 0 {
		s.hours.wakeAt(time.Time{})
		return
	}
	requests := s.ledger.pendingByID()
	decision := schedule.Decide(s.hours.add(s.gangs.knownIn(s.ctx, s.decisionInput())))
	s.hours.follow(decision)
	s.grant(decision.Grants, requests)
	for _, p := range s.ledger.keepWaiting(decision.Refused, requests) {
		seen := s.ledger.seen[p.ID]
		s.ledger.forget(p.ID)
		s.outbox.refuse(p, seen)
	}
	s.tell()
}

// grant gives requests their slots and tells their maintenances.
func (s *scheduler) grant(granted []schedule.Request, requests map[string]api.PendingRequest) {
	holders := make([]api.Holder, 0, len(granted))
	for _, g := range granted {
		h := s.ledger.grant(requests[g.ID], s.now())
		if !h.IsMarked() {
			s.outbox.granted(h)
			continue
		}
		holders = append(holders, h)
	}
	notice := s.controls.notice()
	if len(notice.Reasons) == 0 && len(holders) >= togetherLeast && s.together.known(s.ctx) {
		s.outbox.grantedTogether(holders)
		return
	}
	for _, h := range holders {
		s.outbox.granted(h)
		if len(notice.Reasons) > 0 {
			s.outbox.hold(h, notice)
		}
	}
}

// changeTogether: many grants are told by activities. Before, each was a signal.
const changeTogether = "grants-together"

// tell lets pending maintenances know why they wait, a few at a time.
func (s *scheduler) tell() {
	untold, later := s.ledger.takeUntold(s.now(), tellAtOnce-s.outbox.telling)
	for _, p := range untold {
		s.outbox.tell(p)
	}
	if later && !s.tellsLater && workflow.GetVersion(s.ctx, changeTellsLater, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		s.tellsLater = true
		timer := workflow.NewTimerWithOptions(s.ctx, tellAgain, workflow.TimerOptions{Summary: "tell again why requests wait"})
		s.onceReady(timer, func(workflow.Future) { s.tellsLater, s.woken = false, true })
	}
}

// changeTellsLater: a reason that changed too soon is told later. Before, it was told when anything else happened.
const changeTellsLater = "tells-reasons-later"

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

// keepWatch has a watch running while requests wait for the cluster or slots are held, and none otherwise.
func (s *scheduler) keepWatch() {
	waits := s.ledger.waitsForCluster()
	if len(s.ledger.holders) == 0 && !waits {
		s.watcher.stop()
		return
	}
	if s.watcher.running == nil && s.observer.busy {
		// What is observed may be granted at once, and the watch then begins with the new holders.
		return
	}
	digest := ""
	if waits {
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
	if !s.ledger.waitsForCluster() && seen != nil && !s.watcher.comparesWith(seen.Digest) {
		s.observer.doubt()
	}
}

// free takes a slot back, or a request that waits for one.
func (s *scheduler) free(requestID string) {
	if h, held := s.ledger.holder(requestID); held && h.Kind == schedule.KindProfile {
		freeLater(s, h)
		return
	}
	s.ledger.free(requestID, s.now())
	s.watcher.forget(requestID)
}
