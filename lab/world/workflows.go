package world

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
)

// Begin starts a workflow on the default task queue with an input in JSON, unless a workflow of the ID runs.
func Begin(ctx context.Context, temporal client.Client, id, kind, input string) error {
	options := client.StartWorkflowOptions{ID: id, TaskQueue: api.DefaultTaskQueue}
	_, err := temporal.ExecuteWorkflow(ctx, options, kind, json.RawMessage(input))
	return err
}

// Ask returns the answer of a workflow's latest run to a query.
func Ask[T any](ctx context.Context, temporal client.Client, id, query string, args ...any) (answer T, err error) {
	value, err := temporal.QueryWorkflow(ctx, id, "", query, args...)
	if err == nil {
		err = value.Get(&answer)
	}
	return answer, err
}

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
		Reason: "by hand", WorkflowTaskFinishEventId: task, RequestId: crand.Text(),
	})
	if err != nil {
		return "", fmt.Errorf("resetting %s to event %d: %w", id, task, err)
	}
	return answer.GetRunId(), nil
}

// ResetByChance resets the latest run of a workflow to one of its workflow tasks, and says to which. The dice choose among the tasks after
// the first percent of them.
func ResetByChance(ctx context.Context, temporal client.Client, dice *rand.Rand, id string, percent int) (said string, err error) {
	described, err := temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return "", err
	}
	run := described.WorkflowExecutionInfo.Execution.RunId
	tasks, err := Tasks(ctx, temporal, id, run)
	if err != nil {
		return "", err
	}
	least := len(tasks) * percent / 100
	at := least + dice.IntN(len(tasks)-least)
	next, err := Reset(ctx, temporal, id, run, tasks[at])
	return fmt.Sprintf("run %s (%s) to task %d of %d, goes on as %s", run, described.WorkflowExecutionInfo.Status, at+1, len(tasks), next), err
}
