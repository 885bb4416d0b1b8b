package planrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/planrun"
	"drydock.dev/drydock/workflows/workflowtest"
)

const (
	runID = "maintenance-plan-run/patches-2026-03-02T22:00:00Z"
	input = `{"name":"patches","plan":{"nodes":["a","b"],"reason":"patches"}}`
)

// newEnv is an environment in which a plan lasts an hour and then ends with an error, or completes.
func newEnv(t *testing.T, end error) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(time.Date(2026, 3, 2, 22, 0, 0, 0, time.UTC))
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: runID, TaskQueue: api.DefaultTaskQueue})
	env.RegisterActivity(call.Plans)
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context, plan json.RawMessage) (api.PlanResult, error) {
		if string(plan) != `{"nodes":["a","b"],"reason":"patches"}` || workflow.GetInfo(ctx).WorkflowExecution.ID != "maintenance-plan/patches" {
			t.Errorf("%s has %s", workflow.GetInfo(ctx).WorkflowExecution.ID, plan)
		}
		result := api.PlanResult{Name: "patches", Phase: api.PlanCompleted, Message: "2 of 2 nodes are done"}
		if workflow.Sleep(ctx, time.Hour) != nil {
			result.Phase, result.Message = api.PlanCancelled, "cancelled"
			return result, temporal.NewCanceledError(result)
		}
		return result, end
	}, workflow.RegisterOptions{Name: api.MaintenancePlanType})
	return env
}

// ended runs the workflow, and tells what it returned and how long it lasted.
func ended(t *testing.T, env *testsuite.TestWorkflowEnvironment) (result api.PlanRunResult, lasted time.Duration, err error) {
	t.Helper()
	began := env.Now()
	env.ExecuteWorkflow(planrun.MaintenancePlanRun, workflowtest.Raw(input))
	if !env.IsWorkflowCompleted() {
		t.Fatal("it has not ended")
	}
	err = env.GetWorkflowError()
	if err == nil {
		err = env.GetWorkflowResult(&result)
	}
	return result, env.Now().Sub(began), err
}

func TestARunLivesAsLongAsItsPlan(t *testing.T) {
	env := newEnv(t, nil)
	result, lasted, err := ended(t, env)
	if err != nil || result.Phase != api.PlanCompleted || result.Message != "2 of 2 nodes are done" || result.WorkflowID != "maintenance-plan/patches" || result.RunID == "" {
		t.Errorf("%+v: %v", result, err)
	}
	if lasted < time.Hour {
		t.Errorf("it lasted %s", lasted)
	}
}

func TestARunOfAPlanThatFailsFails(t *testing.T) {
	env := newEnv(t, temporal.NewNonRetryableApplicationError("1 of 2 nodes failed", api.ErrorPlanIncomplete, nil))
	_, _, err := ended(t, env)
	var failed *temporal.ApplicationError
	var result api.PlanRunResult
	if !errors.As(err, &failed) || failed.Type() != api.ErrorPlanIncomplete || failed.Details(&result) != nil || result.Message != "1 of 2 nodes failed" {
		t.Errorf("%+v: %v", result, err)
	}
}

func TestARunThatIsCancelledCancelsItsPlan(t *testing.T) {
	env := newEnv(t, nil)
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	_, lasted, err := ended(t, env)
	var cancelled *temporal.CanceledError
	var result api.PlanRunResult
	if !errors.As(err, &cancelled) || cancelled.Details(&result) != nil || result.Phase != api.PlanCancelled || lasted > 2*time.Minute {
		t.Errorf("%+v after %s: %v", result, lasted, err)
	}
}

// besidePlan begins a run while a plan of its name runs.
func besidePlan(ctx workflow.Context) (result api.PlanRunResult, err error) {
	plan := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "maintenance-plan/patches"})
	first := workflow.ExecuteChildWorkflow(plan, api.MaintenancePlanType, json.RawMessage(`{"nodes":["a","b"],"reason":"patches"}`))
	if err := first.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		return result, err
	}
	run := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: runID + "-beside"})
	err = workflow.ExecuteChildWorkflow(run, api.PlanRunType, json.RawMessage(input)).Get(ctx, &result)
	return result, err
}

func TestAPlanThatRunsAlreadyIsAskedWhoseItIs(t *testing.T) {
	for name, c := range map[string]struct {
		is      planactivity.Ended
		skipped bool
		want    string
	}{
		"somebody else's": {planactivity.Ended{Foreign: true}, true, "plan patches runs already"},
		"its own":         {planactivity.Ended{Phase: api.Completed, Message: "done"}, false, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t, nil)
			env.RegisterWorkflowWithOptions(planrun.MaintenancePlanRun, workflow.RegisterOptions{Name: api.PlanRunType})
			asked := 0
			env.OnActivity(call.Plans.AwaitEnds, mock.Anything, mock.Anything).Return(func(_ context.Context, awaited api.List[planactivity.Execution]) ([]planactivity.Ended, error) {
				asked++
				if len(awaited) != 1 || awaited[0] != (planactivity.Execution{WorkflowID: "maintenance-plan/patches"}) {
					t.Errorf("asked for %+v", awaited)
				}
				return []planactivity.Ended{c.is}, nil
			})
			env.ExecuteWorkflow(besidePlan)
			var result api.PlanRunResult
			err := errors.Join(env.GetWorkflowError(), env.GetWorkflowResult(&result))
			if err != nil || asked != 1 || result.Skipped != c.skipped || !strings.HasPrefix(result.Message, c.want) || (result.Phase == api.PlanCompleted) == c.skipped {
				t.Errorf("%+v, asked %d times: %v", result, asked, err)
			}
		})
	}
}

func TestAPlanThatWasResetIsFollowed(t *testing.T) {
	env := newEnv(t, temporal.NewApplicationError("stands for a termination", "test"))
	env.OnWorkflow(api.MaintenancePlanType, mock.Anything, mock.Anything).Return(api.PlanResult{}, &temporal.TerminatedError{})
	env.OnActivity(call.Plans.AwaitEnds, mock.Anything, mock.Anything).Return([]planactivity.Ended{{Phase: api.Completed, Message: "done"}}, nil)
	if result, _, err := ended(t, env); err != nil || result.Phase != api.PlanCompleted {
		t.Errorf("%+v: %v", result, err)
	}
}

func TestInputsThatAreRefused(t *testing.T) {
	for given, want := range map[string]string{
		`{"name":"patches"}`: "plan: is missing", `{"name":"No","plan":{"nodes":["a"]}}`: "name: ",
		`{"name":"patches","plan":{"nodes":["a"]},"cron":"* * * * *"}`: "cron: unknown field",
		`{"name":"patches","plan":{"nodse":["a"]}}`:                    "plan: nodse: unknown field",
		`{"name":"patches","plan":{}}`:                                 "plan: ", `7`: "want a JSON object",
	} {
		env := newEnv(t, nil)
		env.ExecuteWorkflow(planrun.MaintenancePlanRun, workflowtest.Raw(given))
		var refused *temporal.ApplicationError
		if err := env.GetWorkflowError(); !errors.As(err, &refused) || refused.Type() != api.ErrorInvalidSpec || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}
