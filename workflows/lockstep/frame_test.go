package lockstep_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	activity "drydock.dev/drydock/activities/lockstep"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/lockstep"
	"drydock.dev/drydock/workflows/workflowtest"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// alone is the workflow as it is registered, with nothing but a search for what runs, which takes a minute.
func alone(t *testing.T) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	env := workflowtest.Environment(start)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: api.LockstepID(""), TaskQueue: api.DefaultTaskQueue})
	env.RegisterActivity(&activity.Activities{})
	env.OnActivity("FindShared", mock.Anything, mock.Anything).After(time.Minute).Return(
		func(context.Context, activity.QueueInput) (activity.Running, error) { return activity.Running{}, nil })
	return env
}

// A future that is waited for on the context of a cancelled workflow is never ready: to read it fails the workflow task.
func TestACancellationEndsTheWorkflow(t *testing.T) {
	env := alone(t)
	env.RegisterDelayedCallback(env.CancelWorkflow, 10*time.Second)
	env.ExecuteWorkflow(lockstep.Lockstep, []byte(nil))
	var cancelled *temporal.CanceledError
	if err := env.GetWorkflowError(); !errors.As(err, &cancelled) {
		t.Errorf("it ends with %v", err)
	}
}

// The workflow stands still until a worker of a release that can read the state runs.
func TestAStateThatCannotBeReadFailsTheTask(t *testing.T) {
	good, err := api.Pack(map[string]any{"needs": 9})
	if err != nil {
		t.Fatal(err)
	}
	for name, packed := range map[string][]byte{"no state": []byte("nonsense"), "a state of a newer release": good} {
		t.Run(name, func(t *testing.T) {
			env := alone(t)
			env.SetContinuedExecutionRunID("before")
			env.ExecuteWorkflow(lockstep.Lockstep, packed)
			var failed *temporal.PanicError
			if err := env.GetWorkflowError(); !errors.As(err, &failed) || !strings.Contains(err.Error(), "stands still") {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
