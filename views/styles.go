package views

import (
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/profile/state"
)

// PhaseStyle colours what is good, what somebody has to look at, and what is under way.
func PhaseStyle(phase api.Phase) document.Style {
	switch phase {
	case api.Ready, api.Completed:
		return document.Good
	case api.RequestorFailed, api.Failed, api.NodeGone:
		return document.Bad
	case api.Cancelled:
		return document.Faint
	case api.Scheduled, api.Cordoning, api.Cordoned, api.WaitingForPods, api.Draining, api.Validating, api.Releasing:
		return document.Active
	default:
		return document.Plain
	}
}

// PlanStyle is the same for the phases of plans.
func PlanStyle(phase api.PlanPhase) document.Style {
	switch phase {
	case api.PlanCompleted:
		return document.Good
	case api.PlanPaused, api.PlanIncomplete, api.PlanAborted, api.PlanFailed:
		return document.Bad
	case api.PlanCancelled:
		return document.Faint
	case api.PlanRunning:
		return document.Active
	default:
		return document.Plain
	}
}

// HealthStyle is the same for the phases of health checks.
func HealthStyle(phase health.Phase) document.Style {
	switch phase {
	case health.PhaseEnabled:
		return document.Good
	case health.PhaseDisabled:
		return document.Bad
	case health.PhaseRemediating:
		return document.Active
	case health.PhasePaused:
		return document.Faint
	default:
		return document.Plain
	}
}

// StateStyle is the same for the states of a plan's nodes, in words.
func StateStyle(state string) document.Style {
	switch plan.State(state) {
	case plan.Done:
		return document.Good
	case plan.Held, plan.Failed:
		return document.Bad
	case plan.Running:
		return document.Active
	case plan.Skipped, plan.Gone:
		return document.Faint
	default:
		return document.Plain
	}
}

// profileStyle is the same for the states of a node's profile.
func profileStyle(p api.NodeProfile) document.Style {
	switch {
	case p.Failure != "" || len(p.Failing) > 0:
		return document.Bad
	case p.Unknown:
		return document.Faint
	case p.State == state.Operational:
		return document.Good
	case p.State == state.Maintenance:
		return document.Active
	default:
		return document.Plain
	}
}
