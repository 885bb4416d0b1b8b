package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/node"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/nodeevent"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"fmt"
	"go.temporal.io/sdk/workflow"
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

// warn says something on the node. A node that is gone or lost its mark is the next step's to find.
func (a *announcer) warn(ctx workflow.Context, reason, text string) error {
	in := a.announcement(a.journal.phase(), text)
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
	summary, phase := a.summary(), a.journal.phase()
	draining, drained := phase == api.Draining || phase == api.WaitingForPods, a.journal.heldByRequestor()
	switch {
	case phase == api.Pending || phase == api.AwaitingApproval:
		message := summary
		if notice := noticeText(a.spec); notice != "" {
			message = notice + ": " + summary
		}
		return []node.Condition{{Type: node.MaintenancePlanned, True: true, Reason: "Scheduled", Message: message}}
	case draining || drained:
		return []node.Condition{
			{Type: node.MaintenancePlanned, Reason: "Started"},
			{Type: node.MaintenanceInProgress, True: true, Reason: string(phase), Message: summary},
			{Type: node.DrainInProgress, True: draining, Reason: string(phase)},
			{Type: node.Drained, True: drained, Reason: string(phase)},
		}
	default:
		return nil
	}
}
