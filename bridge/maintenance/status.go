package maintenance

import (
	"cmp"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/bounds"
)

// statusOf is what an object shows of its maintenance. The conditions are those of kstatus, so that tools know without more when an object is
// as it is to be: while the node is out of service for its requestors, and once the maintenance was completed.
func statusOf(v client.View) *v1alpha1.NodeMaintenanceStatus {
	is := &v1alpha1.NodeMaintenanceStatus{Phase: v.Phase()}
	is.WorkflowID, is.RunID = v.WorkflowID, v.FirstRunID
	if is.Phase == "" {
		mirror.Silent(is, v.Unanswered)
		return is
	}
	is.Message = bounds.Cut(cmp.Or(v.Message(), v.Known().WaitingFor), bounds.Text)
	if v.Status != nil {
		is.Since = mirror.At(v.Status.Since)
		for _, r := range v.Status.Requestors {
			is.Requestors = append(is.Requestors, v1alpha1.Requestor{Name: r.Name, Done: r.DoneAt != nil})
		}
		if d := v.Status.Drain; d != nil {
			is.Drain = &v1alpha1.Drain{Ended: int32(d.Ended()), Remaining: int32(d.Remaining), Blocked: int32(len(d.Blockers) + d.MoreBlockers)} //nolint:gosec // pods of one node
		}
	}
	phase := is.Phase
	if all := v.Transitions(); phase.Ended() && len(all) > 0 {
		is.Since = mirror.At(all[len(all)-1].At)
	}
	add := func(kind string, holds bool) {
		is.Conditions = append(is.Conditions, mirror.Condition(kind, holds, string(phase), is.Message))
	}
	ready, failed := phase == api.Ready, phase.Ended() && phase != api.Completed
	undecided := phase == api.RequestorFailed || v.IsUndecided()
	add(v1alpha1.Reconciling, !ready && !phase.Ended() && !undecided)
	add(v1alpha1.Stalled, failed || undecided)
	if !phase.Ended() {
		add(v1alpha1.Ready, ready)
	} else {
		add(v1alpha1.Succeeded, !failed)
		add(v1alpha1.Failed, failed)
	}
	return is
}
