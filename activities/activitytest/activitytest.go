// Package activitytest runs activities in tests, and makes the objects that they act upon.
package activitytest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// Statuses is a Temporal server in which workflows have a status, by "<workflow ID>/<run ID>"; others do not exist. The
// run is the first of its chain, and the present one.
func Statuses(status map[string]enums.WorkflowExecutionStatus) *mocks.Client {
	temporal := &mocks.Client{}
	temporal.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(
		func(_ context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
			for name, s := range status {
				end := strings.LastIndex(name, "/")
				if name[:end] == id && (run == "" || name[end+1:] == run) {
					return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
						Status: s, FirstRunId: name[end+1:], Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: name[end+1:]},
					}}, nil
				}
			}
			return nil, serviceerror.NewNotFound("no such workflow")
		})
	return temporal
}

// Call runs an activity and returns what it returns.
func Call[In, Out any](t *testing.T, do func(context.Context, In) (Out, error), in In) (Out, error) {
	t.Helper()
	env := Environment()
	env.RegisterActivity(do)
	value, err := env.ExecuteActivity(do, in)
	var out Out
	if err == nil {
		err = value.Get(&out)
	}
	return out, err
}

// ErrorType is the type of an error that is not worth a retry, empty for every other.
func ErrorType(err error) string {
	var cause *temporal.ApplicationError
	if errors.As(err, &cause) && cause.NonRetryable() {
		return cause.Type()
	}
	return ""
}

// The workflow of the test environment.
const (
	WorkflowID = "default-test-workflow-id"
	RunID      = "default-test-run-id"
)

// Caller is the workflow of the test environment as one who acts on a node.
var Caller = k8s.Caller{WorkflowID: WorkflowID, RunID: RunID, Run: RunID}

// Granting is a Temporal server whose scheduler says of every slot that it is held, as far as answer does not say
// otherwise.
func Granting(answer ...api.SlotHeld) *mocks.Client { return Grant(&mocks.Client{}, answer...) }

// Grant has a server's scheduler say so.
func Grant(temporal *mocks.Client, answer ...api.SlotHeld) *mocks.Client {
	temporal.On("QueryWorkflow", mock.Anything, mock.Anything, mock.Anything, api.QuerySlotsHeld, mock.Anything).Return(
		func(_ context.Context, _, _, _ string, args ...any) (converter.EncodedValue, error) {
			one := api.SlotHeld{Held: true}
			if len(answer) > 0 {
				one, answer = answer[0], answer[1:]
			}
			said := api.SlotsHeld{Rebuilding: one.Rebuilding, Frozen: one.Frozen, Revision: one.Revision}
			if one.Held {
				said.Held = args[0].(api.SlotQuestion).RequestIDs
			}
			payloads, err := converter.GetDefaultDataConverter().ToPayloads(said)
			return client.NewValue(payloads), err
		})
	return temporal
}

// Environment is where activities run in a test.
func Environment() *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Hour)
	return env
}

// Execute runs code as an activity.
func Execute(t *testing.T, env *testsuite.TestActivityEnvironment, do func(ctx context.Context) error) error {
	t.Helper()
	env.RegisterActivity(do)
	_, err := env.ExecuteActivity(do)
	return err
}

// ExecuteAs runs code as the activity of a name.
func ExecuteAs(t *testing.T, env *testsuite.TestActivityEnvironment, name string, do func(ctx context.Context) error) error {
	t.Helper()
	env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name})
	_, err := env.ExecuteActivity(name)
	return err
}
