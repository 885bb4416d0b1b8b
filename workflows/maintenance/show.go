package maintenance

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/workflows/call"
)

type shownState struct {
	// Mark is what the node carries of this maintenance, Shown the phase that its label has.
	Mark  string    `json:"mark,omitempty"`
	Shown api.Phase `json:"shown,omitempty"`
	// ConditionsShown: the node may have lifecycle conditions of this maintenance.
	ConditionsShown bool `json:"conditionsShown,omitempty"`
}

// showPhase shows the phase on the node, and never before the maintenance is in it: a requestor that sees the node Ready may send done
// at once.
func (h *hold) showPhase() {
	for h.Shown != h.journal.phase() {
		phase, message := h.journal.phase(), "the node is ready for maintenance"
		switch phase {
		case api.Cordoned:
			message = "the node is cordoned, and not drained yet"
		case api.Draining:
			message = "the node is drained as far as its plans have come"
		case api.Validating:
			message = "the node is validated before it returns to production"
		case api.RequestorFailed:
			message = "the node stays out of service until somebody decides: " + h.journal.status().Failure
		}
		h.journal.attribute(api.AttributePhase.ValueSet(string(phase)))
		in := h.announcement(phase, message)
		in.Event.Warning = phase == api.RequestorFailed
		ctx := call.Quick(h.control.life, "show "+string(phase)+" on "+h.spec.Node)
		// The node may be away for re-imaging: this must not end the maintenance.
		_ = attempt(ctx, "phase not shown on the node", call.Nodes.AnnouncePhase, in)
		h.Shown = phase
	}
}

func (h *hold) announcement(phase api.Phase, message string) node.AnnounceInput {
	return node.AnnounceInput{
		Node: h.spec.Node, RunID: h.runID, Mark: h.Mark, Phase: string(phase),
		Event: nodeevent.Event{
			Reason: api.EventOfPhase(phase), Message: h.summary() + ": " + message,
			Key: fmt.Sprintf("%d/%d", h.journal.status().Attempt, h.journal.moment()),
		},
	}
}

// warn writes a Warning event. The next step finds a node that is gone or lost its mark.
func (h *hold) warn(ctx workflow.Context, reason api.EventReason, text string) error {
	in := h.announcement("", bounds.Cut(text, bounds.Text))
	in.Event.Reason, in.Event.Warning = reason, true
	ctx = call.Quick(ctx, "warn: "+text)
	if err := attempt(ctx, "warning not shown on the node", call.Nodes.AnnouncePhase, in); err != nil {
		return h.control.decided()
	}
	return nil
}

// showConditions shows on the node what is planned for it and under way (KEP-5683), where the worker is configured to.
// The release takes the conditions off.
func (h *hold) showConditions() {
	if h.prepared.Conditions {
		h.setConditions(h.lifecycleConditions())
	}
}

// showDraining shows that the drain goes on: a node that plans share was shown as Cordoned or Ready.
func (h *hold) showDraining() {
	if h.spec.Lockstep && h.Shown != "" {
		h.showPhase()
	}
	h.showConditions()
}

func (h *hold) setConditions(conditions []node.Condition) {
	in := node.ConditionsInput{Node: h.spec.Node, RunID: h.runID, Conditions: conditions}
	// Before the call: what may have been shown has to be taken off.
	h.ConditionsShown = h.ConditionsShown || len(conditions) > 0
	ctx := call.Within(call.Quick(h.control.life, "show conditions on "+h.spec.Node), call.TidyWithin)
	if attempt(ctx, "conditions not shown on the node", call.Nodes.ShowConditions, in) == nil {
		h.ConditionsShown = len(conditions) > 0
	}
}

func (h *hold) lifecycleConditions() []node.Condition {
	status := h.journal.status()
	summary, phase := h.summary(), status.Phase
	draining, drained := phase == api.Draining || phase == api.WaitingForPods, h.journal.heldByRequestor()
	// Plans that share the maintenance drain the node further until they say that it is the last.
	whole := drained && (status.Lockstep == nil || status.Lockstep.Last)
	switch {
	case phase == api.Pending || phase == api.AwaitingApproval:
		message := summary
		if notice := noticeText(h.spec); notice != "" {
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
