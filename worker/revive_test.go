package worker

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drydock.dev/drydock/api"
)

func TestWhatOthersWaitForIsStartedAnewWhereSomebodyEndedIt(t *testing.T) {
	const id = "drydock-plans"
	for status, starts := range map[enums.WorkflowExecutionStatus]int{
		enums.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED: 0, // there is none
		enums.WORKFLOW_EXECUTION_STATUS_RUNNING:     0,
		enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:   0,
		enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:  2,
		enums.WORKFLOW_EXECUTION_STATUS_CANCELED:    2,
		enums.WORKFLOW_EXECUTION_STATUS_FAILED:      1, // and later: it fails at once
	} {
		server := &mocks.Client{}
		runs, started := 0, 0
		server.On("DescribeWorkflowExecution", mock.Anything, id, "").Return(
			func() (*workflowservice.DescribeWorkflowExecutionResponse, error) {
				if status == enums.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED {
					return nil, serviceerror.NewNotFound("there is none")
				}
				runs++
				return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
					Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: string(rune('a' + runs))}, Status: status,
					StartTime: timestamppb.New(time.Now()), CloseTime: timestamppb.New(time.Now()),
				}}, nil
			}())
		run := &mocks.WorkflowRun{}
		run.On("GetRunID").Return("the next")
		server.On("ExecuteWorkflow", mock.Anything, mock.Anything, api.LockstepType).Run(func(args mock.Arguments) {
			started++
			if o := args.Get(1).(client.StartWorkflowOptions); o.ID != id || o.TaskQueue != "drydock" || o.WorkflowIDConflictPolicy != enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING {
				t.Errorf("%+v", o)
			}
		}).Return(run, nil)
		k := reviver{temporal: server, kind: api.LockstepType, logger: slog.New(slog.DiscardHandler), id: id, queue: "drydock"}
		if status == enums.WORKFLOW_EXECUTION_STATUS_FAILED {
			k.failures.inARow = 1
			if k.ensure(t.Context()) != nil || started != 0 {
				t.Errorf("one that fails at once is started %d times", started)
			}
			continue
		}
		for range 2 {
			if err := k.ensure(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if started != starts {
			t.Errorf("%s: it is started %d times, want %d", status, started, starts)
		}
	}
}
