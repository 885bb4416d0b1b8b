package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
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
	planReset, err := a.resetPlan(ctx)
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

func (a *attempt) resetRunning(ctx context.Context, id string) error {
	described, err := a.temporal.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return err
	}
	return a.reset(ctx, id, described.WorkflowExecutionInfo.Execution.RunId)
}

// hit resets or terminates one of Drydock's workflows that is no maintenance. It is nil if the fault is another.
func (a *attempt) hit(ctx context.Context) func() error {
	check, profiles, lockstep := api.HealthCheckID(a.cluster, checkName), api.ProfilesID(a.cluster), api.LockstepID(a.cluster)
	remediation := func(node string) string { return api.RemediationID(a.cluster, checkName, node) }
	transition := func(node string) string { return api.ProfileTransitionID(a.cluster, a.cell.step.profile, node) }
	strike, known := map[kind]func() error{
		resetScheduler:       func() error { return a.resetRunning(ctx, api.SchedulerID(a.cluster)) },
		resetLockstep:        func() error { return a.resetRunning(ctx, lockstep) },
		terminateLockstep:    func() error { return a.terminate(ctx, lockstep) },
		resetCheck:           func() error { return a.resetRunning(ctx, check) },
		terminateCheck:       func() error { return a.terminate(ctx, check) },
		resetRemediation:     func() error { return a.hitRunning(ctx, remediation, a.resetRunning) },
		terminateRemediation: func() error { return a.hitRunning(ctx, remediation, a.terminate) },
		resetProfiles:        func() error { return a.resetRunning(ctx, profiles) },
		terminateProfiles:    func() error { return a.terminate(ctx, profiles) },
		resetTransition:      func() error { return a.hitRunning(ctx, transition, a.resetRunning) },
		terminateTransition:  func() error { return a.hitRunning(ctx, transition, a.terminate) },
	}[a.cell.kind]
	if !known {
		return nil
	}
	// What is hit may be about to begin.
	return func() error { return world.Eventually(ctx, 15*time.Second, string(a.cell.kind), strike) }
}

// hitRunning resets or terminates the workflow of one of the nodes that runs.
func (a *attempt) hitRunning(ctx context.Context, idOf func(node string) string, hit func(context.Context, string) error) error {
	for _, node := range a.nodes {
		described, err := a.temporal.Client.DescribeWorkflowExecution(ctx, idOf(node), "")
		if err == nil && described.WorkflowExecutionInfo.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return hit(ctx, idOf(node))
		}
	}
	return errors.New("none runs")
}

func (l *lane) terminate(ctx context.Context, id string) error {
	return l.temporal.Client.TerminateWorkflow(ctx, id, "", "chaos: by hand")
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
