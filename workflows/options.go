package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities"
)

// Stubs of the activities, to name them in ExecuteActivity; their dependencies are the worker's business.
var (
	nodes      *activities.Nodes
	drains     *activities.Drains
	cluster    *activities.Cluster
	executions *activities.Executions
	settings   *activities.Settings
	preflights *activities.Preflights
	doctors    *activities.Doctors
	returns    *activities.Checks
	notifier   *activities.Notices
)

// forEver is the time given to activities that end when the world is ready and not before.
const forEver = 10 * 365 * 24 * time.Hour

// quick is for one or a few requests to the API server, repeated until they succeed. A cancelled one is waited for:
// what it does to a node must be known before that is undone.
func quick(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		WaitForCancellation: true,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
		},
	})
}

// long is for activities that watch and act until something is done. They heartbeat, and a lost worker is noticed
// after ten seconds.
func long(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: forEver,
		HeartbeatTimeout:    10 * time.Second,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
		},
	})
}

// stoppable is a long one whose end is waited for when it is cancelled: what it does must be over before that is undone.
func stoppable(ctx workflow.Context, summary string) workflow.Context {
	ctx = long(ctx, summary)
	options := workflow.GetActivityOptions(ctx)
	options.WaitForCancellation = true
	return workflow.WithActivityOptions(ctx, options)
}

// within bounds an activity's whole life, attempts included: the server keeps that clock, so it costs no timer.
func within(ctx workflow.Context, limit time.Duration) workflow.Context {
	options := workflow.GetActivityOptions(ctx)
	options.ScheduleToCloseTimeout = limit
	return workflow.WithActivityOptions(ctx, options)
}

// atHand is for what the worker knows by itself.
func atHand(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: time.Minute,
		StartToCloseTimeout:    10 * time.Second,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond},
	})
}
