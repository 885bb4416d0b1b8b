package nodework

import (
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/starter/exit"
)

// RolloutCode is the exit code of a rollout.
func RolloutCode(outcomes []api.NodeOutcome) int {
	code := exit.OK
	for _, o := range outcomes {
		switch o.Result {
		case api.OutcomeFailed:
			return exit.Failed
		case api.OutcomeCancelled, api.OutcomeNotStarted:
			code = exit.Cancelled
		}
	}
	return code
}
