package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/api"
)

// Observe looks at a maintenance. That no worker answers is no error: the View says so. A maintenance that has ended is
// not asked; LastStatus asks it.
func (c *Client) Observe(ctx context.Context, m Maintenance) (View, error) {
	v, err := c.observer(m).observe(ctx)
	return v, failedCall("looking at the maintenance of "+m.Node, err)
}

const observedAtOnce = 16

// ObserveAll looks at many maintenances, a few at a time, and returns their views in the same order.
func (c *Client) ObserveAll(ctx context.Context, all []Maintenance) ([]View, error) {
	views, errs := make([]View, len(all)), make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(observedAtOnce)
	for i, m := range all {
		group.Go(func() error {
			views[i], errs[i] = c.observer(m).observe(ctx)
			return nil
		})
	}
	_ = group.Wait() // what failed is in errs
	if err := cmp.Or(errs...); err != nil {
		return nil, failedCall("looking at the maintenances", err)
	}
	return views, nil
}

// LastStatus asks a maintenance that has ended for its last status, which says more than its result. A worker replays
// its history for it; where none runs it is a NoWorkerError.
func (c *Client) LastStatus(ctx context.Context, m Maintenance) (*api.Status, error) {
	return c.server.status(ctx, m)
}

// observer looks at one maintenance again and again, at little cost: Describe costs the server a read, and only if
// the history has grown since the last look is the workflow itself asked, which takes a worker.
type observer struct {
	server *server
	seen   View
	length int64
}

func (c *Client) observer(m Maintenance) *observer {
	return &observer{server: c.server, seen: View{Maintenance: m}}
}

func (o *observer) observe(ctx context.Context) (View, error) {
	described, err := o.server.describe(ctx, o.seen.WorkflowID, o.seen.RunID)
	if err != nil {
		return o.seen, err
	}
	info := described.GetWorkflowExecutionInfo()
	switch followed, err := o.follow(ctx, info); {
	case err != nil:
		return o.seen, err
	case followed:
		return o.observe(ctx)
	}
	if m, ok := maintenanceOf(info); ok {
		o.seen.Maintenance = m
	}
	if !o.seen.Running() {
		o.seen.Unanswered = nil
		err := o.ended(ctx) // it changes what was seen
		return o.seen, err
	}
	if o.seen.Status == nil || info.GetHistoryLength() != o.length || o.seen.Unanswered != nil {
		o.ask(ctx, info.GetHistoryLength())
	}
	o.seen.Status = withLiveProgress(o.seen.Status, described.GetPendingActivities())
	return o.seen, ctx.Err()
}

// follow goes on with the next run of the same maintenance, which a long one continues as, or which it was reset to. A
// run that began another chain is a later maintenance and not this one.
func (o *observer) follow(ctx context.Context, old *workflowpb.WorkflowExecutionInfo) (followed bool, err error) {
	continued := old.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
	if !continued && old.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED {
		return false, nil
	}
	newest, err := o.server.describe(ctx, o.seen.WorkflowID, "")
	if err != nil {
		return false, err
	}
	info := newest.GetWorkflowExecutionInfo()
	run := info.GetExecution().GetRunId()
	switch same := info.GetFirstRunId() == old.GetFirstRunId(); {
	case same && run != old.GetExecution().GetRunId():
		o.seen.RunID, o.length = run, 0
		return true, nil
	case continued:
		return false, fmt.Errorf("run %s of %s %w", o.seen.RunID, o.seen.WorkflowID, ErrSuperseded)
	default:
		return false, nil
	}
}

// ask queries the workflow. Nobody being there to answer is a fact and no error: the maintenance itself goes on.
func (o *observer) ask(ctx context.Context, length int64) {
	status, err := o.server.status(ctx, o.seen.Maintenance)
	if err != nil {
		o.seen.Unanswered = err
		return
	}
	o.seen.Status, o.seen.Unanswered, o.length = status, nil, length
}

func (o *observer) ended(ctx context.Context) error {
	end, err := endingOf(ctx, o.server, o.seen.WorkflowID, o.seen.RunID, maintenanceEnds, func(r api.Result) string { return r.Message })
	if err == nil {
		o.seen.Result, o.seen.Failure, o.seen.Refused = end.Result, end.Failure, end.Refused
	}
	return err
}

// maintenanceEnds are the words for ends of maintenances that say nothing by themselves.
var maintenanceEnds = endWords{
	terminated: "the workflow was terminated by hand; the scheduler takes the slot back and sees to the node",
	cancelled:  "the workflow was cancelled", timedOut: "the workflow timed out",
}

// refusedInput reports whether a workflow failed because its input is wrong, before it did anything.
func refusedInput(err error) bool {
	application, is := errors.AsType[*temporal.ApplicationError](err)
	return is && application.Type() == api.ErrorInvalidSpec
}

// liveActivities are the types of the activities whose heartbeats hold live progress.
var liveActivities = []string{"Drain", "WaitForPods"}

// livePreflight is the type of the activity whose heartbeats hold, in the form of a drain's blockers, what would stop one.
const livePreflight = "AwaitPreflight"

// withLiveProgress puts the drain's heartbeat into the status where it is newer than what the workflow knows: heartbeats never reach the
// workflow. A preflight signals the workflow a bounded number of times only.
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
		case name != livePreflight && live.Looked() && (status.Drain == nil || live.At.After(status.Drain.At)):
			live = status.Unsettled(live)
			merged.Drain = &live
		default:
			continue
		}
		return &merged
	}
	return status
}

// stoppedText is what a preflight waits for, in the workflow's words.
func stoppedText(p api.DrainProgress) string {
	first := p.Blockers[0]
	text := fmt.Sprintf("a fix for what would stop the drain: %s: %s", first.Pod, first.Message)
	if more := len(p.Blockers) - 1 + p.MoreBlockers; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// endOf is why a workflow did not complete, and the result that it has attached to that. Message is what a result says of a cancellation.
func endOf[T any](err error, words endWords, message func(T) string) (*T, string) {
	var (
		application  *temporal.ApplicationError
		cancellation *temporal.CanceledError
		result       T
	)
	switch {
	case isA[*temporal.TerminatedError](err):
		return nil, words.terminated
	case errors.As(err, &cancellation):
		if cancellation.HasDetails() && cancellation.Details(&result) == nil {
			return &result, message(result)
		}
		return nil, words.cancelled
	case errors.As(err, &application):
		if application.HasDetails() && application.Details(&result) == nil {
			return &result, application.Message()
		}
		return nil, application.Message()
	case words.timedOut != "" && isA[*temporal.TimeoutError](err):
		return nil, words.timedOut
	default:
		return nil, err.Error()
	}
}
