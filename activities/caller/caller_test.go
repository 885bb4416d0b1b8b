package caller

import (
	"context"
	"errors"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
)

// server says of every run that it is of one type and on one queue.
type server struct {
	kind, queue string
	// answer is the whole answer, where it is not only that.
	answer *workflowservice.DescribeWorkflowExecutionResponse
	err    error
	asked  int
}

func (s *server) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.asked++
	if s.err != nil {
		return nil, s.err
	}
	return s.response(), nil
}

func (s *server) response() *workflowservice.DescribeWorkflowExecutionResponse {
	if s.answer != nil {
		return s.answer
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{
		ExecutionConfig:       &workflowpb.WorkflowExecutionConfig{TaskQueue: &taskqueuepb.TaskQueue{Name: s.queue}},
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Type: &commonpb.WorkflowType{Name: s.kind}},
	}
}

func call(name, kind string) activity.Info {
	return activity.Info{
		ActivityType: activity.Type{Name: name}, WorkflowType: &workflow.Type{Name: kind},
		WorkflowExecution: workflow.Execution{ID: "node-maintenance/w-01/kernel", RunID: "r-1"},
	}
}

func isForeign(err error) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && cause.Type() == api.ErrorForeignCaller && cause.NonRetryable()
}

func TestOnlyWorkflowsOfTheWorkerCallActivities(t *testing.T) {
	standalone := call("CallHook", "")
	standalone.WorkflowType, standalone.WorkflowExecution = nil, workflow.Execution{}
	for name, c := range map[string]struct {
		info    activity.Info
		server  server
		refused bool
	}{
		"its own":                     {call("CallHook", api.NodeMaintenanceType), server{kind: api.NodeMaintenanceType, queue: "drydock"}, false},
		"another type":                {call("CallHook", api.SchedulerType), server{kind: api.SchedulerType, queue: "drydock"}, true},
		"a foreign type":              {call("CallHook", "Evil"), server{kind: "Evil", queue: "drydock"}, true},
		"a queue of his own":          {call("CallHook", api.NodeMaintenanceType), server{kind: api.NodeMaintenanceType, queue: "evil"}, true},
		"a type the server denies":    {call("CallHook", api.NodeMaintenanceType), server{kind: "Evil", queue: "drydock"}, true},
		"the lane's queue":            {call("CallHook", api.NodeMaintenanceType), server{kind: api.NodeMaintenanceType, queue: "drydock-drains"}, true},
		"no workflow":                 {standalone, server{}, true},
		"an activity without a row":   {call("Nothing", api.NodeMaintenanceType), server{kind: api.NodeMaintenanceType, queue: "drydock"}, true},
		"nodes for somebody":          {call("ObserveNodes", api.NodeMaintenanceType), server{kind: api.NodeMaintenanceType, queue: "drydock"}, true},
		"nodes for the scheduler":     {call("ObserveNodes", api.SchedulerType), server{kind: api.SchedulerType, queue: "drydock"}, false},
		"a server without an answer":  {call("ReleaseNode", api.SchedulerType), server{kind: api.SchedulerType}, true},
		"a maintenance releases":      {call("ReleaseNode", api.NodeMaintenanceType), server{kind: api.NodeMaintenanceType, queue: "drydock"}, false},
		"somebody's notice of a node": {call("Deliver", api.DoctorType), server{kind: api.DoctorType, queue: "drydock"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			callers := New(&c.server, "drydock")
			for range 2 {
				if err := callers.check(t.Context(), c.info); isForeign(err) != c.refused || !c.refused && err != nil {
					t.Errorf("got %v, want refused: %v", err, c.refused)
				}
			}
			if c.server.asked > 1 {
				t.Errorf("the server was asked %d times about one run", c.server.asked)
			}
		})
	}
}

func TestAServerThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	down := &server{kind: api.NodeMaintenanceType, queue: "drydock", err: errors.New("unavailable")}
	callers := New(down, "drydock")
	if err := callers.check(t.Context(), call("Drain", api.NodeMaintenanceType)); err == nil || isForeign(err) {
		t.Fatalf("got %v, want an error to try again after", err)
	}
	down.err = nil
	if err := callers.check(t.Context(), call("Drain", api.NodeMaintenanceType)); err != nil {
		t.Error(err)
	}
}

// CallHook stands for the activity of that name.
func CallHook(context.Context) (string, error) { return "a secret", nil }

func TestARefusedActivityDoesNotRun(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{New(&server{queue: "evil"}, "drydock")}})
	env.RegisterActivity(CallHook)
	if _, err := env.ExecuteActivity(CallHook); !isForeign(err) {
		t.Errorf("got %v, want type %s", err, api.ErrorForeignCaller)
	}
}
