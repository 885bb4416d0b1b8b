package execution

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/k8s/nodelease"
	"drydock.dev/drydock/k8s/objects"
)

func encoded(t *testing.T, value any) converter.EncodedValue {
	t.Helper()
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(value)
	if err != nil {
		t.Fatal(err)
	}
	return client.NewValue(payloads)
}

func TestQueryAnswersInTheOrderOfTheRuns(t *testing.T) {
	temporal := &mocks.Client{}
	temporal.On("QueryWorkflow", mock.Anything, mock.Anything, mock.Anything, "status").Return(
		func(_ context.Context, id, run, _ string, args ...any) (converter.EncodedValue, error) {
			switch id {
			case "gone":
				return nil, serviceerror.NewNotFound("no such workflow")
			case "broken":
				return nil, errors.New("the worker does not answer")
			}
			return encoded(t, map[string]string{"id": id, "run": run}), nil
		})
	e := &Activities{Temporal: temporal}
	in := QueryInput{Query: "status", Executions: []Run{{WorkflowID: "a", RunID: "1"}, {WorkflowID: "gone"}, {WorkflowID: "b"}}}
	answers, err := activitytest.Call(t, e.Query, in)
	if err != nil || len(answers) != 3 || !answers[1].Gone || answers[0].Gone {
		t.Fatalf("answers %+v, %v", answers, err)
	}
	var first map[string]string
	if err := json.Unmarshal(answers[0].Answer, &first); err != nil || first["id"] != "a" || first["run"] != "1" {
		t.Errorf("the first answer is %s", answers[0].Answer)
	}
	in.Executions = append(in.Executions, Run{WorkflowID: "broken"})
	if _, err := activitytest.Call(t, e.Query, in); err == nil || !strings.Contains(err.Error(), "querying status of workflow broken") {
		t.Errorf("error = %v", err)
	}
}

func TestOneThatDoesNotAnswerIsNamedByItsFirstRun(t *testing.T) {
	temporal := activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{"wedged/" + run: enums.WORKFLOW_EXECUTION_STATUS_RUNNING})
	temporal.On("QueryWorkflow", mock.Anything, mock.Anything, mock.Anything, "slot").Return(nil, serviceerror.NewQueryFailed("its task fails"))
	e := &Activities{Temporal: temporal}
	for id, want := range map[string]Answered{"wedged": {Unanswered: "its task fails", FirstRunID: run}, "over": {Gone: true}} {
		if got, err := e.unanswered(t.Context(), Run{WorkflowID: id}, errors.New("its task fails")); err != nil || got.Gone != want.Gone || got.Unanswered != want.Unanswered || got.FirstRunID != want.FirstRunID {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
}

// The namespace of these tests, and the runs in it.
const (
	home = "5f3d1e0a-0000-4000-8000-000000000001"
	run  = "0190b1c0-0000-7000-8000-000000000001"
	gone = "0190b1c0-0000-7000-8000-000000000002"
)

// marked is a node that carries the mark of ops' maintenance of a node.
func marked(name, of, run, namespace string, since time.Time) *corev1.Node {
	return activitytest.Node(name, activitytest.MarkedBy(k8s.Holder{
		WorkflowID: api.MaintenanceID("", of, "ops"), RunID: run, Namespace: namespace, Since: since,
	}))
}

func TestInventoryFindsHoldersByTheirMarksAndMaintenancesByVisibility(t *testing.T) {
	now, long := time.Now(), time.Now().Add(-48*time.Hour)
	odd := activitytest.Node("n9")
	odd.Annotations[api.HoldersAnnotation] = "{"
	s := k8stest.New(
		marked("n1", "n1", run, home, now), marked("n2", "n2", run, home, now), marked("n3", "n3", gone, home, long),
		marked("n4", "n4", gone, home, now), marked("n5", "n5", run, "elsewhere", now), marked("n6", "n6", run, "", now),
		marked("n7", "n7", "r", home, now), marked("n8", "n1", run, home, now), odd, activitytest.Node("n10"),
		marked("n11", "n11", gone, home, now),
	)
	temporal := activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
		"node-maintenance/n1/ops/" + run: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "node-maintenance/n2/ops/" + run: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		// Another chain runs under its ID.
		"node-maintenance/n11/ops/" + run: enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
	})
	var queries []string
	temporal.On("ListWorkflow", mock.Anything, mock.Anything).Return(
		func(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
			queries = append(queries, r.Query)
			found := func(id string) []*workflowpb.WorkflowExecutionInfo {
				return []*workflowpb.WorkflowExecutionInfo{{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "r"}}}
			}
			if len(r.NextPageToken) == 0 {
				return &workflowservice.ListWorkflowExecutionsResponse{Executions: found("w1"), NextPageToken: []byte("more")}, nil
			}
			return &workflowservice.ListWorkflowExecutionsResponse{Executions: found("w9")}, nil
		})
	e := &Activities{Temporal: temporal, Namespace: "default", Home: Namespace{ID: home, Retention: 24 * time.Hour}, Nodes: k8s.NewNodes(s.Client(t))}
	in := InventoryInput{WorkflowType: "NodeMaintenance", OtherTypes: []string{"NodeRemediation"}, TaskQueue: "drydock"}
	found, err := activitytest.Call(t, e.TakeInventory, in)
	if err != nil {
		t.Fatal(err)
	}
	var marks, ended, strays, running []string
	for _, h := range found.Marked {
		marks = append(marks, h.Node)
	}
	for _, h := range found.Ended {
		ended = append(ended, h.Node)
	}
	for _, m := range found.Strays {
		strays = append(strays, m.Node+" "+string(m.Kind))
	}
	for _, e := range found.Running {
		running = append(running, e.WorkflowID)
	}
	slices.Sort(strays)
	if !slices.Equal(marks, []string{"n1"}) || !slices.Equal(ended, []string{"n11", "n2", "n3"}) || !slices.Equal(running, []string{"w1", "w9"}) {
		t.Errorf("marked %v, ended %v, running %v", marks, ended, running)
	}
	if want := []string{"n4 unknown", "n5 foreign", "n6 foreign", "n7 malformed", "n8 malformed", "n9 malformed"}; !slices.Equal(strays, want) || found.StraysAll != len(want) {
		t.Errorf("%d strays %v, want %v", found.StraysAll, strays, want)
	}
	for _, q := range queries {
		if !strings.Contains(q, "WorkflowType IN ('NodeMaintenance', 'NodeRemediation')") || !strings.Contains(q, "TaskQueue = 'drydock'") || !strings.Contains(q, "ExecutionStatus = 'Running'") {
			t.Errorf("query %s", q)
		}
	}
}

// Visibility knows nothing of those that have just begun: what they have made of the cluster tells of them.
func TestThoseThatHoldSlotsAreFoundByWhatNodesShow(t *testing.T) {
	s, kinds := k8stest.New(activitytest.Node("n1"), activitytest.Node("n2", activitytest.MarkedBy(k8s.Holder{
		WorkflowID: "profile-transition/p/n2", RunID: run, Namespace: home, Since: time.Now(),
	}))), k8stest.NewKinds()
	s.Handle = kinds.Handle
	kinds.Set(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"medik8s-leases"}}`)
	for node, holder := range map[string]string{"n1": "NodeHealthCheck-cp", "n2": "node-maintenance"} {
		kinds.Set(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"node-` + node + `","namespace":"medik8s-leases"},"spec":{"holderIdentity":"` + holder + `"}}`)
	}
	temporal := activitytest.Statuses(nil)
	temporal.On("ListWorkflow", mock.Anything, mock.Anything).Return(&workflowservice.ListWorkflowExecutionsResponse{}, nil)
	nodes := k8s.NewNodes(s.Client(t))
	e := &Activities{Temporal: temporal, Home: Namespace{ID: home}, Nodes: nodes, Leases: &nodelease.Leases{Objects: objects.New(nodes.Client())}}
	for types, want := range map[string][]string{"NodeRemediation": {"profile-transition/p/n2", "node-remediation/cp/n1"}, "": nil} {
		in := InventoryInput{WorkflowType: "NodeMaintenance", TaskQueue: "drydock"}
		if types != "" {
			in.OtherTypes = []string{types}
		}
		found, err := activitytest.Call(t, e.TakeInventory, in)
		var got []string
		for _, r := range found.Running {
			got = append(got, r.WorkflowID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: found %q, want %q, %v", types, got, want, err)
		}
	}
}

func TestAHolderIsDeadWhenItsChainHasEnded(t *testing.T) {
	const running, closed = enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
	n := Namespace{ID: home, Retention: 24 * time.Hour}
	young, old := time.Now().Add(-23*time.Hour), time.Now().Add(-25*time.Hour)
	for name, c := range map[string]struct {
		status map[string]enums.WorkflowExecutionStatus
		since  time.Time
		want   Fate
	}{
		"it runs":                        {map[string]enums.WorkflowExecutionStatus{"w/" + run: running}, old, Alive},
		"it was terminated":              {map[string]enums.WorkflowExecutionStatus{"w/" + run: closed}, young, Ended},
		"another runs under its ID":      {map[string]enums.WorkflowExecutionStatus{"w/" + gone: running}, young, Ended},
		"it is not found, and young":     {nil, young, Unknown},
		"it is not found, and old":       {nil, old, Ended},
		"it is not found, and of no age": {nil, time.Time{}, Unknown},
	} {
		found, err := n.FateOf(t.Context(), activitytest.Statuses(c.status), HolderRef{WorkflowID: "w", RunID: run, Since: c.since})
		if err != nil || found.Fate != c.want {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	broken := &mocks.Client{}
	broken.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(nil, errors.New("away"))
	if _, err := n.FateOf(t.Context(), broken, HolderRef{WorkflowID: "w"}); err == nil || !strings.Contains(err.Error(), "describing workflow w") {
		t.Errorf("a server that is away says %v", err)
	}
}
