package health

import (
	"cmp"

	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/health"
)

// statusOf is what an object shows of its check. A check goes on for ever: it is as it is to be while it decides, whether or not a node is ill.
func statusOf(v client.HealthCheckView) *v1alpha1.HealthCheckStatus {
	known := v.Known()
	is := &v1alpha1.HealthCheckStatus{Phase: known.Phase, Counts: known.Counts}
	is.WorkflowID, is.RunID = v.WorkflowID, v.FirstRunID
	switch {
	case !v.Running():
		is.Phase = v1alpha1.HealthCheckEnded
	case v.Status == nil:
		mirror.Silent(is, v.Unanswered)
		return is
	}
	is.Message = bounds.Cut(cmp.Or(known.Message, known.Blocked, known.WaitingFor, known.Reason), bounds.Text)
	ended := is.Phase == v1alpha1.HealthCheckEnded
	decides := !ended && known.WaitingFor == "" && is.Phase != health.PhasePaused && is.Phase != health.PhaseDisabled
	for _, c := range []struct {
		kind  string
		holds bool
	}{
		{v1alpha1.Reconciling, !ended && known.WaitingFor != ""},
		{v1alpha1.Stalled, ended || is.Phase == health.PhaseDisabled},
		{v1alpha1.Ready, decides},
	} {
		is.Conditions = append(is.Conditions, mirror.Condition(c.kind, c.holds, string(is.Phase), is.Message))
	}
	return is
}
