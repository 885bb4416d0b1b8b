package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

const (
	// intrudes is the identity of a worker that has nothing to do with Drydock, and the type of the workflow and the activity that it has.
	intrudes = "chaos-intruder"
	// refusesWithin bounds the calls of all activities by one foreign workflow, attemptWithin one attempt: a task may be lost on its way.
	// A refusal is not tried again.
	refusesWithin = time.Minute
	attemptWithin = 10 * time.Second
)

// startIntruder has a worker without any workflow or activity of Drydock poll the queue of the lane's for as long as Temporal is
// out of reach in other faults. Tasks that it gets fail, and have to be tried again.
func startIntruder(ctx context.Context, a *attempt) (strike, recovery func() error) {
	queue := a.queue()
	intruder := worker.New(a.temporal.Client, queue, worker.Options{Identity: intrudes})
	intruder.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: intrudes})
	intruder.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: intrudes})
	recovery = func() error {
		defer intruder.Stop()
		seen := world.Eventually(ctx, cutFor, "the intruder polls "+queue, func() error {
			described, err := a.temporal.Client.DescribeTaskQueue(ctx, queue, enums.TASK_QUEUE_TYPE_ACTIVITY)
			if err != nil {
				return err
			}
			for _, p := range described.GetPollers() {
				if p.GetIdentity() == intrudes {
					return nil
				}
			}
			return errors.New("it does not")
		})
		return errors.Join(seen, world.Sleep(ctx, cutFor))
	}
	return intruder.Start, recovery
}

// callActivities calls the activities of the lane's worker for workflows that are not Drydock's. Each call must be refused: every
// activity, called by workflows that a worker of somebody's runs on a queue of its own, once under each of some types; and one that is
// called by a workflow which began there and goes on here.
func callActivities(ctx context.Context, a *attempt) error {
	activities, err := allActivities()
	if err != nil {
		return err
	}
	queue := a.cluster + "-" + intrudes
	kinds := []string{api.NodeMaintenanceType, api.SchedulerType, intrudes}
	foreign := worker.New(a.temporal.Client, queue, worker.Options{Identity: intrudes})
	for _, kind := range kinds {
		foreign.RegisterWorkflowWithOptions(callEach, workflow.RegisterOptions{Name: kind})
	}
	foreign.RegisterWorkflowWithOptions(goOnElsewhere, workflow.RegisterOptions{Name: api.PreflightType})
	if err := foreign.Start(); err != nil {
		return err
	}
	defer foreign.Stop()
	ctx, cancel := context.WithTimeout(ctx, refusesWithin)
	defer cancel()
	var problems []error
	for _, kind := range kinds {
		run, err := a.temporal.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: fmt.Sprintf("%s/%s/%s/%s", a.cluster, forged, kind, newUUID()), TaskQueue: queue, WorkflowRunTimeout: refusesWithin,
		}, kind, calls{Queue: a.queue(), Activities: activities})
		var taken []string
		if err == nil {
			err = run.Get(ctx, &taken)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("calls by a %s of somebody's: %w", kind, err))
		}
		for _, text := range taken {
			problems = append(problems, fmt.Errorf("called by a %s of somebody's: %s", kind, text))
		}
	}
	return errors.Join(append(problems, beginElsewhere(ctx, a, queue))...)
}

// beginElsewhere starts a Preflight on a queue of somebody's, which continues as new on the lane's: the lane's worker runs it then, and
// must refuse what it calls.
func beginElsewhere(ctx context.Context, a *attempt, queue string) error {
	run, err := a.temporal.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: fmt.Sprintf("%s/%s/%s", a.cluster, forged, newUUID()), TaskQueue: queue, WorkflowRunTimeout: refusesWithin,
	}, api.PreflightType, onward{Queue: a.queue(), Input: fields{"node": a.nodes[0], "requestor": forged}})
	if err == nil {
		err = run.Get(ctx, nil)
	}
	var refused *temporal.ApplicationError
	for cause := err; errors.As(cause, &refused); cause = refused.Unwrap() {
		if refused.Type() == api.ErrorForeignCaller && strings.Contains(refused.Message(), "was begun as") {
			return nil
		}
	}
	return fmt.Errorf("a Preflight that was begun on %s: got %w, want %s", queue, err, api.ErrorForeignCaller)
}

// onward is where a workflow continues as new, and with which input.
type onward struct {
	Queue string `json:"queue"`
	Input fields `json:"input"`
}

func goOnElsewhere(ctx workflow.Context, in onward) error {
	return workflow.NewContinueAsNewError(workflow.WithWorkflowTaskQueue(ctx, in.Queue), api.PreflightType, in.Input)
}

// calls are the activities that a foreign workflow calls, and the queue on which they are.
type calls struct {
	Queue      string   `json:"queue"`
	Activities []string `json:"activities"`
}

// callEach calls all activities at once, and returns those that were not refused.
func callEach(ctx workflow.Context, in calls) (taken []string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: in.Queue, ScheduleToCloseTimeout: refusesWithin * 3 / 4, StartToCloseTimeout: attemptWithin,
	})
	var called []workflow.Future
	for _, name := range in.Activities {
		called = append(called, workflow.ExecuteActivity(ctx, name, nil)) // every input can be read from nothing
	}
	for i, future := range called {
		var refused *temporal.ApplicationError
		err := future.Get(ctx, nil)
		if !errors.As(err, &refused) || refused.Type() != api.ErrorForeignCaller {
			taken = append(taken, fmt.Sprintf("%s: got %v, want %s", in.Activities[i], err, api.ErrorForeignCaller))
		}
	}
	return slices.Clip(taken), nil
}

// activityRow is the name of an activity in the table of those who may call it.
var activityRow = regexp.MustCompile(`(?m)^\t"(\w+)": +from\(`)

// allActivities are the names of the worker's activities. They are read from the source: chaos links none of them.
func allActivities() ([]string, error) {
	root, err := devstack.Root()
	if err != nil {
		return nil, err
	}
	table, err := os.ReadFile(filepath.Join(root, "activities", "caller", "table.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, row := range activityRow.FindAllStringSubmatch(string(table), -1) {
		names = append(names, row[1])
	}
	if len(names) == 0 {
		return nil, errors.New("activities/caller/table.go names no activity")
	}
	return names, nil
}
