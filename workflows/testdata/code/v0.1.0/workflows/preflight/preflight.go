package preflight

import (
	preflightactivity "drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/preflight"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/preflight"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"go.temporal.io/sdk/workflow"
	"time"
)

const (
	// checkWithin bounds one check of a node, and aloneWithin those that a Preflight by itself has.
	checkWithin = 2 * time.Minute
	aloneWithin = 10 * time.Minute
)

// Check tells what a drain of the node of a maintenance would meet, as long as the context gives it time.
func Check(ctx workflow.Context, m spec.Maintenance, together []string) (preflight.Report, error) {
	options := workflow.GetActivityOptions(call.Quick(ctx, "preflight of "+m.Node))
	options.ScheduleToCloseTimeout = workflow.GetActivityOptions(ctx).ScheduleToCloseTimeout
	options.StartToCloseTimeout = checkWithin
	// It changes nothing, so nobody has to know how it ended.
	options.WaitForCancellation = false
	ctx = workflow.WithActivityOptions(ctx, options)
	var report preflight.Report
	err := workflow.ExecuteActivity(ctx, call.Preflights.CheckPreflight, preflightactivity.Input{
		Node: m.Node, Drain: m.Judged(), WaitsForPods: m.WaitForPodCompletion != nil, Together: together,
	}).Get(ctx, &report)
	return report, err
}
