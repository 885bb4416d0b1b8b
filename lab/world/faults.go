package world

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Tasks are the events that completed the workflow tasks of a run: to each of them the run can be reset.
func Tasks(ctx context.Context, temporal client.Client, id, run string) (tasks []int64, err error) {
	for events := temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			return nil, err
		}
		if event.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			tasks = append(tasks, event.EventId)
		}
	}
	if len(tasks) == 0 {
		return nil, errors.New("it has no workflow task yet")
	}
	return tasks, nil
}

// Reset has a workflow go on from a workflow task of one of its runs, and returns the run that does.
func Reset(ctx context.Context, temporal client.Client, id, run string, task int64) (string, error) {
	answer, err := temporal.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason: "by hand", WorkflowTaskFinishEventId: task, RequestId: rand.Text(),
	})
	if err != nil {
		return "", fmt.Errorf("resetting %s to event %d: %w", id, task, err)
	}
	return answer.GetRunId(), nil
}
