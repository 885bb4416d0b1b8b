package payloadcodec

import (
	"context"
	"net"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// frontend is Temporal's API, which keeps what it was sent and shows it as a history.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	started *workflowservice.StartWorkflowExecutionRequest
	failed  *workflowservice.RespondActivityTaskFailedRequest
}

func (f *frontend) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (f *frontend) StartWorkflowExecution(_ context.Context, in *workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse, error) {
	f.started = in
	return &workflowservice.StartWorkflowExecutionResponse{RunId: "run"}, nil
}

func (f *frontend) RespondActivityTaskFailed(_ context.Context, in *workflowservice.RespondActivityTaskFailedRequest) (*workflowservice.RespondActivityTaskFailedResponse, error) {
	f.failed = in
	return &workflowservice.RespondActivityTaskFailedResponse{}, nil
}

func (f *frontend) GetWorkflowExecutionHistory(context.Context, *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: []*historypb.HistoryEvent{
		{EventId: 1, EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: f.started.GetInput()},
		}},
		{EventId: 2, EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
			WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: f.failed.GetFailure()},
		}},
	}}}, nil
}

func serve(t *testing.T) (*frontend, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, server := &frontend{}, grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return f, listener.Addr().String()
}

// TestTheServerSeesNothingInPlainText has a client send a secret wherever it goes, and read it back from the raw history.
func TestTheServerSeesNothingInPlainText(t *testing.T) {
	f, address := serve(t)
	c, _ := open(t, write(t, "", "a "+newKey(t)))
	options := client.Options{HostPort: address}
	if err := Apply(&options, c); err != nil {
		t.Fatal(err)
	}
	to, err := client.DialContext(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	node := temporal.NewSearchAttributeKeyKeyword("DrydockNode")
	_, err = to.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "w", TaskQueue: "drydock", StaticSummary: secret, StaticDetails: secret, Memo: map[string]any{"why": secret},
		TypedSearchAttributes: temporal.NewSearchAttributes(node.ValueSet("worker-01")),
	}, "NodeMaintenance", map[string]string{"reason": secret})
	if err != nil {
		t.Fatal(err)
	}
	_, err = to.WorkflowService().RespondActivityTaskFailed(t.Context(), &workflowservice.RespondActivityTaskFailedRequest{
		Failure: &failurepb.Failure{Message: secret, StackTrace: secret, Cause: &failurepb.Failure{Message: secret}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, sent := range []proto.Message{f.started, f.failed} {
		if raw, err := proto.Marshal(sent); err != nil || strings.Contains(string(raw), "kernel") {
			t.Errorf("%v\n%s", err, sent)
		}
	}
	if got := string(f.started.GetSearchAttributes().GetIndexedFields()["DrydockNode"].GetData()); got != `"worker-01"` {
		t.Errorf("search attribute %s", got)
	}
	events := to.GetWorkflowHistory(t.Context(), "w", "run", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	began, err := events.Next()
	if err != nil {
		t.Fatal(err)
	}
	var input map[string]string
	payloads := began.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err := converter.GetDefaultDataConverter().FromPayloads(payloads, &input); err != nil || input["reason"] != secret {
		t.Errorf("%v, %v", input, err)
	}
	ended, err := events.Next()
	if err != nil {
		t.Fatal(err)
	}
	if failure := ended.GetWorkflowExecutionFailedEventAttributes().GetFailure(); failure.GetMessage() != secret || failure.GetCause().GetMessage() != secret {
		t.Errorf("%s", failure)
	}
}
