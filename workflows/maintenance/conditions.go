package maintenance

import (
	"go.temporal.io/sdk/workflow"

	"drydock/activities/node"
	"drydock/api"
	"drydock/workflows/call"
)

// showConditions shows on the node what is planned for it and under way (KEP-5683), where the worker is configured to.
// The release takes the conditions off.
func (m *maintenance) showConditions() {
	if m.conditions {
		m.setConditions(m.lifecycleConditions())
	}
}

// hideConditions takes the conditions off a node that was never held; the release of a held one does so by itself.
func (m *maintenance) hideConditions() {
	if m.conditionsShown {
		m.setConditions(nil)
	}
}

func (m *maintenance) setConditions(conditions []node.Condition) {
	in := node.ConditionsInput{Node: m.spec.Node, Conditions: conditions}
	// Before the call: what may have been shown has to be taken off.
	m.conditionsShown = m.conditionsShown || len(conditions) > 0
	ctx := call.Within(call.Quick(m.life, "show conditions on "+m.spec.Node), call.TidyWithin)
	if err := workflow.ExecuteActivity(ctx, call.Nodes.ShowConditions, in).Get(m.life, nil); err != nil {
		workflow.GetLogger(m.life).Warn("conditions not shown on the node", "error", err)
		return
	}
	m.conditionsShown = len(conditions) > 0
}

func (m *maintenance) lifecycleConditions() []node.Condition {
	summary := m.summary()
	draining, drained := m.status.Phase == api.Draining || m.status.Phase == api.WaitingForPods, m.heldByRequestor()
	switch {
	case m.status.Phase == api.Pending || m.status.Phase == api.AwaitingApproval:
		return []node.Condition{{Type: node.MaintenancePlanned, True: true, Reason: "Scheduled", Message: joined(m.noticeText(), summary)}}
	case draining || drained:
		return []node.Condition{
			{Type: node.MaintenancePlanned, Reason: "Started"},
			{Type: node.MaintenanceInProgress, True: true, Reason: string(m.status.Phase), Message: summary},
			{Type: node.DrainInProgress, True: draining, Reason: string(m.status.Phase)},
			{Type: node.Drained, True: drained, Reason: string(m.status.Phase)},
		}
	default:
		return nil
	}
}

func joined(first, then string) string {
	if first == "" {
		return then
	}
	return first + ": " + then
}
