package execution

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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

	"drydock/activities/activitytest"
	"drydock/api"
	"drydock/k8s"
	"drydock/k8s/k8stest"
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

func TestInventoryFindsHoldersByTheirMarksAndMaintenancesByVisibility(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1", activitytest.Marked("w1", "r")), activitytest.Node("n2", activitytest.Marked("w2", "r")), activitytest.Node("n3", activitytest.Marked("w3", "r")), activitytest.Node("n4"), activitytest.Node("n5"))
	odd := activitytest.Node("n6")
	odd.Annotations[api.HoldersAnnotation] = "{"
	s.Set(odd)
	temporal := activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
		"w1/r": enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "w2/r": enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
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
	e := &Activities{Temporal: temporal, Namespace: "default", Nodes: k8s.NewNodes(s.Client(t))}
	found, err := activitytest.Call(t, e.TakeInventory, InventoryInput{WorkflowType: "NodeMaintenance", TaskQueue: "drydock"})
	if err != nil {
		t.Fatal(err)
	}
	var marks, ended, running []string
	for _, h := range found.Marked {
		marks = append(marks, h.Node+" "+h.WorkflowID+" "+h.Requestor)
	}
	for _, h := range found.Ended {
		ended = append(ended, h.Node+" "+h.WorkflowID)
	}
	for _, e := range found.Running {
		running = append(running, e.WorkflowID)
	}
	if !slices.Equal(marks, []string{"n1 w1 ops"}) || !slices.Equal(ended, []string{"n2 w2", "n3 w3"}) || !slices.Equal(running, []string{"w1", "w9"}) {
		t.Errorf("marked %v, ended %v, running %v", marks, ended, running)
	}
	for _, q := range queries {
		if !strings.Contains(q, "TaskQueue = 'drydock'") || !strings.Contains(q, "ExecutionStatus = 'Running'") {
			t.Errorf("query %s", q)
		}
	}
}
