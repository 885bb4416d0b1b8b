package activitytest

import (
	"context"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
)

// Histories is a Temporal server that shows the first event of some runs, by run ID, and further ones to those who ask for more; others
// it does not know.
type Histories struct {
	workflowservice.WorkflowServiceClient
	First map[string]*historypb.HistoryEvent
	Later map[string][]*historypb.HistoryEvent
	// Err is what it answers in any case.
	Err error
}

// GetWorkflowExecutionHistory implements workflowservice.WorkflowServiceClient.
func (h *Histories) GetWorkflowExecutionHistory(_ context.Context, in *workflowservice.GetWorkflowExecutionHistoryRequest,
	_ ...grpc.CallOption,
) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	event, known := h.First[in.GetExecution().GetRunId()]
	switch {
	case h.Err != nil:
		return nil, h.Err
	case !known:
		return nil, serviceerror.NewNotFound("no such run")
	}
	events := append([]*historypb.HistoryEvent{event}, h.Later[in.GetExecution().GetRunId()]...)
	if most := int(in.GetMaximumPageSize()); most > 0 && len(events) > most {
		events = events[:most]
	}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: events}}, nil
}

// Started is the first event of a run that somebody started.
func Started(identity string, change func(*historypb.WorkflowExecutionStartedEventAttributes)) *historypb.HistoryEvent {
	attributes := &historypb.WorkflowExecutionStartedEventAttributes{Identity: identity}
	if change != nil {
		change(attributes)
	}
	return &historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: attributes},
	}
}

// Events is a history that is read event by event; of one that is gone nothing is known.
func Events(gone bool, all []*historypb.HistoryEvent) client.HistoryEventIterator {
	return &events{gone: gone, left: all}
}

type events struct {
	gone bool
	left []*historypb.HistoryEvent
}

func (e *events) HasNext() bool { return e.gone || len(e.left) > 0 }

func (e *events) Next() (*historypb.HistoryEvent, error) {
	if e.gone {
		return nil, serviceerror.NewNotFound("no such run")
	}
	next := e.left[0]
	e.left = e.left[1:]
	return next, nil
}
