package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"drydock.dev/drydock/maintain/maintaintest"
)

func TestTheRolloutStopsAtANodeThatCannotBeFlashed(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	maintenances := maintaintest.Register(env)
	env.RegisterActivityWithOptions(func(_ context.Context, node string) error {
		if node == "b" {
			return temporal.NewNonRetryableApplicationError("wrong checksum", "Flash", errors.New("exit status 1"))
		}
		return nil
	}, activity.RegisterOptions{Name: "Flash"})
	env.ExecuteWorkflow(Rollout, RolloutInput{Nodes: []string{"a", "b", "c"}, Reason: "BIOS 2.4"})
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "b: ") || !strings.Contains(err.Error(), "wrong checksum") {
		t.Errorf("it ended with %v", err)
	}
	if want := []string{"a: done", "b: failed: wrong checksum"}; !slices.Equal(maintenances.Told(), want) {
		t.Errorf("told %q, want %q", maintenances.Told(), want)
	}
}
