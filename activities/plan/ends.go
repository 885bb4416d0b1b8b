package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"drydock/activities/heartbeat"
	"drydock/api"
	"drydock/rules/bounds"
)

// Flight is a maintenance, or a plan, whose end is waited for. RunID is the first run of its chain; empty is that of the latest under this
// workflow ID, if the caller began it.
type Flight struct {
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId,omitempty"`
}

// Ended is how a maintenance ended.
type Ended struct {
	Flight
	Phase api.Phase `json:"phase,omitempty"`
	// Kind is the type of its error, where it failed.
	Kind    string `json:"kind,omitempty"`
	Message string `json:"message,omitempty"`
	// Going: it has not ended. It is the one that a flight without a run asked for.
	Going bool `json:"going,omitempty"`
	// Foreign: what runs under this workflow ID is not the caller's. Unknown: nothing is known of it.
	Foreign bool `json:"foreign,omitempty"`
	Unknown bool `json:"unknown,omitempty"`
}

const (
	// gather is how long to wait for further ends once one is known.
	gather = 200 * time.Millisecond
	// lookAgain is the pause before a maintenance is asked for again, about which Temporal did not answer.
	lookAgain = 2 * time.Second
	// maxWatched bounds the questions that a server is to answer when a maintenance ends, lookAtRest is the pause between two
	// looks at the others.
	maxWatched = 500
	lookAtRest = 10 * time.Second
)

// AwaitEnds returns when one or more of the maintenances have ended: a child's end is told to the run that began it only,
// and a plan continues as new. It returns too when it knows which run a flight without one is. Of very many the first are
// told of at once.
func (a *Activities) AwaitEnds(ctx context.Context, flights api.List[Flight]) ([]Ended, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan Ended, len(flights))
	watched := flights[:min(len(flights), maxWatched)]
	for _, f := range watched {
		go func() {
			if ended, ok := a.awaitEnd(waiting, f); ok {
				ends <- ended
			}
		}()
	}
	if rest := flights[len(watched):]; len(rest) > 0 {
		go a.lookAt(waiting, rest, ends)
	}
	var all []Ended
	var enough <-chan time.Time
	for len(all) < len(flights) {
		select {
		case ended := <-ends:
			all = append(all, ended)
			if enough == nil {
				enough = time.After(gather)
			}
		case <-enough:
			return all, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return all, nil
}

// awaitEnd tries until it knows the end, or ctx ends.
func (a *Activities) awaitEnd(ctx context.Context, f Flight) (Ended, bool) {
	for {
		ended, err := a.end(ctx, f)
		if err == nil {
			return ended, true
		}
		if ctx.Err() != nil {
			return Ended{}, false
		}
		activity.GetLogger(ctx).Warn("waiting for the end of a maintenance", "workflow", f.WorkflowID, "error", err)
		select {
		case <-ctx.Done():
			return Ended{}, false
		case <-time.After(lookAgain):
		}
	}
}

// lookAt looks again and again which of the maintenances have ended, one after the other.
func (a *Activities) lookAt(ctx context.Context, flights []Flight, ends chan<- Ended) {
	left := slices.Clone(flights)
	for ctx.Err() == nil {
		left = slices.DeleteFunc(left, func(f Flight) bool {
			info, err := a.describe(ctx, f.WorkflowID)
			if err == nil && info.GetFirstRunId() == f.RunID && info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
				return false
			}
			ended, ok := a.awaitEnd(ctx, f)
			if ok {
				ends <- ended
			}
			return ok
		})
		select {
		case <-ctx.Done():
		case <-time.After(lookAtRest):
		}
	}
}

// end waits for the end of a maintenance's last run: one that was reset goes on. Of one that is asked for without a run it
// tells which that is.
func (a *Activities) end(ctx context.Context, f Flight) (Ended, error) {
	for {
		info, err := a.describe(ctx, f.WorkflowID)
		var notFound *serviceerror.NotFound
		switch {
		case errors.As(err, &notFound):
			return Ended{Flight: f, Unknown: true}, nil
		case err != nil:
			return Ended{}, err
		}
		first := info.GetFirstRunId()
		if f.RunID == "" {
			if info.GetParentExecution().GetWorkflowId() != activity.GetInfo(ctx).WorkflowExecution.ID {
				return Ended{Flight: f, Foreign: true, Message: "what runs under its workflow ID is somebody else's"}, nil
			}
			f.RunID = first
			if info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
				return Ended{Flight: f, Going: true}, nil
			}
		}
		run := info.GetExecution().GetRunId()
		if first != f.RunID {
			run = f.RunID // another maintenance followed
		}
		ended, err := a.endOf(ctx, f, run)
		if err != nil {
			return Ended{}, err
		}
		after, err := a.describe(ctx, f.WorkflowID)
		if err != nil {
			return Ended{}, err
		}
		if after.GetFirstRunId() != f.RunID || after.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return ended, nil
		}
	}
}

func (a *Activities) describe(ctx context.Context, id string) (*workflowpb.WorkflowExecutionInfo, error) {
	d, err := a.Temporal.DescribeWorkflowExecution(ctx, id, "")
	return d.GetWorkflowExecutionInfo(), err
}

// endOf waits for the end of a run and of those that it continues as.
func (a *Activities) endOf(ctx context.Context, f Flight, run string) (Ended, error) {
	var result api.Result
	err := a.Temporal.GetWorkflow(ctx, f.WorkflowID, run).Get(ctx, &result)
	if err == nil {
		return EndOf(f, result, nil), nil
	}
	var failed *temporal.WorkflowExecutionError
	if !errors.As(err, &failed) {
		return Ended{}, fmt.Errorf("waiting for the end of workflow %s: %w", f.WorkflowID, err)
	}
	return EndOf(f, result, err), nil
}

// EndOf sorts the end of a maintenance, as its result and its error tell it.
func EndOf(f Flight, result api.Result, err error) Ended {
	ended := Ended{Flight: f, Phase: result.Phase, Message: result.Message}
	var application *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var terminated *temporal.TerminatedError
	switch {
	case err == nil:
	case errors.As(err, &cancelled):
		ended.Phase = api.Cancelled
		if cancelled.HasDetails() && cancelled.Details(&result) == nil {
			ended.Message = result.Message
		}
	case errors.As(err, &terminated):
		ended.Phase, ended.Message = api.Failed, "its workflow was terminated"
	case errors.As(err, &application):
		ended.Phase, ended.Kind, ended.Message = api.Failed, application.Type(), application.Message()
	default:
		ended.Phase, ended.Message = api.Failed, err.Error()
	}
	ended.Message = bounds.Cut(ended.Message, bounds.Text)
	return ended
}
