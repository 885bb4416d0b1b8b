package startertest

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drydock.dev/drydock/api"
)

// Asked is a Temporal in which the question for the worker's permissions has an answer, or fails, or never ends.
type Asked struct {
	temporalclient.Client
	// Polled: there is a worker.
	Polled  bool
	Report  api.PermissionsReport
	Failure error
	Silent  bool
	// Input is what was asked; nil is nothing.
	Input any
}

// DescribeTaskQueue says whether there is a worker.
func (a *Asked) DescribeTaskQueue(context.Context, string, enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	described := &workflowservice.DescribeTaskQueueResponse{}
	if a.Polled {
		described.Pollers = []*taskqueuepb.PollerInfo{{LastAccessTime: timestamppb.Now()}}
	}
	return described, nil
}

// ExecuteWorkflow takes the question.
func (a *Asked) ExecuteWorkflow(_ context.Context, _ temporalclient.StartWorkflowOptions, _ any, args ...any) (temporalclient.WorkflowRun, error) {
	a.Input = args[0]
	return answer{Asked: a}, nil
}

// CancelWorkflow takes the question back.
func (a *Asked) CancelWorkflow(context.Context, string, string) error { return nil }

type answer struct {
	temporalclient.WorkflowRun
	*Asked
}

func (answer) GetID() string    { return "permissions/1" }
func (answer) GetRunID() string { return "run" }

func (a answer) Get(ctx context.Context, value any) error {
	if a.Silent {
		<-ctx.Done()
		return ctx.Err()
	}
	*value.(*api.PermissionsReport) = a.Report
	return a.Failure
}
