package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/config"
	rules "drydock.dev/drydock/rules/health"
)

const workersCheck = `{"selector":{"matchLabels":{"pool":"blue"}},"maintenance":{"input":{"reason":"ill"}}}`

// site is a Temporal in which one check runs, or none.
type site struct {
	*mocks.Client
	keeper *healthKeeper
	log    bytes.Buffer
	// runs is the specification of the check, nil if it does not run; refuses is why it takes no other.
	runs                       json.RawMessage
	refuses                    string
	started, asked, configured int
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Client: &mocks.Client{}}
	c := config.Default()
	c.HealthChecks = config.HealthChecks{"workers": json.RawMessage(workersCheck)}
	s.keeper = newHealthKeeper(Options{Config: c, Logger: slog.New(slog.NewTextHandler(&s.log, nil))}, s, "drydock")
	s.On("DescribeWorkflowExecution", mock.Anything, "health-check/workers", "").Return(
		func(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
			if s.runs == nil {
				return nil, serviceerror.NewNotFound("none")
			}
			return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
				Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
			}}, nil
		})
	s.On("ExecuteWorkflow", mock.Anything, mock.Anything, api.HealthCheckType, mock.Anything).Return(
		func(_ context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
			s.started++
			s.runs = args[0].(json.RawMessage)
			if o.Memo[api.MemoConfigured] == nil {
				t.Error("it is not marked as one of the configuration")
			}
			run := &mocks.WorkflowRun{}
			run.On("GetRunID").Return("run")
			return run, nil
		})
	s.On("QueryWorkflow", mock.Anything, "health-check/workers", "", api.QueryStatus, mock.Anything).Return(
		func(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
			s.asked++
			spec, err := rules.Decode(s.runs)
			if err != nil {
				t.Fatal(err)
			}
			payload, err := converter.GetDefaultDataConverter().ToPayload(api.HealthStatus{Name: "workers", Spec: spec})
			if err != nil {
				t.Fatal(err)
			}
			return client.NewValue(&commonpb.Payloads{Payloads: []*commonpb.Payload{payload}}), nil
		})
	s.On("UpdateWorkflow", mock.Anything, mock.Anything).Return(
		func(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
			s.configured++
			handle := &mocks.WorkflowUpdateHandle{}
			if s.refuses != "" {
				handle.On("Get", mock.Anything, mock.Anything).Return(temporal.NewApplicationError(s.refuses, "Refused"))
				return handle, nil
			}
			s.runs = o.Args[0].(api.ConfigureHealth).Spec
			handle.On("Get", mock.Anything, mock.Anything).Return(nil)
			return handle, nil
		})
	return s
}

func (s *site) ticks(t *testing.T, n int) {
	t.Helper()
	for range n {
		if err := s.keeper.ensure(t.Context(), "workers"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAHealthCheckThatDoesNotRunIsStarted(t *testing.T) {
	s := newSite(t)
	s.ticks(t, 5)
	if s.started != 1 || s.configured != 0 {
		t.Errorf("started %d times, told %d times", s.started, s.configured)
	}
	s.runs = nil // somebody removed it
	s.ticks(t, 1)
	if s.started != 2 {
		t.Errorf("started %d times", s.started)
	}
}

func TestAHealthCheckIsToldOnceWhatTheFileSays(t *testing.T) {
	s := newSite(t)
	s.runs = json.RawMessage(strings.Replace(workersCheck, "ill", "other", 1))
	s.ticks(t, 3)
	if s.configured != 1 || string(s.runs) != workersCheck || s.started != 0 {
		t.Errorf("told %d times, it has %s", s.configured, s.runs)
	}
	// What somebody says afterwards counts, and an idle check costs no question.
	s.runs = json.RawMessage(strings.Replace(workersCheck, "ill", "by hand", 1))
	asked := s.asked
	s.ticks(t, 100)
	if s.configured != 1 || s.asked != asked {
		t.Errorf("told %d times, asked %d times more", s.configured, s.asked-asked)
	}
}

func TestAHealthCheckThatRefusesIsToldUntilItTakesIt(t *testing.T) {
	s := newSite(t)
	s.runs = json.RawMessage(strings.Replace(workersCheck, "blue", "green", 1))
	s.refuses = "selector: cannot change while a node is being remediated: wait until that is over"
	s.ticks(t, 4)
	if s.configured != 4 || strings.Count(s.log.String(), "level=WARN") != 1 || !strings.Contains(s.log.String(), "selector: cannot change") {
		t.Errorf("told %d times\n%s", s.configured, s.log.String())
	}
	s.refuses = ""
	s.ticks(t, 3)
	if s.configured != 5 || string(s.runs) != workersCheck {
		t.Errorf("told %d times, it has %s", s.configured, s.runs)
	}
}

func TestASpecificationWrittenOtherwiseIsTheSame(t *testing.T) {
	s := newSite(t)
	s.runs = json.RawMessage(`{"minHealthy":"51%","maintenance":{"input":{"reason":"ill"}},"selector":{"matchLabels":{"pool":"blue"}}}`)
	s.ticks(t, 2)
	if s.configured != 0 || s.asked != 1 {
		t.Errorf("told %d times, asked %d times", s.configured, s.asked)
	}
}

func TestChecksThatAreNoLongerConfiguredAreTold(t *testing.T) {
	s := newSite(t)
	running := func(name string, configured bool) *workflowpb.WorkflowExecutionInfo {
		info := &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: api.HealthCheckID("", name)}}
		if configured {
			info.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{api.MemoConfigured: {}}}
		}
		return info
	}
	s.On("ListWorkflow", mock.Anything, mock.Anything).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{
		running("workers", true), running("old", true), running("by-hand", false),
	}}, nil)
	if err := s.keeper.logLeft(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	if log := s.log.String(); !strings.Contains(log, "checks=old ") && !strings.Contains(log, "checks=old\n") {
		t.Error(log)
	}
}
