// Package scheduler is the workflow that grants slots: the one place where it is decided which node goes next.
package scheduler

import (
	"go.temporal.io/sdk/workflow"

	"drydock/activities/cluster"
	"drydock/api"
	"drydock/rules/schedule"
)

// scheduler is one run of Scheduler.
type scheduler struct {
	*loop
	cluster   string
	controls  *controls
	ledger    *ledger
	decisions *decisions
	observer  *observer
	watcher   *watcher
	reclaimer *reclaimer
	outbox    *outbox
	// rebuilt says that the holders are known. previousRun is the scheduler run whose state to take over.
	rebuilt     bool
	previousRun string
}

// Scheduler grants slots: it decides which node may go next, and keeps account of who holds one. There is one per
// cluster, under SchedulerID. It has no side effects of its own but signals to maintenances. Packed are the pending
// requests where the run before had many (see pack).
func Scheduler(ctx workflow.Context, state State, packed []byte) error {
	state, err := unpack(state.withDefaults(), packed)
	if err != nil {
		return err
	}
	s := newScheduler(ctx, state)
	if err := s.listen(); err != nil {
		return err
	}
	if !s.rebuilt {
		if err := (rebuilding{s}).run(); err != nil {
			return err
		}
	}
	for _, h := range s.ledger.holders {
		s.watcher.assumeMarked(h.RequestID)
	}
	return s.run()
}

// newScheduler puts the parts together.
func newScheduler(ctx workflow.Context, state State) *scheduler {
	l := &loop{ctx: ctx, dirty: true, continueAfter: state.ContinueAfter}
	cluster := api.ClusterOf(workflow.GetInfo(ctx).TaskQueueName)
	log := &decisions{loop: l, entries: state.Decisions}
	s := &scheduler{
		loop: l, cluster: cluster, decisions: log, rebuilt: state.Rebuilt, previousRun: state.PreviousRun,
		controls:  &controls{limits: state.Limits, revision: state.Revision, freezes: state.Freezes},
		ledger:    newLedger(state),
		observer:  &observer{loop: l, decisions: log, latest: state.Observed},
		watcher:   newWatcher(l, cluster, log),
		reclaimer: &reclaimer{loop: l, cluster: cluster, decisions: log, onOrphan: state.OnOrphan, underWay: map[string]bool{}},
		outbox:    &outbox{loop: l, cluster: cluster},
	}
	s.watcher.holds, s.watcher.noticed, s.watcher.failed = s.ledger.holds, s.noticed, s.observer.retryLater
	s.reclaimer.holds, s.reclaimer.free = s.ledger.holds, s.free
	s.outbox.gone = func(h api.Holder) { s.reclaimer.reclaim(h, "it ended before it could be told") }
	return s
}

// state is what the next run begins with.
func (s *scheduler) state() State {
	return State{
		Limits: s.controls.limits, Revision: s.controls.revision, Freezes: s.controls.freezes,
		Holders: s.ledger.holders, Pending: s.ledger.pending, Told: s.ledger.told, Seen: s.ledger.seen, Released: s.ledger.released,
		Observed: s.observer.latest, Decisions: s.decisions.entries, OnOrphan: s.reclaimer.onOrphan,
		Rebuilt: s.rebuilt, PreviousRun: s.previousRun, ContinueAfter: s.continueAfter,
	}
}

// run decides whenever something happened, until the history is long enough.
func (s *scheduler) run() error {
	for {
		dirty, err := s.await()
		if err != nil {
			return err
		}
		if s.leaving() {
			s.watcher.stop()
			if s.idle() {
				return s.continueAsNew()
			}
			continue
		}
		if !dirty {
			s.tell()
			continue
		}
		s.ledger.forgetReleased(s.now())
		s.decide()
		s.observe()
		s.keepWatch()
		s.doubtUnwatched()
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
	if reasons := s.controls.holdReasons(); len(reasons) > 0 {
		s.outbox.toHolder(holder, api.SignalHold, api.FreezeNotice{Reasons: reasons})
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
	// A holder whose slot is being taken back is known to have ended.
	holders := s.reclaimer.except(s.ledger.holders)
	s.watcher.keep(s.watcher.wanted(s.controls.limits.Groups, digest, holders))
}

// doubtUnwatched keeps the next request from being granted on what was observed while nobody looked any more for what
// makes it out of date.
func (s *scheduler) doubtUnwatched() {
	seen := s.observer.latest
	if len(s.ledger.pending) == 0 && seen != nil && !s.watcher.comparesWith(seen.Digest) {
		s.observer.doubt()
	}
}

// noticed acts upon what the watch reports.
func (s *scheduler) noticed(report cluster.WatchReport) {
	if report.Stale {
		s.observer.doubt()
	}
	for _, change := range report.Changes {
		if h, ok := s.ledger.holder(change.RequestID); ok {
			s.watcher.rest(change)
			s.outbox.toHolder(h, api.SignalNodeChanged, change)
		}
	}
	for _, ended := range report.Ended {
		if h, ok := s.ledger.holder(ended.RequestID); ok {
			s.reclaimer.reclaim(h, "its workflow is "+ended.Status)
		}
	}
}

// free takes a slot back, or a request that waits for one.
func (s *scheduler) free(requestID string) {
	s.ledger.free(requestID, s.now())
	s.watcher.forget(requestID)
}
