package call

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/markdown"
	"errors"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"time"
)

// maxSummary is how long a summary may be, in bytes: a server refuses longer ones, and with them the workflow task.
const maxSummary = 200

// short is a summary as the server takes it, and the Temporal UI shows it: as Markdown.
func short(summary string) string { return bounds.Cut(markdown.Text(summary), maxSummary) }

// Child is how a workflow starts another that outlives it.
func Child(id, summary string) workflow.ChildWorkflowOptions {
	return workflow.ChildWorkflowOptions{
		WorkflowID:            id,
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         short(summary),
	}
}

// TidyWithin bounds what is only tidied up.
const TidyWithin = 2 * time.Minute

// unlimited is the time given to activities that end when the world is ready and not before.
const unlimited = 10 * 365 * 24 * time.Hour

// Quick is for one or a few requests to the API server, repeated until they succeed. A cancelled one is waited for:
// what it does to a node must be known before that is undone.
func Quick(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		WaitForCancellation: true,
		Summary:             short(summary),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
		},
	})
}

// Long is for activities that watch and act until something is done. They heartbeat, and a lost worker is noticed
// after ten seconds.
func Long(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: unlimited,
		HeartbeatTimeout:    10 * time.Second,
		Summary:             short(summary),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
		},
	})
}

// Stoppable is a long one whose end is waited for when it is cancelled: what it does must be over before that is undone.
func Stoppable(ctx workflow.Context, summary string) workflow.Context {
	ctx = Long(ctx, summary)
	options := workflow.GetActivityOptions(ctx)
	options.WaitForCancellation = true
	return workflow.WithActivityOptions(ctx, options)
}

// In has an activity carried out in a lane.
func In(ctx workflow.Context, lane api.Lane) workflow.Context {
	options := workflow.GetActivityOptions(ctx)
	options.TaskQueue = lane.Queue(workflow.GetInfo(ctx).TaskQueueName)
	return workflow.WithActivityOptions(ctx, options)
}

// Within bounds an activity's whole life, attempts included: the server keeps that clock, so it costs no timer.
func Within(ctx workflow.Context, limit time.Duration) workflow.Context {
	options := workflow.GetActivityOptions(ctx)
	options.ScheduleToCloseTimeout = limit
	return workflow.WithActivityOptions(ctx, options)
}

// Times bounds how often an activity is tried.
func Times(ctx workflow.Context, attempts int32) workflow.Context {
	options := workflow.GetActivityOptions(ctx)
	policy := *options.RetryPolicy
	policy.MaximumAttempts = attempts
	options.RetryPolicy = &policy
	return workflow.WithActivityOptions(ctx, options)
}

// Local is for what the worker knows by itself.
func Local(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: time.Minute,
		StartToCloseTimeout:    10 * time.Second,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond},
	})
}

// Glance is for what the worker knows by itself as a rule, or else does without.
func Glance(ctx workflow.Context, limit time.Duration) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: limit, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}

// Cause is what went wrong, in words for people: without what Temporal says around it.
func Cause(err error) string {
	var cause *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	var cancelled *temporal.CanceledError
	switch {
	case errors.As(err, &cause):
		return cause.Message()
	case errors.As(err, &timeout) && timeout.TimeoutType() == enums.TIMEOUT_TYPE_HEARTBEAT:
		return "the worker that did it was lost"
	case errors.As(err, &timeout):
		return "it did not end in time"
	case errors.As(err, &cancelled):
		return "it was cancelled"
	default:
		return err.Error()
	}
}

// IsOverdue tells whether an activity's whole time is over, as opposed to one attempt's.
func IsOverdue(err error) bool {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) && timeout.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE {
		return true
	}
	// The last attempt failed, by its own timeout or otherwise, and the next would have come too late.
	var attempts *temporal.ActivityError
	return errors.As(err, &attempts) && attempts.RetryState() == enums.RETRY_STATE_TIMEOUT
}
