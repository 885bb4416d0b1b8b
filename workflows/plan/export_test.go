package plan

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/inbox"
)

// ContinuedAfter is the workflow, continued as new after so many events; 0 is the usual number.
func ContinuedAfter(events int) func(workflow.Context, converter.RawValue, []byte) (api.PlanResult, error) {
	return func(ctx workflow.Context, input converter.RawValue, packed []byte) (api.PlanResult, error) {
		p, err := newPlan(controller.Identify(ctx), inbox.Payload(input))
		if err != nil {
			return api.PlanResult{}, err
		}
		p.ContinueAfter = events
		return p.run(ctx, input, packed)
	}
}
