package remediation

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/health"
	planactivity "drydock/activities/plan"
	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/health"
	"drydock/workflows/call"
	"drydock/workflows/loop"
)

// repairs are the steps that have the node maintained: one maintenance after the other, under one workflow ID.
type repairs struct {
	*core
	hand *hand
	// awaiting is the run whose end is awaited, stop ends that.
	awaiting string
	stop     func()
	failures int
	next     time.Time
}

// Maintained is a maintenance that a step has begun.
type Maintained struct {
	Step  int    `json:"step"`
	RunID string `json:"runId"`
	// Ending: it was told to end. Over: it has ended.
	Ending bool `json:"ending,omitempty"`
	Over   bool `json:"over,omitempty"`
}

// maintain begins the maintenance of a step.
func (h *hand) maintain(step int, repair health.Repair) {
	if !h.repairs.ended() {
		h.repairs.end() // that of an earlier step
		return
	}
	if !h.state.Leased {
		h.takeLease(step)
		return
	}
	in := activity.RepairInput{
		Check: h.check, Node: h.node, UID: h.in.UID, ControlPlane: h.in.ControlPlane, Step: step, Repair: repair, Why: h.in.Why,
		Conditions: h.in.Conditions, Etcd: h.in.Etcd,
	}
	ctx := call.Quick(h.Ctx, "begin the maintenance of "+h.node)
	h.does("begin the maintenance", workflow.ExecuteActivity(ctx, call.Health.BeginRepair, in), func(f workflow.Future) {
		var begun activity.BegunRepair
		err := f.Get(h.Ctx, &begun)
		switch {
		case err != nil:
			h.refused(step, "the maintenance could not be begun: "+call.Cause(err))
		case begun.Replaced:
			h.replaced(step)
		case begun.Refused != "":
			h.refused(step, begun.Refused)
		case begun.Waiting != "":
			h.state.Progress.Waiting = bounds.Cut(begun.Waiting, bounds.Text)
			h.next = h.Now().Add(askAgain)
		default:
			h.works()
			h.setStep(health.StepState{
				Index: step, WorkflowID: api.MaintenanceID(h.cluster, h.node, api.RemediationRequestor(h.check)), StartedAt: begun.StartedAt,
			})
			h.state.Progress.Step = step
			h.state.Maintained = append(h.state.Maintained, Maintained{Step: step, RunID: begun.RunID})
			h.changed(nil)
		}
	})
}

// seek finds the maintenance that an earlier workflow of the remediation has begun, whether or not it has told of it.
func (h *hand) seek() {
	ctx := call.Within(call.Quick(h.Ctx, "find the maintenance of "+h.node), endWithin)
	in := activity.RepairInput{Check: h.check, Node: h.node}
	h.does("find the maintenance", workflow.ExecuteActivity(ctx, call.Health.FindRepair, in), func(f workflow.Future) {
		var found activity.BegunRepair
		if err := f.Get(h.Ctx, &found); err != nil {
			h.retry("its maintenance to be found: " + call.Cause(err))
			return
		}
		h.works()
		h.state.Sought = true
		h.repairs.takeUp(found)
	})
}

// takeUp goes on with the maintenance that runs. Those of which nothing runs any more are over, however they have ended.
func (r *repairs) takeUp(found activity.BegunRepair) {
	step := -1
	for i := range r.state.Progress.Steps {
		s := &r.state.Progress.Steps[i]
		switch {
		case s.WorkflowID == "" || s.Gone:
		case found.RunID == "":
			s.Gone = true
		default:
			step = s.Index
		}
	}
	if found.RunID == "" {
		return
	}
	if step < 0 {
		step = slices.IndexFunc(r.in.Steps, func(s health.Remediation) bool { return s.Maintenance != nil })
		if r.in.Steps[r.in.Step].Maintenance != nil {
			step = r.in.Step
		}
		r.hand.setStep(health.StepState{
			Index: step, WorkflowID: api.MaintenanceID(r.cluster, r.node, api.RemediationRequestor(r.check)), StartedAt: found.StartedAt,
		})
	}
	r.state.Maintained = append(r.state.Maintained, Maintained{Step: step, RunID: found.RunID})
}

// takeLease takes the node's lease for a step that makes no object.
func (h *hand) takeLease(step int) {
	in := activity.LeaseInput{Check: h.check, Node: h.node, UID: h.in.UID, LeaseWant: h.want()}
	ctx := call.Quick(h.Ctx, "take the lease of "+h.node)
	h.does("lease", workflow.ExecuteActivity(ctx, call.Health.TakeLease, in), func(f workflow.Future) {
		var lease activity.LeaseState
		err := f.Get(h.Ctx, &lease)
		h.state.Progress.LeaseHeldBy = lease.HeldBy
		switch {
		case err != nil:
			h.refused(step, "the node's lease could not be taken: "+call.Cause(err))
		case !lease.Held:
			h.refused(step, "the node's lease is held by "+lease.HeldBy)
		default:
			h.state.Leased = true
			h.changed(nil)
		}
	})
}

// running is the maintenance that has not ended; nil is none.
func (r *repairs) running() *Maintained {
	i := slices.IndexFunc(r.state.Maintained, func(m Maintained) bool { return !m.Over })
	if i < 0 {
		return nil
	}
	return &r.state.Maintained[i]
}

func (r *repairs) ended() bool { return r.running() == nil }

// giveUp ends the maintenances of steps whose time is over.
func (r *repairs) giveUp(steps []int) {
	if m := r.running(); m != nil && contains(steps, m.Step) {
		r.end()
	}
}

// end has the maintenance ended that runs: one that is not Ready is cancelled. One on which somebody works is done where the
// node is healthy, and given back where it is not: its time is over.
func (r *repairs) end() {
	m := r.running()
	if m == nil || m.Ending || r.hand.busy {
		return
	}
	in := activity.EndRepairInput{Check: r.check, Node: r.node, RunID: m.RunID, Healthy: r.state.Order.Healthy, Why: r.state.Order.Why}
	if in.Why == "" {
		in.Why = r.state.Ending
	}
	ctx := call.Within(call.Quick(r.Ctx, "end the maintenance of "+r.node), endWithin)
	r.hand.does("end the maintenance", workflow.ExecuteActivity(ctx, call.Health.EndRepair, in), func(f workflow.Future) {
		if err := f.Get(r.Ctx, nil); err != nil {
			r.hand.retry("its maintenance to be ended: " + call.Cause(err))
			return
		}
		m.Ending = true
		r.hand.works()
	})
}

// endWithin bounds the signals that end a maintenance.
const endWithin = 5 * time.Minute

// follow awaits the end of the maintenance that runs.
func (r *repairs) follow() {
	m := r.running()
	switch {
	case m == nil || r.awaiting == m.RunID:
		return
	case r.Now().Before(r.next):
		r.WakeAt(r.next, "await the end of the maintenance again")
		return
	}
	r.rest()
	r.awaiting = m.RunID
	run := m.RunID
	id := api.MaintenanceID(r.cluster, r.node, api.RemediationRequestor(r.check))
	r.stop = r.Watches("maintenance", func(ctx workflow.Context) workflow.Future {
		return workflow.ExecuteActivity(call.Long(ctx, "wait for the end of the maintenance of "+r.node), call.Plans.AwaitEnds,
			api.List[planactivity.Flight]{{WorkflowID: id, RunID: run}})
	}, func(f workflow.Future) {
		r.awaiting, r.stop = "", nil
		var ended []planactivity.Ended
		err := f.Get(r.Ctx, &ended)
		if err != nil || len(ended) != 1 {
			r.note("the end of the maintenance could not be awaited", call.Cause(err))
			r.next = r.Now().Add(loop.Backoff(r.failures))
			r.failures++
			return
		}
		r.failures = 0
		r.over(run, ended[0])
	})
}

// rest ends the waiting: the next run waits anew.
func (r *repairs) rest() {
	if r.stop != nil {
		r.stop()
		r.awaiting, r.stop = "", nil
	}
}

// over takes the end of a maintenance.
func (r *repairs) over(run string, ended planactivity.Ended) {
	i := slices.IndexFunc(r.state.Maintained, func(m Maintained) bool { return m.RunID == run && !m.Over })
	if i < 0 {
		return
	}
	m := &r.state.Maintained[i]
	m.Over = true
	s := r.stepState(m.Step)
	if s == nil {
		return
	}
	completed := ended.Phase == api.Completed
	switch {
	case completed:
		s.Succeeded = &completed
	case m.Ending: // what it was told to do says nothing of whether it healed the node
	default:
		s.Succeeded, s.Failure = &completed, bounds.Cut(ended.Message, bounds.Text)
	}
}
