// Package call has the options with which workflows call activities, and the stubs that name activities.
package call

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/markdown"
)

// maxSummary is how long a summary may be, in bytes: a server refuses longer ones, and with them the workflow task.
const maxSummary = 200

// Short cuts a summary to what the server takes, and escapes it: the Temporal UI shows it as Markdown.
func Short(summary string) string { return bounds.Cut(markdown.Text(summary), maxSummary) }

// Child returns the options of a child that outlives the workflow.
func Child(id, summary string) workflow.ChildWorkflowOptions {
	return workflow.ChildWorkflowOptions{
		WorkflowID:            id,
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         Short(summary),
	}
}

// TidyWithin bounds activities that only clean up.
const TidyWithin = 2 * time.Minute

// unlimited is the timeout of activities that wait for the cluster.
const unlimited = 10 * 365 * 24 * time.Hour

// Quick is for activities of one or a few requests, repeated until they succeed. A cancelled one is waited for: what it has done to a node must
// be known before that is undone.
func Quick(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		WaitForCancellation: true,
		Summary:             Short(summary),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
		},
	})
}

// Long is for activities that watch and act until something is done. They heartbeat, and a lost worker is noticed after ten seconds.
func Long(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: unlimited,
		HeartbeatTimeout:    10 * time.Second,
		Summary:             Short(summary),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
		},
	})
}

// Stoppable is Long for activities whose end is waited for when they are cancelled: they must be over before their effect is undone.
func Stoppable(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithWaitForCancellation(Long(ctx, summary), true)
}

// In carries out an activity in a lane.
func In(ctx workflow.Context, lane api.Lane) workflow.Context {
	return workflow.WithTaskQueue(ctx, lane.Queue(workflow.GetInfo(ctx).TaskQueueName))
}

// Within bounds an activity with all its attempts. The server keeps the time, so that it costs no timer.
func Within(ctx workflow.Context, limit time.Duration) workflow.Context {
	return workflow.WithScheduleToCloseTimeout(ctx, limit)
}

// Times bounds how often an activity is tried.
func Times(ctx workflow.Context, attempts int32) workflow.Context {
	policy := *workflow.GetActivityOptions(ctx).RetryPolicy
	policy.MaximumAttempts = attempts
	return workflow.WithRetryPolicy(ctx, policy)
}

// Pausing bounds the pause between two tries of an activity.
func Pausing(ctx workflow.Context, most time.Duration) workflow.Context {
	policy := *workflow.GetActivityOptions(ctx).RetryPolicy
	policy.MaximumInterval = most
	return workflow.WithRetryPolicy(ctx, policy)
}

// Local is for local activities: what the worker itself knows.
func Local(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: time.Minute,
		StartToCloseTimeout:    10 * time.Second,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond},
	})
}

// Glance is for local activities with one attempt, whose result the workflow can do without.
func Glance(ctx workflow.Context, limit time.Duration) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: limit, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}

// Cause returns the text of an error for people, without what Temporal wraps around it.
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

// IsError reports whether an activity failed with an error of one of the types, such as api.ErrorNodeGone.
func IsError(err error, types ...string) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && slices.Contains(types, cause.Type())
}

// IsNobody reports whether a signal or a cancellation was for a workflow that does not run.
func IsNobody(err error) bool {
	var nobody *temporal.UnknownExternalWorkflowExecutionError
	return errors.As(err, &nobody)
}

// IsOverdue reports whether the time of the whole activity is over, as opposed to that of one attempt.
func IsOverdue(err error) bool {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) && timeout.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE {
		return true
	}
	// The last attempt failed, by its own timeout or otherwise, and the next would have come too late.
	var attempts *temporal.ActivityError
	return errors.As(err, &attempts) && attempts.RetryState() == enums.RETRY_STATE_TIMEOUT
}
