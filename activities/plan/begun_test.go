package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
)

// planID is that of the workflow that calls the activities of tests.
const planID = "default-test-workflow-id"

// found is a maintenance as Temporal knows it: by which run of which workflow it was begun, whether it runs, and what it says.
type found struct {
	parent, run string
	ended       bool
	status      *said
}

// said is what a maintenance says of itself, and the input that it was begun with.
type said struct {
	api.Status
	input string
}

// histories are those of maintenances: a run begins with its input.
type histories struct {
	workflowservice.WorkflowServiceClient
	of map[string]found
}

func (h histories) GetWorkflowExecutionHistory(_ context.Context, in *workflowservice.GetWorkflowExecutionHistoryRequest, _ ...grpc.CallOption) (
	*workflowservice.GetWorkflowExecutionHistoryResponse, error,
) {
	id := in.Execution.WorkflowId
	m := h.of[id]
	if in.MaximumPageSize != 1 || in.Execution.RunId != "latest of "+id || m.status == nil || m.status.input == "" {
		return nil, serviceerror.NewNotFound("no such history")
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(json.RawMessage(m.status.input), "carried")
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: []*historypb.HistoryEvent{{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: payloads},
		},
	}}}}, err
}

// serverOf knows maintenances by their workflow IDs; those named are all that visibility knows.
func serverOf(t *testing.T, all map[string]found, visible ...string) *mocks.Client {
	s := &mocks.Client{}
	s.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(
		func(_ context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
			info := &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}}
			m, known := all[id]
			switch {
			case id == planID && run == "lost":
				return nil, serviceerror.NewNotFound("it is not kept any more")
			case id == planID: // "second" continues "first"
				info.FirstRunId = strings.ReplaceAll(run, "second", "first")
			case !known:
				return nil, serviceerror.NewNotFound("no " + id)
			default:
				info.FirstRunId, info.Execution.RunId = "run of "+id, "latest of "+id
				info.ParentExecution = &commonpb.WorkflowExecution{WorkflowId: m.parent, RunId: m.run}
				if info.Status = enums.WORKFLOW_EXECUTION_STATUS_RUNNING; m.ended {
					info.Status = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
				}
			}
			return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
		})
	s.On("WorkflowService").Return(histories{of: all})
	s.On("QueryWorkflow", mock.Anything, mock.Anything, "", api.QueryStatus).Return(
		func(_ context.Context, id, _, _ string, _ ...any) (converter.EncodedValue, error) {
			return answer{all[id].status}, nil
		})
	s.On("ListWorkflow", mock.Anything, mock.Anything).Return(
		func(_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
			if !strings.HasPrefix(in.Query, "WorkflowType = 'NodeMaintenance' AND ParentWorkflowId = '"+planID+"' AND ") {
				t.Errorf("it asks for %s", in.Query)
			}
			page := &workflowservice.ListWorkflowExecutionsResponse{}
			from := 0
			if len(in.NextPageToken) > 0 {
				from = 1
			}
			for _, id := range visible[from:min(from+1, len(visible))] { // pages of one
				page.Executions = append(page.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id}})
			}
			if from == 0 && len(visible) > 1 {
				page.NextPageToken = []byte("more")
			}
			return page, nil
		})
	return s
}

type answer struct{ status *said }

func (a answer) HasValue() bool { return a.status != nil }

func (a answer) Get(into any) error {
	if a.status == nil {
		return errors.New("nobody answers")
	}
	*into.(*api.Status) = a.status.Status
	return nil
}

// says is the status of a maintenance with an input.
func says(t *testing.T, input string, phase api.Phase) *said {
	t.Helper()
	m, err := spec.Decode([]byte(input), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &said{api.Status{Spec: m, Phase: phase, Failure: "disk"}, input}
}

// TestWhatAPlanOfThisNameHasBegunIsFound: what runs, whose it is, and whether an earlier plan's is as this plan would begin it.
func TestWhatAPlanOfThisNameHasBegunIsFound(t *testing.T) {
	const (
		id   = "node-maintenance/a/plan-k"
		same = `{"node":"a","requestor":"plan-k","reason":"kernel","notBefore":"2026-03-01T12:00:00Z"}`
	)
	ready := says(t, same, api.Ready)
	undecided := says(t, same, api.Validating)
	undecided.Validation = &api.ValidationStatus{State: validation.Failed}
	byDefault := says(t, same, api.Ready)
	byDefault.Spec.Drain.Force = true // the worker's
	unread := says(t, same, api.Ready)
	unread.input = ""
	for name, c := range map[string]struct {
		is    found
		asked []string
		want  *Begun
	}{
		"its own":                         {found{planID, "first", false, ready}, nil, &Begun{}},
		"its own, of an earlier run":      {found{planID, "second", false, ready}, nil, &Begun{}},
		"its own, held":                   {found{planID, "first", false, says(t, same, api.RequestorFailed)}, nil, &Begun{Held: true, Why: "disk"}},
		"its own, not valid":              {found{planID, "first", false, undecided}, nil, &Begun{Held: true, Why: "disk"}},
		"its own, which says nothing":     {found{planID, "first", false, nil}, nil, &Begun{}},
		"its own, has ended":              {found{planID, "first", true, nil}, nil, &Begun{Ended: true}},
		"an earlier plan's":               {found{planID, "other", false, ready}, nil, &Begun{Earlier: true}},
		"of a plan that is not known":     {found{planID, "lost", false, ready}, nil, &Begun{Earlier: true}},
		"an earlier plan's, has ended":    {found{planID, "other", true, nil}, nil, nil},
		"an earlier plan's, says nothing": {found{planID, "other", false, nil}, nil, &Begun{Earlier: true, Refused: "it does not tell its settings"}},
		"with another setting": {
			found{planID, "other", false, says(t, `{"node":"a","requestor":"plan-k","reason":"firmware"}`, api.Ready)}, nil, &Begun{Earlier: true, Refused: "reason differs"},
		},
		"with other settings": {
			found{planID, "other", false, says(t, `{"node":"a","requestor":"ops"}`, api.Ready)}, nil, &Begun{Earlier: true, Refused: "reason, requestor differ"},
		},
		"with a setting that this plan does not give": {
			found{planID, "other", false, says(t, strings.Replace(same, "{", `{"drain":{"force":true},`, 1), api.Ready)}, nil, &Begun{Earlier: true, Refused: "drain.force differs"},
		},
		"with the worker's default":       {found{planID, "other", false, byDefault}, nil, &Begun{Earlier: true}},
		"with a default that is written":  {found{planID, "other", false, says(t, strings.Replace(same, "{", `{"drain":{"mode":"evict"},`, 1), api.Ready)}, nil, &Begun{Earlier: true}},
		"with an input that is not there": {found{planID, "other", false, unread}, nil, &Begun{Earlier: true, Refused: "its input cannot be read"}},
		"somebody else's":                 {found{"maintenance-plan/x", "first", false, ready}, nil, nil},
		"somebody else's, which is asked": {found{"maintenance-plan/x", "first", false, ready}, []string{"a"}, &Begun{Foreign: true}},
		"asked, and has ended":            {found{"maintenance-plan/x", "first", true, ready}, []string{"a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Activities{Temporal: serverOf(t, map[string]found{id: c.is}, id), Nodes: k8s.NewNodes(k8stest.New().Client(t))}
			got, err := activitytest.Call(t, a.FindBegun, FindInput{
				RunID: "first", Since: time.Now(), Again: true, Requestor: "plan-k", Nodes: c.asked,
				Maintenance: []byte(`{"requestor":"plan-k","reason":"kernel","notBefore":"2026-03-01T13:00:00Z"}`),
			})
			var want api.List[Begun]
			if c.want != nil {
				c.want.Node, c.want.RunID = "a", "run of "+id
				want = append(want, *c.want)
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v, want - got +\n%s", err, diff)
			}
		})
	}
}

// TestWhatVisibilityDoesNotKnowYetTheMarksTell: and what it does, is looked at once, of whatever requestor.
func TestWhatVisibilityDoesNotKnowYetTheMarksTell(t *testing.T) {
	marked := func(node, workflow, requestor string) *corev1.Node {
		n := activitytest.Node(node)
		n.Annotations = map[string]string{api.HoldersAnnotation: `{"holders":[{"workflowId":"` + workflow + `","requestor":"` + requestor + `"}]}`}
		return n
	}
	broken := activitytest.Node("d")
	broken.Annotations = map[string]string{api.HoldersAnnotation: "broken"}
	all := map[string]found{}
	for _, id := range []string{"node-maintenance/a/plan-k", "node-maintenance/b/plan-k", "node-maintenance/c/ops", "node-maintenance/e/old", "node-maintenance/f/plan-k"} {
		all[id] = found{parent: planID, run: "other"}
	}
	s := k8stest.New(
		marked("a", "node-maintenance/a/plan-k", "plan-k"), marked("b", "node-maintenance/b/plan-k", "plan-k"), marked("c", "node-maintenance/c/ops", "ops"),
		marked("x", "node-maintenance/f/plan-k", "plan-k"), broken)
	a := &Activities{Temporal: serverOf(t, all, "node-maintenance/a/plan-k", "node-maintenance/e/old"), Nodes: k8s.NewNodes(s.Client(t))}
	got, err := activitytest.Call(t, a.FindBegun, FindInput{RunID: "first", Requestor: "plan-k"})
	var nodes []string
	for _, b := range got {
		nodes = append(nodes, b.Node+" "+b.Requestor)
	}
	slices.Sort(nodes)
	if want := []string{"a ", "b ", "e old"}; !slices.Equal(nodes, want) || err != nil {
		t.Errorf("%q, want %q: %v", nodes, want, err)
	}
}

// TestAServerThatDoesNotAnswerIsNotAskedOn: the plan tries again later.
func TestAServerThatDoesNotAnswerIsNotAskedOn(t *testing.T) {
	s, asked := &mocks.Client{}, atomic.Int32{}
	s.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, _, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
			if ctx.Err() == nil {
				asked.Add(1)
			}
			return nil, serviceerror.NewUnavailable("it is down")
		})
	in := FindInput{RunID: "first", Requestor: "plan-k"}
	for i := range 1000 {
		in.Nodes = append(in.Nodes, fmt.Sprint("n", i))
	}
	_, err := activitytest.Call(t, (&Activities{Temporal: s}).FindBegun, in)
	if n := asked.Load(); err == nil || !strings.Contains(err.Error(), "it is down") || n > 2*describesAtOnce {
		t.Errorf("asked %d times: %v", n, err)
	}
}
