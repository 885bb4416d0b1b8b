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

func (t *takers) killWorkers(ctx context.Context, which ...int) error {
	ctx, cancel := again(ctx)
	defer cancel()
	for _, i := range which {
		t.Workers[i].Kill()
	}
	var problems []error
	for _, i := range which {
		problems = append(problems, t.Workers[i].Start(ctx))
	}
	if err := errors.Join(problems...); err != nil {
		t.judge.wrong.Add("a worker does not start: %v", err)
	}
	return nil
}

func (t *takers) killTemporal(ctx context.Context) error {
	ctx, cancel := again(ctx)
	defer cancel()
	if err := t.RestartTemporal(ctx); err != nil {
		t.judge.wrong.Add("Temporal does not start: %v", err)
	}
	return nil
}

func (t *takers) terminate(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return t.Temporal.Client.TerminateWorkflow(ctx, id, "", "by hand")
}

func (t *takers) isRunning(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	described, err := t.Temporal.Client.DescribeWorkflowExecution(ctx, id, "")
	return err != nil || described.WorkflowExecutionInfo.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// reset has a workflow that runs go on from one of the workflow tasks of its latest run.
func (t *takers) reset(ctx context.Context, dice *rand.Rand, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if !t.isRunning(ctx, id) {
		return errors.New("it does not run")
	}
	_, err := world.ResetByChance(ctx, t.Temporal.Client, dice, id, 0)
	return err
}
