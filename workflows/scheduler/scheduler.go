// Package scheduler is the workflow that grants slots: the one place where it is decided which node goes next.
package scheduler

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/cluster"
	"drydock/api"
	"drydock/rules/schedule"
)

// What to do with the node of a maintenance that does not run any more.
const (
	ReleaseOrphans = "release"
	ReportOrphans  = "report"
)

// State is all that the scheduler knows: its input, and what continue-as-new carries on. The zero value is a
// scheduler that has to find out who holds what before it grants anything.
type State struct {
	Limits api.LimitsInForce `json:"limits"`
	// Revision counts changes of the limits, so that an observation made for other groups is told apart.
	Revision int                  `json:"revision"`
	Freezes  []schedule.Freeze    `json:"freezes,omitempty"`
	Holders  api.List[api.Holder] `json:"holders,omitempty"`
	// Pending, Told, Seen and Observed are empty where the requests are many (see carried).
	Pending   []api.PendingRequest   `json:"pending,omitempty"`
	Told      map[string]Told        `json:"told,omitempty"`
	Seen      map[string]bool        `json:"seen,omitempty"`
	Released  api.List[ReleasedNode] `json:"released,omitempty"`
	Observed  *cluster.Observed      `json:"observed,omitempty"`
	Decisions []api.RecordedDecision `json:"decisions,omitempty"`
	// OnOrphan is ReleaseOrphans (the default) or ReportOrphans.
	OnOrphan string `json:"onOrphan,omitempty"`
	// Rebuilt says that the holders are known. PreviousRun is the scheduler run whose state to take over.
	Rebuilt     bool   `json:"rebuilt,omitempty"`
	PreviousRun string `json:"previousRun,omitempty"`
	// ContinueAfter is how many signals a run takes before it continues as new; 0 is maxSignals.
	ContinueAfter int `json:"continueAfter,omitempty"`
}

// Told is what a pending request was last told, and when.
type Told struct {
	Code schedule.Code `json:"code"`
	At   time.Time     `json:"at"`
}

// ReleasedNode is a node that was given back lately.
type ReleasedNode struct {
	Node string    `json:"node"`
	At   time.Time `json:"at"`
}

// scheduler is one run of Scheduler.
type scheduler struct {
	State
	ctx     workflow.Context
	cluster string

	// dirty: something happened that a decision may depend on. woken: something else did.
	dirty, woken bool
	index        requestIndex
	// inFlight counts what has to come back before the workflow may continue as new, telling those of it that tell a
	// request why it waits.
	inFlight  int
	telling   int
	signals   int
	observing bool
	// By request: whose node was changed a moment ago, and how long it was given to react, whose slot is being taken
	// back, whose mark a watch has seen (true) or reported as missing (false).
	resting  map[string]bool
	rested   map[string]time.Duration
	reclaims map[string]bool
	marked   map[string]bool
	watch    *clusterWatch
}

const (
	// maxSignals continues the workflow as new well before the server's limit of signals per run.
	maxSignals = 5000
	// releasedFor is how long a released node is remembered: watches lag behind by less.
	releasedFor = 30 * time.Second
	// maxDecisions bounds the log in the state, and maxEntry the words of each entry; the history has everything.
	maxDecisions = 50
	maxEntry     = 1000
)

// Scheduler grants slots: it decides which node may go next, and keeps account of who holds one. There is one per
// cluster, under SchedulerID. It has no side effects of its own but signals to maintenances. Packed are the pending
// requests where the run before had many (see carried).
func Scheduler(ctx workflow.Context, state State, packed []byte) error {
	s := &scheduler{
		State: state, ctx: ctx, cluster: api.ClusterOf(workflow.GetInfo(ctx).TaskQueueName),
		dirty: true, resting: map[string]bool{}, rested: map[string]time.Duration{}, reclaims: map[string]bool{}, marked: map[string]bool{},
	}
	s.setDefaults()
	if err := s.unpack(packed); err != nil {
		return err
	}
	s.reindex()
	if err := s.listen(); err != nil {
		return err
	}
	if !s.Rebuilt {
		if err := s.rebuild(); err != nil {
			return err
		}
	}
	for _, h := range s.Holders {
		s.assumeMarked(h.RequestID)
	}
	return s.run()
}

func (s *scheduler) setDefaults() {
	s.Limits.Limits = s.Limits.Limits.WithDefaults()
	if s.OnOrphan == "" {
		s.OnOrphan = ReleaseOrphans
	}
	if s.Told == nil {
		s.Told = map[string]Told{}
	}
	if s.Seen == nil {
		s.Seen = map[string]bool{}
	}
}

// run decides whenever something happened, until the history is long enough.
func (s *scheduler) run() error {
	for {
		if err := workflow.Await(s.ctx, func() bool { return s.dirty || s.woken }); err != nil {
			return err
		}
		dirty := s.dirty
		s.dirty, s.woken = false, false
		if s.leaving() {
			s.stopWatch()
			if s.inFlight == 0 && workflow.AllHandlersFinished(s.ctx) {
				state, packed, err := s.carried()
				if err != nil {
					return err
				}
				return workflow.NewContinueAsNewError(s.ctx, api.SchedulerType, state, packed)
			}
			continue
		}
		if !dirty {
			s.tell()
			continue
		}
		s.forgetReleased()
		s.decide()
		s.observe()
		s.keepWatch()
		s.doubtUnwatched()
	}
}

// leaving tells whether to continue as new; from then on nothing new is begun.
func (s *scheduler) leaving() bool {
	return workflow.GetInfo(s.ctx).GetContinueAsNewSuggested() || s.signals >= cmp.Or(s.ContinueAfter, maxSignals)
}

// decide grants what the limits allow, and tells the others why they wait.
func (s *scheduler) decide() {
	if len(s.Pending) == 0 {
		return
	}
	in := schedule.Input{Limits: s.Limits.Limits, Freezes: s.Freezes, Revision: s.Revision}
	if s.Observed != nil {
		in.Observed = &s.Observed.Observation
	}
	requests := make(map[string]api.PendingRequest, len(s.Pending))
	for _, p := range s.Pending {
		in.Pending = append(in.Pending, p.Request)
		requests[p.ID] = p
	}
	for _, h := range s.Holders {
		in.Granted = append(in.Granted, h.Grant)
	}
	decision := schedule.Decide(in)
	for _, granted := range decision.Grants {
		s.grant(requests[granted.ID])
	}
	s.Pending = s.Pending[:0]
	for _, refusal := range decision.Refused {
		p := requests[refusal.Request.ID]
		p.Code, p.Reason = refusal.Code, refusal.Reason
		if refusal.Code == schedule.NodeMissing {
			s.refuse(p)
			continue
		}
		if refusal.Code != schedule.Unobserved && refusal.Code != schedule.Frozen {
			s.Seen[p.ID] = true
		}
		s.Pending = append(s.Pending, p)
	}
	s.tell()
}

func (s *scheduler) grant(p api.PendingRequest) {
	holder := api.Holder{
		Grant: schedule.Grant{RequestID: p.ID, Node: p.Node, Requestor: p.Requestor},
		RunID: p.RunID, GrantedAt: workflow.Now(s.ctx),
	}
	s.forget(p.ID)
	s.hold(holder)
	s.signalHolder(holder, api.SignalSlotGranted, api.SlotAnswer{RequestID: p.ID})
	if reasons := s.runningFreezes(); len(reasons) > 0 {
		s.signalHolder(holder, api.SignalHold, api.Hold{Reasons: reasons})
	}
}

// refuse ends a request for a node that does not exist.
func (s *scheduler) refuse(p api.PendingRequest) {
	answer := api.SlotAnswer{RequestID: p.ID, Code: p.Code, Reason: p.Reason, Seen: s.Seen[p.ID]}
	s.forget(p.ID)
	s.signalRun(p.Node, p.Requestor, p.RunID, api.SignalSlotRefused, answer, nil)
}

const (
	// tellAtOnce bounds the signals under way; the rest follow as those are delivered. A server refuses 2,000.
	tellAtOnce = 50
	// tellAgain keeps a maintenance's history short while the reasons change.
	tellAgain = 30 * time.Second
)

// tell lets pending maintenances know why they wait: each once, and again when the kind of the reason changes.
func (s *scheduler) tell() {
	now := workflow.Now(s.ctx)
	for _, p := range s.Pending {
		if s.telling >= tellAtOnce {
			return
		}
		last, known := s.Told[p.ID]
		if p.Code == schedule.Unobserved || (known && (last.Code == p.Code || now.Sub(last.At) < tellAgain)) {
			continue
		}
		s.Told[p.ID] = Told{Code: p.Code, At: now}
		s.telling++
		s.signalRun(p.Node, p.Requestor, p.RunID, api.SignalSlotPending,
			api.SlotAnswer{RequestID: p.ID, Code: p.Code, Reason: p.Reason}, func(error) { s.telling-- })
	}
}

// signalHolder signals a holder; one that does not run any more has no slot.
func (s *scheduler) signalHolder(h api.Holder, signal string, arg any) {
	s.signalRun(h.Node, h.Requestor, h.RunID, signal, arg, func(err error) {
		// Any other failure is no proof that it does not run, and a repeated request or the watch makes up for it.
		var nobody *temporal.UnknownExternalWorkflowExecutionError
		if errors.As(err, &nobody) {
			s.reclaim(h, "it ended before it could be told")
			s.dirty = true
		}
	})
}

// signalRun signals one run of a maintenance without waiting for the delivery, which needs no decision: thousands of
// deliveries would be thousands of decisions.
func (s *scheduler) signalRun(node, requestor, run, signal string, arg any, delivered func(error)) {
	s.inFlight++
	future := workflow.SignalExternalWorkflow(s.ctx, api.MaintenanceID(s.cluster, node, requestor), run, signal, arg)
	s.onceReady(future, func() {
		s.inFlight--
		s.woken = true
		err := future.Get(s.ctx, nil)
		if err != nil {
			workflow.GetLogger(s.ctx).Warn("maintenance not signalled", "node", node, "requestor", requestor, "signal", signal, "error", err)
		}
		if delivered != nil {
			delivered(err)
		}
	})
}

// whenReady calls back when a future is ready, and has everything looked at again.
func (s *scheduler) whenReady(future workflow.Future, then func()) {
	s.onceReady(future, func() {
		then()
		s.dirty = true
	})
}

func (s *scheduler) onceReady(future workflow.Future, then func()) {
	workflow.Go(s.ctx, func(ctx workflow.Context) {
		if err := workflow.Await(ctx, future.IsReady); err != nil {
			return
		}
		then()
	})
}

// decided logs a decision; one that recurs is kept once, so that it does not displace what people decided.
func (s *scheduler) decided(by, what, why string) {
	what, why = cut(what, maxEntry), cut(why, maxEntry)
	s.Decisions = slices.DeleteFunc(s.Decisions, func(d api.RecordedDecision) bool { return d.By == by && d.What == what && d.Why == why })
	s.Decisions = append(s.Decisions, api.RecordedDecision{At: workflow.Now(s.ctx), By: by, What: what, Why: why})
	if extra := len(s.Decisions) - maxDecisions; extra > 0 {
		s.Decisions = s.Decisions[extra:]
	}
	workflow.GetLogger(s.ctx).Info("scheduler", "by", by, "what", what, "why", why)
}
