package execution

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"k8s.io/utils/lru"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
)

// maxParents bounds the runs that are followed to who started the first of them.
const maxParents = 8

// maxStarters bounds the runs whose starters are remembered.
const maxStarters = 1000

// firstTasks bounds the events of a run among which those of its first workflow tasks are.
const firstTasks = 50

// Starters finds out who started workflows. It remembers who started those that started others: a plan starts thousands.
type Starters struct {
	Temporal  client.Client
	Namespace string
	// Objects know who asked by Kubernetes objects; nil where those are not to be believed.
	Objects *Objects
	known   *lru.Cache
}

// NewStarters asks a server about the workflows of a namespace.
func NewStarters(temporal client.Client, namespace string) *Starters {
	return &Starters{Temporal: temporal, Namespace: namespace, known: lru.New(maxStarters)}
}

// Of is who started a workflow: by the first event of the first run of its chain, or, where another workflow started it, of
// that one's. Where an earlier history is gone, nobody is named. A maintenance that a Kubernetes object asks for is that of the user who
// created the object, where Objects know.
func (s *Starters) Of(ctx context.Context, run Run) (api.Sender, error) {
	event, root, parents, err := s.root(ctx, run)
	if err != nil {
		return api.Sender{}, err
	}
	if known, ok := s.known.Get(root); ok {
		return known.(api.Sender), nil
	}
	if event == nil {
		return api.Sender{}, nil
	}
	started := event.GetWorkflowExecutionStartedEventAttributes()
	sender := SenderOf(api.IdentityOfStarter(root.WorkflowID, started), event.GetPrincipal())
	memo := started.GetMemo().GetFields()
	_, begun := memo[api.MemoBegun]
	if _, byNexus := memo[api.MemoNexus]; begun || byNexus {
		sender.Principal = "" // a worker's, which is no person's
	}
	requestor, err := s.Objects.requestor(ctx, started)
	if err != nil {
		return api.Sender{}, err
	}
	sender.Principal = cmp.Or(requestor, sender.Principal)
	for _, parent := range parents {
		s.known.Add(parent, sender)
	}
	return sender, nil
}

// root is the run that all began with, and its first event, which is nil where that history is gone, where too many workflows started one
// another, and where who started it is known. Parents are the runs on the way.
func (s *Starters) root(ctx context.Context, run Run) (event *historypb.HistoryEvent, of Run, parents []Run, err error) {
	for range maxParents {
		if _, ok := s.known.Get(run); ok {
			return nil, run, parents, nil
		}
		event, err := firstEvent(ctx, s.Temporal, s.Namespace, run)
		var gone *serviceerror.NotFound
		switch {
		case errors.As(err, &gone):
			return nil, run, parents, nil
		case err != nil:
			return nil, run, parents, fmt.Errorf("reading who started workflow %s: %w", run.WorkflowID, err)
		}
		started := event.GetWorkflowExecutionStartedEventAttributes()
		parent := started.GetParentWorkflowExecution()
		switch first := started.GetFirstExecutionRunId(); {
		case first != "" && first != run.RunID && first != started.GetOriginalExecutionRunId():
			run.RunID = first
		case parent.GetWorkflowId() != "":
			run = Run{WorkflowID: parent.GetWorkflowId(), RunID: parent.GetRunId()}
			parents = append(parents, run)
		default:
			return event, run, parents, nil
		}
	}
	return nil, run, parents, nil
}

// Person is the verified principal who started a workflow. It is empty if the server verified nobody, or where a
// worker started it: nobody requested that in person.
func (s *Starters) Person(ctx context.Context, run Run) (string, error) {
	sender, err := s.Of(ctx, run)
	if err != nil || sender.Principal == "" {
		return "", err
	}
	page, err := s.Temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: s.Namespace, MaximumPageSize: firstTasks,
		Execution: &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID, RunId: run.RunID},
	})
	if err != nil {
		return "", fmt.Errorf("reading who answers the tasks of workflow %s: %w", run.WorkflowID, err)
	}
	for _, event := range page.GetHistory().GetEvents() {
		if WorkerOf(event) == sender.Principal {
			return "", nil
		}
	}
	return sender.Principal, nil
}

// WorkerOf is the verified principal of the worker that answered a workflow task, by its event; empty for other events.
func WorkerOf(event *historypb.HistoryEvent) string {
	if event.GetEventType() != enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
		return ""
	}
	return SenderOf("", event.GetPrincipal()).Principal
}

func firstEvent(ctx context.Context, temporal client.Client, namespace string, run Run) (*historypb.HistoryEvent, error) {
	page, err := temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: namespace, MaximumPageSize: 1,
		Execution: &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID, RunId: run.RunID},
	})
	if err != nil {
		return nil, err
	}
	events := page.GetHistory().GetEvents()
	if len(events) == 0 {
		return nil, serviceerror.NewNotFound("its history is empty")
	}
	return events[0], nil
}

// serverType is the type of the principal of what the server sends itself, as for a Schedule: nobody has said that in person.
const serverType = "temporal"

// SenderOf is who sent something, by the identity and the principal of its event. A principal is "<type>:<name>", by which
// no two are the same; one that is too long to be kept is nobody, and so is the server.
func SenderOf(identity string, p *commonpb.Principal) api.Sender {
	s := api.Sender{Identity: bounds.Cut(identity, bounds.Text)}
	if text := p.GetType() + ":" + p.GetName(); p.GetName() != "" && p.GetType() != serverType && len(text) <= bounds.Text {
		s.Principal = text
	}
	return s
}
