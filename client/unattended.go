package client

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

const (
	// fetchedWithin is how soon a worker that is there fetches what waits for it, or at least polls, as it does whenever
	// it is done with something.
	fetchedWithin = 5 * time.Second
	lookEvery     = 500 * time.Millisecond
)

// resultOf waits for what a workflow returns. A workflow that fails is a FailedError; where no worker sees to it, that is a
// NoWorkerError.
func (s *server) resultOf(ctx context.Context, run temporalclient.WorkflowRun, what string, result any) error {
	attended, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	go func() {
		if err := s.untilUnattended(attended, run.GetID(), run.GetRunID()); err != nil {
			abandon(err)
		}
	}()
	err := run.Get(attended, result)
	var failed *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case attended.Err() != nil:
		return context.Cause(attended)
	case errors.As(err, &failed):
		return &FailedError{What: what, Reason: failed.Message(), Kind: failed.Type()}
	default:
		return failedCall(what, err)
	}
}

// untilUnattended returns a NoWorkerError once a task of a run waits and nobody polls for it, and nil if the run or ctx
// ends before.
func (s *server) untilUnattended(ctx context.Context, id, run string) error {
	var w waiting
	for sleep(ctx, lookEvery) {
		described, err := s.describe(ctx, id, run)
		switch {
		case isA[*serviceerror.NotFound](err):
			return nil
		case err != nil:
			continue // whoever waits for the result sees it
		case described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
			return nil
		}
		task := waitingTask(described)
		if task.IsZero() {
			w = waiting{}
			continue
		}
		seen, err := s.lastPoll(ctx)
		if err == nil && w.unattended(task, seen, s.now()) {
			s.remember(seen)
			return s.silentWorker()
		}
	}
	return nil
}

// waitingTask is when the workflow task was scheduled that waits for a worker; zero if none does.
func waitingTask(described *workflowservice.DescribeWorkflowExecutionResponse) time.Time {
	task := described.GetPendingWorkflowTask()
	if task == nil || task.GetState() != enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED {
		return time.Time{}
	}
	return task.GetScheduledTime().AsTime()
}

type waiting struct {
	task, polled, since time.Time
}

// unattended reports whether the same task has been waiting, and nobody has polled, for too long. A worker that polls has much to
// do, and comes to it.
func (w *waiting) unattended(task, polled, now time.Time) bool {
	if !w.task.Equal(task) || polled.After(w.polled) {
		*w = waiting{task: task, polled: polled, since: now}
		return false
	}
	return now.Sub(w.since) >= fetchedWithin
}
