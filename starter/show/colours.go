package show

import (
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/terminal"
)

// phaseStyle colours what is good, what somebody has to look at, and what is under way.
func phaseStyle(phase api.Phase) terminal.Style {
	switch phase {
	case api.Ready, api.Completed:
		return terminal.Good
	case api.RequestorFailed, api.Failed, api.NodeGone:
		return terminal.Bad
	case api.Cancelled:
		return terminal.Faint
	case api.Scheduled, api.Cordoning, api.Cordoned, api.WaitingForPods, api.Draining, api.Validating, api.Releasing:
		return terminal.Active
	default:
		return terminal.Plain
	}
}

// planStyle is the same for the phases of plans.
func planStyle(phase api.PlanPhase) terminal.Style {
	switch phase {
	case api.PlanCompleted:
		return terminal.Good
	case api.PlanPaused, api.PlanIncomplete, api.PlanAborted, client.PlanFailed:
		return terminal.Bad
	case api.PlanCancelled:
		return terminal.Faint
	case api.PlanRunning:
		return terminal.Active
	default:
		return terminal.Plain
	}
}

// stateStyle is the same for the states of a plan's nodes, in words.
func stateStyle(state string) terminal.Style {
	switch plan.State(state) {
	case plan.Done:
		return terminal.Good
	case plan.Held, plan.Failed:
		return terminal.Bad
	case plan.Running:
		return terminal.Active
	case plan.Skipped, plan.Gone:
		return terminal.Faint
	default:
		return terminal.Plain
	}
}
