package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

// Named is a workflow that has a name of its own, whether it runs or not: a plan, a health check.
type Named struct {
	Name string

	server  *server
	options Options
	// kind is the type of the workflow, what it is called with its name, and id its workflow ID.
	kind, what, id string
	// asked is a query for its status that costs little.
	asked any
}

// as is the workflow for messages in somebody else's name; an empty one changes nothing.
func (n Named) as(by string) Named {
	n.options.By = cmp.Or(by, n.options.By)
	return n
}

// WorkflowID is the workflow's.
func (n Named) WorkflowID() string { return n.id }

// NoneError says that there is no workflow of a name that runs.
type NoneError struct {
	// What there is not, such as "plan kernel".
	What string
	// Ended: there was one.
	Ended bool
}

func (e *NoneError) Error() string {
	if e.Ended {
		return e.What + " has ended"
	}
	return "there is no " + e.What
}

// RunsError says that a workflow of a name runs already.
type RunsError struct{ What string }

func (e *RunsError) Error() string { return e.What + " runs already" }

// Send sends a message of package api, such as api.MsgPause with the payload api.Simple, and returns what the workflow answers. ID, By and
// Comment are filled in where the payload lacks them. Errors: NoneError, ErrEnded, ErrInvalid, ErrUnanswered, RefusedError, UnsettledError.
func (n Named) Send(ctx context.Context, name string, payload any, comment string) (Sent, error) {
	return n.server.tell(ctx, recipient{
		kind: n.kind, who: n.what, by: n.options.By, id: n.id, question: api.QueryStatus, asked: []any{n.asked}, none: &NoneError{What: n.what},
	}, name, payload, comment)
}

func (n Named) query(ctx context.Context, name string, answer, asked any) error {
	return n.failed("asking "+n.what, n.server.query(ctx, n.id, "", name, answer, asked))
}

// describe is a NoneError where there was no such workflow.
func (n Named) describe(ctx context.Context) (*workflowpb.WorkflowExecutionInfo, error) {
	described, err := n.server.describe(ctx, n.id, "")
	return described.GetWorkflowExecutionInfo(), n.failed("looking at "+n.what, err)
}

func (n Named) failed(doing string, err error) error {
	switch {
	case isA[*serviceerror.NotFound](err):
		return &NoneError{What: n.what}
	case isA[*serviceerror.WorkflowExecutionAlreadyStarted](err):
		return &RunsError{n.what}
	case isA[*NoWorkerError](err):
		return err
	}
	return failedCall(doing, err)
}

// Run is one run of a workflow as Temporal's lists know it.
type Run struct {
	Name, WorkflowID, RunID string
	// FirstRunID is the first run of the chain, which identifies the workflow: RunID is another one once it was reset, or was continued.
	FirstRunID     string
	Started, Ended time.Time
	Execution      enumspb.WorkflowExecutionStatus
}

// execution is the run as summaries have it, without its end.
func (r Run) execution() api.Execution {
	return api.Execution{WorkflowID: r.WorkflowID, RunID: r.RunID, CreatedAt: r.Started}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Running reports whether it runs.
func (r Run) Running() bool { return r.Execution == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING }

func runOf(name string, info *workflowpb.WorkflowExecutionInfo) Run {
	run := Run{
		Name: name, WorkflowID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId(),
		FirstRunID: cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()),
		Started:    info.GetStartTime().AsTime(), Execution: info.GetStatus(),
	}
	if info.GetCloseTime() != nil {
		run.Ended = info.GetCloseTime().AsTime()
	}
	return run
}

type ending[T any] struct {
	// Result is what it returned; nil if that is nothing.
	Result *T
	// Failure says why it did not complete. Refused: because its input was refused, before anything was done.
	Failure string
	Refused bool
}

// endWords are the words for ends that say nothing by themselves. Where timedOut is empty, Temporal's error says it.
type endWords struct{ terminated, cancelled, timedOut string }

// endingOf reads how a workflow has ended, which takes no worker. Message is what a result says of a cancellation.
func endingOf[T any](ctx context.Context, s *server, id, run string, words endWords, message func(T) string) (e ending[T], err error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var result T
	err = s.temporal.GetWorkflow(ctx, id, run).GetWithOptions(ctx, &result, temporalclient.WorkflowRunGetOptions{DisableFollowingRuns: true})
	var failed *temporal.WorkflowExecutionError
	switch {
	case err == nil:
		e.Result = &result
	case errors.As(err, &failed):
		e.Result, e.Failure = endOf(failed, words, message)
		e.Refused = refusedInput(failed)
	default:
		return e, err
	}
	return e, nil
}
