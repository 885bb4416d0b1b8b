package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile/state"
)

// reporter is a Temporal in which a report of profiles has an answer, or fails, or never ends.
type reporter struct {
	temporalclient.Client
	answer  api.ProfileReport
	failure error
	silent  bool

	started  temporalclient.StartWorkflowOptions
	kind     any
	input    any
	canceled string
}

func (r *reporter) ExecuteWorkflow(_ context.Context, o temporalclient.StartWorkflowOptions, kind any, args ...any) (temporalclient.WorkflowRun, error) {
	r.started, r.kind, r.input = o, kind, args[0]
	return reporting{reporter: r}, nil
}

func (r *reporter) CancelWorkflow(_ context.Context, id, _ string) error {
	r.canceled = id
	return nil
}

func (r *reporter) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}, nil
}

type reporting struct {
	temporalclient.WorkflowRun
	*reporter
}

func (r reporting) GetID() string    { return r.started.ID }
func (r reporting) GetRunID() string { return "run" }

func (r reporting) Get(ctx context.Context, value any) error {
	if r.silent {
		<-ctx.Done()
		return ctx.Err()
	}
	*value.(*api.ProfileReport) = r.answer
	return r.failure
}

func TestAProfileReportIsAskedFor(t *testing.T) {
	r := &reporter{answer: api.ProfileReport{Next: "worker-07"}}
	c := New(r, Options{Cluster: "blue", By: "jane", Now: clockAtNoon})
	in := api.ProfileReportInput{Profile: "flatcar", State: state.Required}
	got, err := c.ProfileReport(t.Context(), in, time.Minute)
	if err != nil || got.Next != "worker-07" || r.canceled != "" {
		t.Errorf("%+v, %v, cancelled %q", got, err, r.canceled)
	}
	if r.kind != api.ProfileReportType || r.input != in || r.started.WorkflowExecutionTimeout != time.Minute || r.started.TaskQueue != api.TaskQueue("blue", api.DefaultTaskQueue) {
		t.Errorf("started %v with %+v and %+v", r.kind, r.input, r.started)
	}
	if rest, ok := strings.CutPrefix(r.started.ID, api.ProfileReportID("blue", "")); !ok || rest == "" {
		t.Errorf("workflow ID %q", r.started.ID)
	}
}

func TestAProfileReportThatFails(t *testing.T) {
	r := &reporter{failure: temporal.NewNonRetryableApplicationError("there is no node worker-99", "NotFound", nil)}
	_, err := New(r, Options{Now: clockAtNoon}).ProfileReport(t.Context(), api.ProfileReportInput{Node: "worker-99"}, time.Minute)
	var failed *FailedError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "there is no node worker-99") || r.canceled != "" {
		t.Errorf("%v, cancelled %q", err, r.canceled)
	}
}

// Nobody waits any more: it is taken back.
func TestAProfileReportIsTakenBack(t *testing.T) {
	enough := errors.New("enough")
	r := &reporter{silent: true}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, enough)
	defer cancel()
	_, err := New(r, Options{Now: clockAtNoon}).ProfileReport(ctx, api.ProfileReportInput{}, time.Minute)
	if !errors.Is(err, enough) || r.canceled != r.started.ID || r.canceled == "" {
		t.Errorf("%v, cancelled %q", err, r.canceled)
	}
	if _, err = New(r, Options{Now: clockAtNoon}).ProfileReport(ctx, api.ProfileReportInput{}, time.Minute); !errors.Is(err, enough) {
		t.Error(err)
	}
}
