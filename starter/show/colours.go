package show

import (
	"drydock/api"
	"drydock/starter/terminal"
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
	case api.Scheduled, api.Cordoning, api.WaitingForPods, api.Draining, api.Validating, api.Releasing:
		return terminal.Active
	default:
		return terminal.Plain
	}
}
