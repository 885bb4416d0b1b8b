package plan

import (
	"cmp"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/bounds"
)

// statusOf is what an object shows of its plan. The conditions are those of kstatus. A plan whose nodes go through stages together is as it is
// to be when its nodes are where its stage has them; a plan that is paused stands still until somebody resumes it.
func statusOf(v client.PlanView) *v1alpha1.MaintenancePlanStatus {
	known := v.Known()
	is := &v1alpha1.MaintenancePlanStatus{Phase: known.Phase, Counts: known.Counts}
	is.WorkflowID, is.RunID = v.WorkflowID, v.FirstRunID
	if is.Phase == "" {
		mirror.Silent(is, v.Unanswered)
		return is
	}
	is.Message = bounds.Cut(cmp.Or(known.Message, known.WaitingFor), bounds.Text)
	if known.Since != nil {
		is.Since = mirror.At(*known.Since)
	}
	ended, failed := is.Ended(), is.Ended() && is.Phase != api.PlanCompleted
	paused, reached := is.Phase == api.PlanPaused, false
	add := func(kind string, holds bool) {
		is.Conditions = append(is.Conditions, mirror.Condition(kind, holds, string(is.Phase), is.Message))
	}
	if s := known.Stages; s != nil {
		reached = hasReached(s, known.Counts.Waiting)
		is.Stage, is.Tier, is.Drain = s.Stage, new(s.Tier), new(s.Nodes)
		if !ended {
			is.Conditions = append(is.Conditions, mirror.Condition(v1alpha1.Drained, s.Drained.Status, string(s.Stage), s.Drained.Message))
		}
	}
	add(v1alpha1.Reconciling, !ended && !paused && !reached)
	add(v1alpha1.Stalled, failed || paused)
	if ended {
		add(v1alpha1.Succeeded, !failed)
		add(v1alpha1.Failed, failed)
	}
	return is
}

// hasReached reports whether the nodes of a plan are where its stage has them, so that nothing happens before the next stage.
func hasReached(s *api.PlanStages, waiting int) bool {
	switch {
	case s.Stage == api.StageIdle:
		return true
	case s.Answered < s.Revision || waiting > 0:
		return false
	case s.Stage == api.StageDrain:
		return s.Drained.Status
	}
	return s.Stage != api.StageComplete && s.Nodes.Cordoned == s.Nodes.Held
}
