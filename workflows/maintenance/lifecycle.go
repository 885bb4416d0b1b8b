package maintenance

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/record"
)

// tell notes that the maintenance has come into a state that the outside knows (NotifyMaintenance, Maintenance Status),
// and has its channels told that there is something new.
func (j *journal) tell(state notices.State, message string) {
	entered := api.LifecycleState{
		Sequence: 1, State: state, At: workflow.Now(j.ctx), Message: record.Cut(message, record.MaxText), Phase: j.s.Phase,
	}
	if n := len(j.s.States); n > 0 {
		entered.Sequence = j.s.States[n-1].Sequence + 1
	}
	entered.ID = api.EventID(j.workflowID, j.runID, entered.Moment())
	if d := j.s.Drain; d != nil {
		for _, b := range d.Blockers[:min(blockersTold, len(d.Blockers))] {
			entered.Blockers = append(entered.Blockers, record.Cut(b.Pod+": "+b.Message, record.MaxText))
		}
		entered.MoreBlockers = len(d.Blockers) + d.MoreBlockers - len(entered.Blockers)
	}
	j.s.States = bounded(j.s.States, entered)
	j.inform(j.eventOf(entered))
}

// eventOf is a state as the channels are told of it.
func (j *journal) eventOf(s api.LifecycleState) notices.Event { return api.EventOf(j.s, j.cluster, s) }

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
