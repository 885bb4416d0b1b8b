package plan

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/testsuite"

	"drydock.dev/drydock/api"
)

// server knows of maintenances by their workflow IDs whether they run, and whose they are.
type server struct {
	mocks.Client
	running map[string]bool
	parent  string
}

func newServer(running map[string]bool) *server {
	s := &server{running: running}
	s.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, "").Return(
		func(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
			running, known := s.running[id]
			if !known {
				return nil, serviceerror.NewNotFound("no " + id)
			}
			info := &workflowpb.WorkflowExecutionInfo{
				Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run of " + id}, FirstRunId: "run of " + id,
				ParentExecution: &commonpb.WorkflowExecution{WorkflowId: s.parent}, Status: enums.WORKFLOW_EXECUTION_STATUS_COMPLETED,
			}
			if running {
				info.Status = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
			}
			return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
		})
	for id, running := range running {
		run := &mocks.WorkflowRun{}
		run.On("Get", mock.Anything, mock.Anything).Return(func(ctx context.Context, result any) error {
			if running {
				<-ctx.Done()
				return ctx.Err()
			}
			result.(*api.Result).Phase = api.Completed
			return nil
		})
		s.On("GetWorkflow", mock.Anything, id, mock.Anything).Return(run)
	}
	return s
}

func (s *server) ends(t *testing.T, awaited ...Execution) []Ended {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	a := &Activities{Temporal: s}
	env.RegisterActivity(a)
	value, err := env.ExecuteActivity(a.AwaitEnds, api.List[Execution](awaited))
	var all []Ended
	if err == nil {
		err = value.Get(&all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEachEndOfVeryManyMaintenancesIsReported: those that are not watched are looked at.
func TestEachEndOfVeryManyMaintenancesIsReported(t *testing.T) {
	running := map[string]bool{}
	var awaited []Execution
	for i := range maxWatched + 20 {
		id := fmt.Sprint("m", i)
		running[id] = true
		awaited = append(awaited, Execution{WorkflowID: id, RunID: "run of " + id})
	}
	last := awaited[len(awaited)-1]
	running[last.WorkflowID] = false
	got := newServer(running).ends(t, awaited...)
	if len(got) != 1 || got[0].Execution != last || got[0].Phase != api.Completed {
		t.Errorf("%+v", got)
	}
}

// TestARunIsFoundByItsParent: which it is, and whose.
func TestARunIsFoundByItsParent(t *testing.T) {
	asked := Execution{WorkflowID: "m"}
	found := Execution{WorkflowID: "m", RunID: "run of m"}
	for name, c := range map[string]struct {
		running map[string]bool
		parent  string
		want    Ended
	}{
		"runs":         {map[string]bool{"m": true}, "default-test-workflow-id", Ended{Execution: found, Going: true}},
		"has ended":    {map[string]bool{"m": false}, "default-test-workflow-id", Ended{Execution: found, Phase: api.Completed}},
		"is another's": {map[string]bool{"m": true}, "maintenance-plan/other", Ended{Execution: asked, Foreign: true, Message: "what runs under its workflow ID is somebody else's"}},
		"is unknown":   {nil, "", Ended{Execution: asked, Unknown: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(c.running)
			s.parent = c.parent
			if got := s.ends(t, asked); len(got) != 1 || got[0] != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
