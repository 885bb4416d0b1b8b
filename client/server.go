package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
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

	mu sync.Mutex
	// polledAt is when it was last looked for polls, and lastPolled the last poll that was seen then.
	polledAt, lastPolled time.Time
	// silentSince is the last poll before nobody answered: no second answer is waited for as long, until somebody polls.
	silentSince time.Time
}

// polled reports whether a worker polls the task queue, and when it was last seen to. A failure to find out counts as yes,
// since it is only used for hints and for not asking what nobody would answer; the time is then zero.
func (s *server) polled(ctx context.Context) (seen time.Time, polled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.polledAt) >= polledIsOld {
		ctx, cancel := context.WithTimeout(ctx, CallTimeout)
		defer cancel()
		last, err := s.lastPoll(ctx)
		if err != nil {
			return time.Time{}, true
		}
		s.polledAt, s.lastPolled = now, last
	}
	return s.lastPolled, now.Sub(s.lastPolled) < pollerIsGone
}

// lastPoll is when a worker last polled the task queue for anything, the zero time where the server knows of none.
func (s *server) lastPoll(ctx context.Context) (last time.Time, err error) {
	for _, kind := range []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY} {
		answer, err := s.temporal.DescribeTaskQueue(ctx, s.taskQueue, kind)
		if err != nil {
			return last, err
		}
		for _, poller := range answer.GetPollers() {
			if at := poller.GetLastAccessTime().AsTime(); at.After(last) {
				last = at
			}
		}
	}
	return last, nil
}

func (s *server) noWorker() error {
	return &NoWorkerError{TaskQueue: s.taskQueue, Namespace: s.namespace}
}

const (
	// serverWithin is how soon a server answers that is there.
	serverWithin = 3 * time.Second
	// silentWithin is how soon a worker answers that was silent a moment ago and is there again.
	silentWithin = 4 * time.Second
)

// query asks a workflow, which takes a worker. Where none answers and the server is there, it is a NoWorkerError, or a
// BusyError where one has polled meanwhile.
func (s *server) query(ctx context.Context, id, run, name string, answer any, args ...any) error {
	seen, polled := s.polled(ctx)
	if !polled {
		return s.noWorker()
	}
	within := s.patience(seen)
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	value, err := s.temporal.QueryWorkflow(asking, id, run, name, args...)
	if err != nil {
		return s.silent(ctx, err, seen, within)
	}
	s.remember(time.Time{})
	if err := value.Get(answer); err != nil {
		return fmt.Errorf("the answer is not of the form this program knows: %w", err)
	}
	return nil
}

// patience is how long an answer is waited for: a worker that was silent and has not polled since is likely to be gone.
func (s *server) patience(seen time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !seen.IsZero() && seen.Equal(s.silentSince) {
		return silentWithin
	}
	return CallTimeout
}

// remember keeps the last poll before a silence, or with the zero time that somebody has answered.
func (s *server) remember(silentSince time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silentSince = silentSince
}

// silent explains why a worker has not answered a call: the error stays as it is where the server does not answer either, and is a
// NoWorkerError or a BusyError where it does. Before is the last poll seen before the call.
func (s *server) silent(ctx context.Context, err error, before time.Time, waited time.Duration) error {
	if ctx.Err() != nil || !unreachable(err) && !noPoller(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, serverWithin)
	defer cancel()
	seen, asked := s.lastPoll(ctx)
	switch {
	case asked != nil:
		return err
	case s.now().Sub(seen) > pollerIsGone:
		return s.noWorker()
	case !before.IsZero() && seen.After(before):
		return &BusyError{Waited: waited}
	}
	s.remember(seen)
	return s.silentWorker()
}

func (s *server) silentWorker() error {
	return &NoWorkerError{TaskQueue: s.taskQueue, Namespace: s.namespace, Silent: true}
}

// noPoller reports whether the server did not even hand a query out, because nobody has polled for a while.
func noPoller(err error) bool {
	failed, is := errors.AsType[*serviceerror.FailedPrecondition](err)
	return is && strings.Contains(failed.Message, "poller")
}

// HasWorker returns a NoWorkerError where no worker has polled for minutes. A worker that has just stopped still counts: only a call to it
// shows that. Where the server does not answer it returns nil.
func (c *Client) HasWorker(ctx context.Context) error {
	if _, polled := c.server.polled(ctx); polled {
		return nil
	}
	return c.server.noWorker()
}

func (s *server) describe(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return s.temporal.DescribeWorkflowExecution(ctx, id, run)
}

// listRuns finds the workflows of a type whose IDs begin alike, newest first: those that run, or also those that have ended. Runs that
// went on in another are left out.
func listRuns[T any](ctx context.Context, s *server, kind, prefix string, running bool, read func(*workflowpb.WorkflowExecutionInfo) (T, bool)) ([]T, error) {
	query := fmt.Sprintf(`WorkflowType="%s" AND WorkflowId STARTS_WITH "%s" AND ExecutionStatus != "ContinuedAsNew"`, kind, prefix)
	if running {
		query += ` AND ExecutionStatus="Running"`
	}
	return listAll(ctx, s, query, 0, read)
}

// listAll finds workflows by a query, newest first, those alone that read knows. A limit of 0 is none.
func listAll[T any](ctx context.Context, s *server, query string, limit int, read func(*workflowpb.WorkflowExecutionInfo) (T, bool)) ([]T, error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 500}
	var found []T
	for {
		calling, cancel := context.WithTimeout(ctx, CallTimeout)
		page, err := s.temporal.ListWorkflow(calling, request)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, info := range page.GetExecutions() {
			if one, ok := read(info); ok {
				found = append(found, one)
			}
			if limit > 0 && len(found) == limit {
				return found, nil
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return found, nil
		}
	}
}

// status asks a maintenance, running or ended, for its status.
func (s *server) status(ctx context.Context, m Maintenance) (*api.Status, error) {
	var status api.Status
	err := s.query(ctx, m.WorkflowID, m.RunID, api.QueryStatus, &status)
	switch {
	case isA[*NoWorkerError](err):
		return nil, err
	case err != nil && unreachable(err):
		return nil, fmt.Errorf("no answer from the maintenance of %s: %w", m.Node, ErrUnreachable)
	case err != nil:
		return nil, fmt.Errorf("no answer from the maintenance of %s: %w", m.Node, err)
	}
	if status.Spec.Node == "" {
		// It was started a moment ago and has not read its input yet.
		status.Spec.Node, status.Spec.Requestor = m.Node, m.Requestor
	}
	return &status, nil
}

func (s *server) start(ctx context.Context, options temporalclient.StartWorkflowOptions, workflow string, input any) (temporalclient.WorkflowRun, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	options.TaskQueue = s.taskQueue
	return s.temporal.ExecuteWorkflow(ctx, options, workflow, input)
}

// sleep returns false if ctx ends first.
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
