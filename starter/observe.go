package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"drydock/api"
)

// view is what is known of a maintenance at one moment.
type view struct {
	target
	// Status is the workflow's own answer, nil until a worker has given one.
	Status *api.Status
	// Result is what the workflow returned; nil while it runs, and if it ended without returning anything.
	Result *api.Result
	// Failure says why it ended, where it failed.
	Failure string
	// Unanswered says why the workflow could not be asked; Status is then old or nil.
	Unanswered error
}

// phase is empty while no worker has said what it is.
func (v view) phase() api.Phase {
	switch {
	case v.Result != nil && v.Result.Phase != "":
		return v.Result.Phase
	case v.Execution == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return api.Cancelled
	case !v.running():
		return api.Failed
	case v.Status != nil:
		return v.Status.Phase
	default:
		return ""
	}
}

// wasReady tells whether the requestor ever had the node.
func (v view) wasReady() bool {
	var transitions []api.Transition
	if v.Status != nil {
		transitions = v.Status.Transitions
	}
	if v.Result != nil {
		transitions = append(transitions, v.Result.Transitions...)
	}
	for _, t := range transitions {
		if t.Phase == api.Ready {
			return true
		}
	}
	return false
}

// message is what the end has to say for itself.
func (v view) message() string {
	switch {
	case v.Failure != "":
		return v.Failure
	case v.Result != nil && v.Result.Message != "":
		return v.Result.Message
	case v.Status != nil:
		return v.Status.Failure
	default:
		return ""
	}
}

// observer looks at one maintenance again and again, at little cost: Describe costs the server a read, and only if
// the history has grown since the last look is the workflow itself asked, which takes a worker.
type observer struct {
	conn   *connection
	seen   view
	length int64
}

func (c *connection) observer(t target) *observer {
	return &observer{conn: c, seen: view{target: t}}
}

// liveActivities are the types of the activities whose heartbeats hold live progress.
var liveActivities = []string{"Drain", "WaitForPods"}

// livePreflight is the type of the activity whose heartbeats hold, in the form of a drain's blockers, what would stop one.
const livePreflight = "AwaitPreflight"

func (o *observer) observe(ctx context.Context) (view, error) {
	described, err := o.conn.describe(ctx, o.seen.ID, o.seen.Run)
	if err != nil {
		return o.seen, err
	}
	info := described.GetWorkflowExecutionInfo()
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
		return o.follow(ctx, info)
	}
	if t, ok := targetOf(info); ok {
		o.seen.target = t
	}
	if !o.seen.running() {
		o.seen.Unanswered = nil
		return o.seen, o.ended(ctx)
	}
	if o.seen.Status == nil || info.GetHistoryLength() != o.length || o.seen.Unanswered != nil {
		o.ask(ctx, info.GetHistoryLength())
	}
	o.seen.Status = withLiveProgress(o.seen.Status, described.GetPendingActivities())
	return o.seen, ctx.Err()
}

// follow goes on with the next run of the same maintenance, which a long one continues as. A run that began
// another chain is a later maintenance and not this one.
func (o *observer) follow(ctx context.Context, old *workflowpb.WorkflowExecutionInfo) (view, error) {
	newest, err := o.conn.describe(ctx, o.seen.ID, "")
	if err != nil {
		return o.seen, err
	}
	info := newest.GetWorkflowExecutionInfo()
	if info.GetFirstRunId() != old.GetFirstRunId() {
		return o.seen, fmt.Errorf("run %s of %s was continued in a run that has ended, and another maintenance has begun since", o.seen.Run, o.seen.ID)
	}
	o.seen.Run = info.GetExecution().GetRunId()
	o.length = 0
	return o.observe(ctx)
}

// ask queries the workflow. Nobody being there to answer is a fact and no error: the maintenance itself goes on.
func (o *observer) ask(ctx context.Context, length int64) {
	if !o.conn.polled(ctx) {
		o.seen.Unanswered = errors.New(o.conn.noWorker())
		return
	}
	status, err := o.conn.status(ctx, o.seen.target)
	if err != nil {
		o.seen.Unanswered = err
		return
	}
	o.seen.Status, o.seen.Unanswered, o.length = status, nil, length
}

func (o *observer) ended(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var result api.Result
	err := o.conn.GetWorkflow(ctx, o.seen.ID, o.seen.Run).GetWithOptions(ctx, &result, client.WorkflowRunGetOptions{DisableFollowingRuns: true})
	var failed *temporal.WorkflowExecutionError
	switch {
	case err == nil:
		o.seen.Result = &result
	case errors.As(err, &failed):
		o.seen.Result, o.seen.Failure = failureOf(failed)
	default:
		return err
	}
	return nil
}

// failureOf is why a workflow did not complete, and the result that it has attached to that.
func failureOf(err error) (*api.Result, string) {
	var (
		application *temporal.ApplicationError
		canceled    *temporal.CanceledError
		terminated  *temporal.TerminatedError
		timeout     *temporal.TimeoutError
		result      api.Result
	)
	switch {
	case errors.As(err, &terminated):
		return nil, "the workflow was terminated by hand; the scheduler takes the slot back and sees to the node"
	case errors.As(err, &canceled):
		if canceled.HasDetails() && canceled.Details(&result) == nil {
			return &result, result.Message
		}
		return nil, "the workflow was cancelled"
	case errors.As(err, &application):
		if application.HasDetails() && application.Details(&result) == nil {
			return &result, application.Message()
		}
		return nil, application.Message()
	case errors.As(err, &timeout):
		return nil, "the workflow timed out"
	default:
		return nil, err.Error()
	}
}

func (c *connection) describe(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.DescribeWorkflowExecution(ctx, id, run)
}

func (c *connection) status(ctx context.Context, t target) (*api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := c.QueryWorkflow(ctx, t.ID, t.Run, api.QueryStatus)
	if err != nil {
		return nil, fmt.Errorf("no answer from the maintenance of %s: %w", t.Node, err)
	}
	var status api.Status
	if err := answer.Get(&status); err != nil {
		return nil, fmt.Errorf("the status of %s is not of the form this program knows: %w", t.Node, err)
	}
	if status.Spec.Node == "" {
		// It was started a moment ago and has not read its input yet.
		status.Spec.Node, status.Spec.Requestor = t.Node, t.Requestor
	}
	return &status, nil
}

// prepared tells whether a maintenance has read its input, so that its spec is complete.
func prepared(s *api.Status) bool { return s != nil && s.Spec.Type != "" }

// withLiveProgress puts the drain's heartbeat into the status where it is newer than what the workflow knows:
// heartbeats never reach the workflow. Of a preflight the workflow hears a bounded number of times only.
func withLiveProgress(status *api.Status, pending []*workflowpb.PendingActivityInfo) *api.Status {
	if status == nil {
		return nil
	}
	for _, activity := range pending {
		name := activity.GetActivityType().GetName()
		if name != livePreflight && !slices.Contains(liveActivities, name) || activity.GetHeartbeatDetails() == nil {
			continue
		}
		var live api.DrainProgress
		if err := converter.GetDefaultDataConverter().FromPayloads(activity.GetHeartbeatDetails(), &live); err != nil {
			continue
		}
		merged := *status
		switch {
		case name == livePreflight && len(live.Blockers) > 0:
			merged.WaitingFor = stoppedText(live)
		case name != livePreflight && (status.Drain == nil || live.At.After(status.Drain.At)):
			merged.Drain = &live
		default:
			continue
		}
		return &merged
	}
	return status
}

// settled waits until the maintenance's first answer, so that a command can tell its phase.
func (o *observer) settled(ctx context.Context) (view, error) {
	v, err := o.observe(ctx)
	if err != nil {
		return v, o.conn.explain("looking at the maintenance", err)
	}
	if v.Unanswered != nil {
		return v, o.conn.explainUnanswered(v)
	}
	return v, nil
}

// errUnanswered marks the errors of a maintenance that no worker speaks for.
var errUnanswered = errors.New("the maintenance does not answer")

func (c *connection) explainUnanswered(v view) error {
	return hint(fmt.Errorf("%w: %w", errUnanswered, v.Unanswered), `The maintenance of %s goes on once a worker runs; see it with "%s status %s".`, v.Node, c.program, v.Node)
}
