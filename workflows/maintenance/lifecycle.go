package maintenance

import (
	"cmp"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/notices"
)

// tell notes that the maintenance has come into a state that the outside knows (NotifyMaintenance, Maintenance Status),
// and has its channels told of it.
func (m *maintenance) tell(state notices.State, message string) {
	m.told++
	entered := api.LifecycleState{
		ID:       fmt.Sprintf("%s/%s/%d", m.status.WorkflowID, m.status.RunID, m.told),
		Sequence: m.told, State: state, At: workflow.Now(m.life), Message: message,
	}
	m.status.States = bounded(m.status.States, entered)
	m.inform(m.eventOf(entered))
}

// eventOf is a state as the channels are told of it.
func (m *maintenance) eventOf(s api.LifecycleState) notices.Event {
	e := notices.Event{
		ID: s.ID, Sequence: s.Sequence, State: s.State, At: s.At, Message: s.Message,
		Node: m.spec.Node, Requestor: m.spec.Requestor, Cluster: m.cluster, Groups: m.groups,
		Owner: m.spec.Owner, Reason: m.spec.Reason, Ticket: m.spec.Ticket, Type: m.spec.Type,
		Phase: string(m.status.Phase), WorkflowID: m.status.WorkflowID, RunID: m.status.RunID,
	}
	if d := m.status.Drain; d != nil {
		for _, b := range d.Blockers[:min(blockersTold, len(d.Blockers))] {
			e.Blockers = append(e.Blockers, b.Pod+": "+b.Message)
		}
		e.MoreBlockers = len(d.Blockers) + d.MoreBlockers - len(e.Blockers)
	}
	return e
}

// blockersTold is how many blockers an event names.
const blockersTold = 5

// tellEnd tells how a maintenance ends: that its end was asked for, before anything is undone.
func (m *maintenance) tellEnd(end ending) {
	if end.phase == api.Failed || end.phase == api.NodeGone {
		m.tell(notices.MaintenanceIncomplete, end.message)
	}
	m.tell(notices.MaintenanceEnded, end.message)
}

// tellEnded tells the end itself. A node that did not get its maintenance is back all the same.
func (m *maintenance) tellEnded(end ending) {
	if end.phase == api.Completed {
		m.tell(notices.MaintenanceComplete, end.message)
		return
	}
	m.tell(notices.MaintenanceCancelled, cmp.Or(end.message, string(end.phase)))
}
