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
func (j *journal) tell(state notices.State, message string) {
	j.told++
	entered := api.LifecycleState{
		ID:       fmt.Sprintf("%s/%s/%d", j.workflowID, j.runID, j.told),
		Sequence: j.told, State: state, At: workflow.Now(j.ctx), Message: message,
	}
	j.s.States = bounded(j.s.States, entered)
	j.inform(j.eventOf(entered))
}

// eventOf is a state as the channels are told of it.
func (j *journal) eventOf(s api.LifecycleState) notices.Event {
	e := notices.Event{
		ID: s.ID, Sequence: s.Sequence, State: s.State, At: s.At, Message: s.Message,
		Node: j.spec.Node, Requestor: j.spec.Requestor, Cluster: j.cluster, Groups: j.prepared.Groups,
		Owner: j.spec.Owner, Reason: j.spec.Reason, Ticket: j.spec.Ticket, Type: j.spec.Type,
		Phase: string(j.s.Phase), WorkflowID: j.workflowID, RunID: j.runID,
	}
	if d := j.s.Drain; d != nil {
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
func (j *journal) tellEnd(end ending) {
	if end.phase == api.Failed || end.phase == api.NodeGone {
		j.tell(notices.MaintenanceIncomplete, end.message)
	}
	j.tell(notices.MaintenanceEnded, end.message)
}

// tellEnded tells the end itself. A node that did not get its maintenance is back all the same.
func (j *journal) tellEnded(end ending) {
	if end.phase == api.Completed {
		j.tell(notices.MaintenanceComplete, end.message)
		return
	}
	j.tell(notices.MaintenanceCancelled, cmp.Or(end.message, string(end.phase)))
}
