package main

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/lab/world"
)

// errNotBegun: there is nothing yet to go back to.
var errNotBegun = errors.New("no workflow task was begun")

// resetMaintenances resets all maintenances that run, and their plan, as the cure of a bad deploy does; where none runs, or
// the step is their end, those that have ended too.
func (a *attempt) resetMaintenances(ctx context.Context) error {
	running, ended, err := a.executions(ctx)
	if err != nil {
		return err
	}
	planReset, err := planOf(a).resetPlan(ctx)
	if err != nil {
		return err
	}
	done := 0
	if planReset {
		done++
	} else if len(running) == 0 || a.cell.step.name == "end" {
		running = append(running, ended...)
	}
	for _, e := range running {
		switch err := a.reset(ctx, e.id, e.run); {
		case err == nil:
			done++
		case !errors.Is(err, errNotBegun):
			return err
		}
	}
	if done == 0 {
		return fmt.Errorf("none of %d maintenances could be reset", len(running))
	}
	return nil
}

// resetRunning resets the present run of a workflow.
func (a *attempt) resetRunning(ctx context.Context, id string) error {
	described, err := a.temporal.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return err
	}
	return a.reset(ctx, id, described.WorkflowExecutionInfo.Execution.RunId)
}

// reset has a run begin its last workflow task anew, as `temporal workflow reset --type LastWorkflowTask` does.
func (l *lane) reset(ctx context.Context, id, run string) error {
	execution := &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}
	to, err := l.lastTask(ctx, execution)
	if err != nil {
		return err
	}
	_, err = world.Reset(ctx, l.temporal.Client, id, run, to)
	return err
}

// lastTask is the event that completed a run's last workflow task, or began the only one.
func (l *lane) lastTask(ctx context.Context, execution *commonpb.WorkflowExecution) (int64, error) {
	request := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{Namespace: client.DefaultNamespace, Execution: execution}
	var begun int64
	for {
		page, err := l.temporal.Client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, request)
		if err != nil {
			return 0, err
		}
		for _, event := range page.GetHistory().GetEvents() {
			switch event.EventType {
			case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
				return event.EventId, nil
			case enums.EVENT_TYPE_WORKFLOW_TASK_STARTED:
				begun = event.EventId
			}
		}
		request.NextPageToken = page.NextPageToken
		if len(page.NextPageToken) == 0 {
			break
		}
	}
	if begun == 0 {
		return 0, errNotBegun
	}
	return begun, nil
}
