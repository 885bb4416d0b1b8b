package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

// goWrong lets one thing go wrong, and waits until it is over.
func (t *takers) goWrong(ctx context.Context, dice *rand.Rand) {
	deciders := []string{api.SchedulerID(""), api.ProfilesID(""), api.HealthCheckID("", checkName), api.PlanID("", planName)}
	node := world.NodeName(dice.IntN(t.nodes))
	others := []string{
		api.RemediationID("", checkName, node), api.MaintenanceID("", node, "sre"), api.MaintenanceID("", node, planRequestor),
		api.ProfileTransitionID("", profileName, node),
	}
	var what string
	var err error
	switch n := dice.IntN(100); {
	case n < 30:
		what, err = "kill a worker", t.killWorkers(ctx, dice.IntN(workers))
	case n < 36:
		what, err = "kill both workers", t.killWorkers(ctx, 0, 1)
	case n < 42:
		what, err = "kill Temporal", t.killTemporal(ctx)
	case n < 70:
		id := deciders[dice.IntN(len(deciders))]
		what, err = "reset "+id, t.reset(ctx, dice, id)
	case n < 80:
		id := deciders[dice.IntN(len(deciders))]
		what, err = "terminate "+id, t.terminate(ctx, id)
	default:
		id := others[dice.IntN(len(others))]
		if what, err = "reset "+id, t.reset(ctx, dice, id); dice.IntN(3) == 0 {
			what, err = "terminate "+id, t.terminate(ctx, id)
		}
	}
	if err != nil {
		what += ": " + err.Error() // most of what is not there cannot be hit
	}
	world.Say("%s", what)
}

// again is for what has to be put right also when the time is over.
func again(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
}

// killWorkers kills workers and starts them again.
func (t *takers) killWorkers(ctx context.Context, which ...int) error {
	ctx, cancel := again(ctx)
	defer cancel()
	for _, i := range which {
		t.stack.workers[i].Kill()
	}
	var problems []error
	for _, i := range which {
		problems = append(problems, t.stack.startWorker(ctx, i))
	}
	if err := errors.Join(problems...); err != nil {
		t.judge.violated("a worker does not start: %v", err)
	}
	return nil
}

func (t *takers) killTemporal(ctx context.Context) error {
	ctx, cancel := again(ctx)
	defer cancel()
	t.stack.Temporal.Kill()
	if err := t.stack.Temporal.Start(ctx); err != nil {
		t.judge.violated("Temporal does not start: %v", err)
	}
	return nil
}

func (t *takers) terminate(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return t.stack.Temporal.Client.TerminateWorkflow(ctx, id, "", "by hand")
}

func (t *takers) isRunning(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	described, err := t.stack.Temporal.Client.DescribeWorkflowExecution(ctx, id, "")
	return err != nil || described.WorkflowExecutionInfo.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// reset has a workflow that runs go on from one of the workflow tasks of its latest run.
func (t *takers) reset(ctx context.Context, dice *rand.Rand, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	temporal := t.stack.Temporal.Client
	described, err := temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return err
	}
	if described.WorkflowExecutionInfo.Status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return errors.New("it does not run")
	}
	run := described.WorkflowExecutionInfo.Execution.RunId
	tasks, err := world.Tasks(ctx, temporal, id, run)
	if err != nil {
		return err
	}
	_, err = world.Reset(ctx, temporal, id, run, tasks[dice.IntN(len(tasks))])
	return err
}
