package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"

	"drydock/api"
)

// CallTimeout bounds one call to Temporal, so that a server that is down is noticed rather than waited for.
const CallTimeout = 10 * time.Second

const (
	// A poll takes at most about a minute, so a poller that was not seen for longer is gone, though the server
	// still lists it.
	pollerIsGone = 2 * time.Minute
	polledIsOld  = 2 * time.Second
)

// server is the Temporal server, with what was last found out about its workers.
type server struct {
	temporal             temporalclient.Client
	namespace, taskQueue string
	now                  func() time.Time

	mu         sync.Mutex
	polledAt   time.Time
	polledThen bool
}

// polled tells whether a worker polls the task queue. A failure to find out counts as yes, since it is only used
// for hints and for not asking what nobody would answer.
func (s *server) polled(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.polledAt) < polledIsOld {
		return s.polledThen
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	answer, err := s.temporal.DescribeTaskQueue(ctx, s.taskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return true
	}
	s.polledAt, s.polledThen = now, false
	for _, poller := range answer.GetPollers() {
		if now.Sub(poller.GetLastAccessTime().AsTime()) < pollerIsGone {
			s.polledThen = true
		}
	}
	return s.polledThen
}

func (s *server) noWorker() error {
	return &NoWorkerError{TaskQueue: s.taskQueue, Namespace: s.namespace}
}

// HasWorker returns a NoWorkerError where no worker is there to do what is started and to answer what is asked. Where
// that cannot be found out it returns nil.
func (c *Client) HasWorker(ctx context.Context) error {
	if c.server.polled(ctx) {
		return nil
	}
	return c.server.noWorker()
}

func (s *server) describe(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return s.temporal.DescribeWorkflowExecution(ctx, id, run)
}

func (s *server) list(ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return s.temporal.ListWorkflow(ctx, request)
}

// status asks a maintenance, running or ended, for its status.
func (s *server) status(ctx context.Context, m Maintenance) (*api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	answer, err := s.temporal.QueryWorkflow(ctx, m.WorkflowID, m.RunID, api.QueryStatus)
	if err != nil {
		return nil, fmt.Errorf("no answer from the maintenance of %s: %w", m.Node, err)
	}
	var status api.Status
	if err := answer.Get(&status); err != nil {
		return nil, fmt.Errorf("the status of %s is not of the form this program knows: %w", m.Node, err)
	}
	if status.Spec.Node == "" {
		// It was started a moment ago and has not read its input yet.
		status.Spec.Node, status.Spec.Requestor = m.Node, m.Requestor
	}
	return &status, nil
}

// start starts a workflow within the time of one call.
func (s *server) start(ctx context.Context, options temporalclient.StartWorkflowOptions, workflow string, input any) (temporalclient.WorkflowRun, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	options.TaskQueue = s.taskQueue
	return s.temporal.ExecuteWorkflow(ctx, options, workflow, input)
}

// sleep returns false where ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
