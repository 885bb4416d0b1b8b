package maintenance

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/node"
	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/rules/bounds"
	"drydock/workflows/call"
)

// announcer shows on the node, and in lists, where its maintenance is: by a label, Events and conditions.
type announcer struct {
	*identity
	journal *journal
	stop    *stop
	clock   *clock
	announcerState
}

// announcerState is what the next run has to know.
type announcerState struct {
	// Mark is what the node carries of this maintenance, Shown the phase that its label has.
	Mark  string    `json:"mark,omitempty"`
	Shown api.Phase `json:"shown,omitempty"`
	// ConditionsShown: the node may have lifecycle conditions of this maintenance.
	ConditionsShown bool `json:"conditionsShown,omitempty"`
}

// showPhase shows on the node that it is Ready, that its requestor failed, or that it is validated. It follows the phase
// and never goes before it: whoever sees the node Ready may say done at once.
func (a *announcer) showPhase() {
	for a.Shown != a.journal.phase() {
		phase, message := a.journal.phase(), "the node is ready for maintenance"
		switch phase {
		case api.Cordoned:
			message = "the node is cordoned, and not drained yet"
		case api.Draining:
			message = "the node is drained as far as its plans have come"
		case api.Validating:
			message = "the node is validated before it returns to production"
		case api.RequestorFailed:
			message = "the node stays out of service until somebody decides: " + a.journal.status().Failure
		}
		a.journal.attribute(api.AttributePhase.ValueSet(string(phase)))
		in := a.announcement(phase, message)
		in.Event.Warning = phase == api.RequestorFailed
		ctx := call.Quick(a.clock.life, "show "+string(phase)+" on "+a.spec.Node)
		if err := workflow.ExecuteActivity(ctx, call.Nodes.AnnouncePhase, in).Get(ctx, nil); err != nil {
			// The node may be away for re-imaging; what is shown on it must not end the maintenance.
			workflow.GetLogger(a.clock.life).Warn("phase not shown on the node", "phase", phase, "error", err)
		}
		a.Shown = phase
	}
}

func (a *announcer) announcement(phase api.Phase, message string) node.AnnounceInput {
	return node.AnnounceInput{
		Node: a.spec.Node, RunID: a.runID, Mark: a.Mark, Phase: string(phase),
		Event: nodeevent.Event{
			Reason: "Maintenance" + string(phase), Message: a.summary() + ": " + message,
			Key: fmt.Sprintf("%d/%d", a.journal.status().Attempt, a.journal.moment()),
		},
	}
}

// warn says something on the node, and leaves the phase that is shown to the main coroutine. A node that is gone or lost
// its mark is the next step's to find.
func (a *announcer) warn(ctx workflow.Context, reason, text string) error {
	in := a.announcement("", bounds.Cut(text, bounds.Text))
	in.Event.Reason, in.Event.Warning = reason, true
	ctx = call.Quick(ctx, "warn: "+text)
	if err := workflow.ExecuteActivity(ctx, call.Nodes.AnnouncePhase, in).Get(ctx, nil); err != nil {
		if over := a.stop.decided(); over != nil {
			return over
		}
		workflow.GetLogger(a.clock.life).Warn("not said on the node", "reason", reason, "error", err)
	}
	return nil
}

// showConditions shows on the node what is planned for it and under way (KEP-5683), where the worker is configured to.
// The release takes the conditions off.
func (a *announcer) showConditions() {
	if a.prepared.Conditions {
		a.setConditions(a.lifecycleConditions())
	}
}

// showDraining shows that the drain goes on: a node that plans share said that it is Cordoned or Ready.
func (a *announcer) showDraining() {
	if a.spec.Lockstep && a.Shown != "" {
		a.showPhase()
	}
	a.showConditions()
}

// hideConditions takes the conditions off a node that was never held; the release of a held one does so by itself.
func (a *announcer) hideConditions() {
	if a.ConditionsShown {
		a.setConditions(nil)
	}
}

func (a *announcer) setConditions(conditions []node.Condition) {
	in := node.ConditionsInput{Node: a.spec.Node, RunID: a.runID, Conditions: conditions}
	// Before the call: what may have been shown has to be taken off.
	a.ConditionsShown = a.ConditionsShown || len(conditions) > 0
	ctx := call.Within(call.Quick(a.clock.life, "show conditions on "+a.spec.Node), call.TidyWithin)
	if err := workflow.ExecuteActivity(ctx, call.Nodes.ShowConditions, in).Get(a.clock.life, nil); err != nil {
		workflow.GetLogger(a.clock.life).Warn("conditions not shown on the node", "error", err)
		return
	}
	a.ConditionsShown = len(conditions) > 0
}

func (a *announcer) lifecycleConditions() []node.Condition {
	status := a.journal.status()
	summary, phase := a.summary(), status.Phase
	draining, drained := phase == api.Draining || phase == api.WaitingForPods, a.journal.heldByRequestor()
	// Plans that share the maintenance drain the node further until they say that it is the last.
	whole := drained && (status.Lockstep == nil || status.Lockstep.Last)
	switch {
	case phase == api.Pending || phase == api.AwaitingApproval:
		message := summary
		if notice := noticeText(a.spec); notice != "" {
			message = notice + ": " + summary
		}
		return []node.Condition{{Type: node.MaintenancePlanned, True: true, Reason: "Scheduled", Message: message}}
	case draining || drained || phase == api.Cordoned:
		return []node.Condition{
			{Type: node.MaintenancePlanned, Reason: "Started"},
			{Type: node.MaintenanceInProgress, True: true, Reason: string(phase), Message: summary},
			{Type: node.DrainInProgress, True: draining, Reason: string(phase)},
			{Type: node.Drained, True: whole, Reason: string(phase)},
		}
	default:
		return nil
	}
}

// reporter tells the plan that began the maintenance when somebody has to decide about the node, and when no longer.
type reporter struct {
	core
	// undecided tells that a failed validation waits for a decision.
	undecided func() bool
	// told is what the plan knows, telling that it is being told.
	told, telling bool
}

// held tells that the node stays out of service until somebody decides.
func (r *reporter) held() bool { return r.journal.phase() == api.RequestorFailed || r.undecided() }

// idle tells that the plan knows.
func (r *reporter) idle() bool { return r.plan == "" || !r.telling && r.held() == r.told }

// backSignal tells the plan that the node is back; the activity that releases the node sends it, nil where there is no plan.
func (r *reporter) backSignal() *node.Signal {
	if r.plan == "" {
		return nil
	}
	payload, err := json.Marshal(api.NodeNews{Node: r.spec.Node, RunID: r.runID, Back: true})
	if err != nil {
		workflow.GetLogger(r.clock.life).Error("the plan is not told", "error", err)
		return nil
	}
	return &node.Signal{WorkflowID: r.plan, Name: api.SignalNodeNews, Payload: payload}
}

// report tells the plan as long as the maintenance runs; the server tells it of the end.
func (r *reporter) report(ctx workflow.Context) {
	for {
		if err := workflow.Await(ctx, func() bool { return r.held() != r.told }); err != nil {
			return
		}
		r.told, r.telling = r.held(), true
		news := api.NodeNews{Node: r.spec.Node, RunID: r.runID, Held: r.told, Why: r.journal.status().Failure}
		if err := workflow.SignalExternalWorkflow(ctx, r.plan, "", api.SignalNodeNews, news).Get(ctx, nil); err != nil {
			// A plan that has ended does not want to know.
			workflow.GetLogger(ctx).Info("the plan was not told", "plan", r.plan, "error", err)
		}
		r.telling = false
	}
}
