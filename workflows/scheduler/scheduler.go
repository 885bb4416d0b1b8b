// Package scheduler is the workflow that grants slots: the one place where it is decided which node goes next.
package scheduler

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/reset"
)

type scheduler struct {
	*loop
	cluster   string
	controls  *controls
	slots     *slots
	decisions *decisions
	intake    *intake
	commands  *commands
	outbox    *outbox
	observer  *observer
	watcher   *watcher
	reclaimer *reclaimer
	releases  *releases
	strays    *strays
	hours     *hours

	// givenUp: this run ends before the holders are known. rebuildsRequired counts how often they were not known any more.
	givenUp          bool
	rebuildsRequired int
	// resendTimer: there is a timer for reasons that are to be sent later.
	resendTimer bool
	pauses      pauses
	// updates wait until the holders are known. firstTask is how long the history was in the run's first workflow task.
	updates   []*waitingUpdate
	firstTask int
	// upgraded are isUpgraded's answers. kindsDropped: an earlier version handed over all holders as maintenances.
	upgraded     map[subject]bool
	kindsDropped bool
}

// Scheduler grants slots: it decides which node may go next, and knows who holds one. There is one per cluster, under SchedulerID. It has
// no side effects of its own but signals to those who ask. Packed are the pending requests where the run before had many (see pack).
func Scheduler(ctx workflow.Context, given State, packed []byte) error {
	state, refused, err := accepted(ctx, given, packed)
	if err != nil {
		return err
	}
	s := newScheduler(ctx, &state)
	if refused != nil {
		s.decisions.record("", "ignored a part of what it was started with", refused.Error())
	}
	if err := s.listen(); err != nil {
		return err
	}
	return reset.Run(ctx, s.wasReset, func(ctx workflow.Context) error {
		s.ctx = ctx
		s.takeUp()
		return s.run()
	})
}

func newScheduler(ctx workflow.Context, state *State) *scheduler {
	info := workflow.GetInfo(ctx)
	l := &loop{ctx: ctx, State: state, dirty: true}
	s := &scheduler{
		loop: l, cluster: api.ClusterOf(info.TaskQueueName), firstTask: info.GetCurrentHistoryLength(), upgraded: map[subject]bool{},
		controls: &controls{state}, slots: newSlots(state), decisions: &decisions{loop: l}, commands: &commands{loop: l, byKey: map[string]*command{}},
	}
	for i := range s.Holders {
		s.dropKind(&s.Holders[i].Remediation, &s.Holders[i].Kind)
	}
	for i := range s.Pending {
		s.dropKind(&s.Pending[i].Remediation, &s.Pending[i].Kind)
	}
	s.intake, s.outbox, s.hours = &intake{scheduler: s}, &outbox{scheduler: s}, &hours{scheduler: s}
	s.hours.stale = s.hours.differs()
	s.strays, s.observer = &strays{scheduler: s}, &observer{scheduler: s}
	s.watcher = &watcher{scheduler: s, resting: map[string]bool{}, rested: map[string]time.Duration{}, marked: map[string]bool{}}
	s.reclaimer = &reclaimer{scheduler: s, reclaiming: map[string]bool{}, failures: map[string]int{}}
	s.releases = &releases{scheduler: s, answered: map[string]time.Time{}, querying: map[string]bool{}}
	return s
}

// takeUp goes on with what the run before left undone.
func (s *scheduler) takeUp() {
	s.assumeMarked()
	given, unsent := s.GivenBack, s.Unsent
	s.GivenBack, s.Unsent = nil, nil
	for _, id := range given {
		s.releases.verify(id, nil)
	}
	for _, id := range unsent {
		if h, held := s.slots.holder(id); held {
			s.outbox.sendGrant(h)
			s.outbox.sendHold(h, s.controls.notice())
		}
	}
	s.strays.retryLater()
}

func (s *scheduler) assumeMarked() {
	for _, h := range s.Holders {
		s.watcher.assumeMarked(h.RequestID)
	}
}

// wasReset finds out anew what is not certain any more: this run goes on from the past, and what was granted and given back since then is
// not in its history.
func (s *scheduler) wasReset(ctx workflow.Context) (runID string, err error) {
	s.requireRebuild("this run was reset: what was granted and given back since is not in its history")
	s.observer.invalidate()
	s.unfinished++
	defer func() { s.unfinished-- }()
	err = workflow.ExecuteActivity(call.Quick(ctx, "see which run this is"), call.Executions.ThisRun).Get(ctx, &runID)
	s.woken = true
	return runID, err
}

// requireRebuild has the scheduler find out anew who holds a slot, before it grants anything else.
func (s *scheduler) requireRebuild(why string) {
	if s.Rebuilt {
		s.decisions.record("", "finding out anew who holds a slot", why)
	}
	s.rebuildsRequired++
	s.Rebuilt, s.dirty = false, true
}

// run decides whenever something happened, until the history is long enough.
func (s *scheduler) run() error {
	for {
		s.pauses.event(s.now())
		if !s.Rebuilt && !s.leaving() {
			if err := s.rebuild(); err != nil {
				return err
			}
		}
		if err := workflow.Await(s.ctx, func() bool { return s.dirty || s.woken }); err != nil {
			return err
		}
		s.findKinds() // before anything is granted
		dirty := s.dirty
		s.dirty, s.woken = false, false
		if s.leaving() {
			s.watcher.stop()
			s.commands.keepWaiting()
			s.givenUp = !s.Rebuilt
			if s.idle() {
				return s.continueAsNew()
			}
			continue
		}
		if !dirty {
			s.sendReasons()
			continue
		}
		if s.Rebuilt {
			if err := s.releases.settle(); err != nil {
				return err
			}
			s.slots.forgetReleased(s.now())
			s.decide()
			s.observer.observe()
			s.keepWatch()
			s.invalidateUnwatched()
		}
	}
}

// rebuild retries until it is known who holds a slot, or this run has to end.
func (s *scheduler) rebuild() error {
	for {
		err := rebuilding{s, map[string]bool{}}.run()
		if err == nil {
			s.decisions.works(notRebuilt)
			s.assumeMarked()
			s.dirty = true // pending requests have waited for this
			return nil
		}
		if s.ctx.Err() != nil {
			return err
		}
		wait := s.decisions.fails(notRebuilt, err, maxPersonRetry)
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
	s.GivenBack = nil
	for _, u := range s.releases.unconfirmed {
		s.GivenBack = append(s.GivenBack, u.requestID)
	}
	state, packed, err := pack(*s.State)
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(s.ctx, api.SchedulerType, state, packed)
}

func (s *scheduler) decisionInput() schedule.Input {
	in := schedule.Input{Limits: s.Limits.Limits, Freezes: s.Freezes, Revision: s.Revision, Seen: s.Seen}
	if s.Observed != nil {
		in.Observed = &s.Observed.Observation
	}
	for _, p := range s.Pending {
		in.Pending = append(in.Pending, p.Request)
	}
	for _, h := range s.Holders {
		in.Granted = append(in.Granted, h.Grant)
	}
	return in
}

// decide grants what the limits allow, and sends the other requests why they wait.
func (s *scheduler) decide() {
	if len(s.Pending) == 0 {
		s.hours.wakeAt(time.Time{})
		return
	}
	requests := s.slots.pendingByID()
	decision := schedule.Decide(s.asDecided(s.decisionInput()))
	s.hours.follow(decision)
	s.grant(decision.Grants, requests)
	for _, p := range s.slots.keepWaiting(decision.Refused, requests) {
		seen := s.Seen[p.ID]
		s.slots.forget(p.ID)
		s.outbox.sendRefusal(p, seen)
	}
	s.sendReasons()
}

func (s *scheduler) grant(granted []schedule.Request, requests map[string]api.PendingRequest) {
	maintenances := make([]api.Holder, 0, len(granted))
	for _, g := range granted {
		h := s.slots.grant(requests[g.ID], s.now())
		if !h.IsMarked() {
			s.outbox.sendGrant(h)
			continue
		}
		maintenances = append(maintenances, h)
	}
	notice := s.controls.notice()
	if len(notice.Reasons) == 0 && len(maintenances) >= batchLeast && s.isUpgraded(grantsTogether) {
		s.outbox.sendGrants(maintenances)
		return
	}
	for _, h := range maintenances {
		s.outbox.sendGrant(h)
		if len(notice.Reasons) > 0 {
			s.outbox.sendHold(h, notice)
		}
	}
}

// sendReasons sends pending maintenances why they wait, a few at a time.
func (s *scheduler) sendReasons() {
	unsent, later := s.slots.takeUnsent(s.now(), maxReasons-s.outbox.reasons)
	for _, p := range unsent {
		s.outbox.sendReason(p)
	}
	if later && !s.resendTimer && s.isUpgraded(laterReasons) {
		s.resendTimer = true
		s.after(resendAfter, "send again why requests wait", func() { s.resendTimer = false })
	}
}

// keepWatch has a watch running while requests wait for the cluster or slots are held, and none otherwise.
func (s *scheduler) keepWatch() {
	waits := s.slots.waitsForCluster()
	if len(s.Holders) == 0 && !waits {
		s.watcher.stop()
		return
	}
	if s.watcher.running == nil && s.observer.busy {
		// What is observed may be granted at once, and the watch then begins with the new holders.
		return
	}
	digest := ""
	if waits {
		digest = s.observer.digest()
	}
	// A holder whose slot is being taken back is known to have ended, and so is its mark.
	holders, ending := s.reclaimer.split(s.Holders)
	known := append(append(s.slots.releasedMarks(), s.strays.knownMarks()...), ending...)
	want := s.watcher.wanted(s.Limits.Groups, digest, holders, known)
	want.IgnoreUnknown = s.strays.full()
	s.watcher.keep(want)
}

// invalidateUnwatched keeps the next request from being granted by an observation that no watch compares with the cluster any more.
func (s *scheduler) invalidateUnwatched() {
	seen, watch := s.Observed, s.watcher.running
	if !s.slots.waitsForCluster() && seen != nil && (watch == nil || watch.in.Digest != seen.Digest) {
		s.observer.invalidate()
	}
}

// free takes a slot back, or a request that waits for one.
func (s *scheduler) free(requestID string) {
	if h, held := s.slots.holder(requestID); held && h.Kind == schedule.KindProfile {
		s.reclaimer.freeOnceShown(h)
		return
	}
	s.slots.free(requestID, s.now())
	s.watcher.forget(requestID)
}
