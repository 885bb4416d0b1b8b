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

	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/record"
)

// Execution is a maintenance, or a plan. RunID is the first run of its chain; empty is that of the latest of its workflow ID, if the caller
// began it.
type Execution struct {
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId,omitempty"`
}

// Ended is how a maintenance ended.
type Ended struct {
	Execution
	Phase api.Phase `json:"phase,omitempty"`
	// Kind is the type of its error, where it failed.
	Kind    string `json:"kind,omitempty"`
	Message string `json:"message,omitempty"`
	// Moves counts the pods that it had moved.
	Moves record.PodMoves `json:"moves,omitzero"`
	// Going: it has not ended. The caller gave no run, and this is the run.
	Going bool `json:"going,omitempty"`
	// Foreign: what runs under this workflow ID is not the caller's. Unknown: nothing is known of it.
	Foreign bool `json:"foreign,omitempty"`
	Unknown bool `json:"unknown,omitempty"`
}

const (
	// gather is how long AwaitEnds waits for further ends once one is known.
	gather = 200 * time.Millisecond
	// lookAgain is the pause before the next request for a maintenance after an error.
	lookAgain = 2 * time.Second
	// maxWatched bounds the requests that wait on the server for the end of a maintenance. lookAtRest is the interval between checks of the
	// others.
	maxWatched = 500
	lookAtRest = 10 * time.Second
)

// AwaitEnds returns when some of the executions have ended: Temporal reports the end of a child only to the run that began it, and a plan
// continues as new. It also returns when it has found the run of one that was given without. Of very many, it reports the ends of the first
// at once.
func (a *Activities) AwaitEnds(ctx context.Context, awaited api.List[Execution]) ([]Ended, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan Ended, len(awaited))
	watched := awaited[:min(len(awaited), maxWatched)]
	for _, e := range watched {
		go func() {
			if ended, ok := a.awaitEnd(waiting, e); ok {
				ends <- ended
			}
		}()
	}
	if rest := awaited[len(watched):]; len(rest) > 0 {
		go a.lookAt(waiting, rest, ends)
	}
	var all []Ended
	var enough <-chan time.Time
	for len(all) < len(awaited) {
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
func (a *Activities) awaitEnd(ctx context.Context, e Execution) (Ended, bool) {
	for {
		ended, err := a.end(ctx, e)
		if err == nil {
			return ended, true
		}
		if ctx.Err() != nil {
			return Ended{}, false
		}
		activity.GetLogger(ctx).Warn("waiting for the end of a maintenance", "workflow", e.WorkflowID, "error", err)
		select {
		case <-ctx.Done():
			return Ended{}, false
		case <-time.After(lookAgain):
		}
	}
}

// lookAt checks which of the maintenances have ended, one after the other, until ctx ends.
func (a *Activities) lookAt(ctx context.Context, awaited []Execution, ends chan<- Ended) {
	left := slices.Clone(awaited)
	for ctx.Err() == nil {
		left = slices.DeleteFunc(left, func(e Execution) bool {
			info, err := a.describe(ctx, e.WorkflowID)
			if err == nil && info.GetFirstRunId() == e.RunID && info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
				return false
			}
			ended, ok := a.awaitEnd(ctx, e)
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

// end waits for the end of a maintenance's last run: one that was reset goes on. Of one without a run it returns the run.
func (a *Activities) end(ctx context.Context, e Execution) (Ended, error) {
	for {
		info, err := a.describe(ctx, e.WorkflowID)
		var notFound *serviceerror.NotFound
		switch {
		case errors.As(err, &notFound):
			return Ended{Execution: e, Unknown: true}, nil
		case err != nil:
			return Ended{}, err
		}
		first := info.GetFirstRunId()
		if e.RunID == "" {
			if info.GetParentExecution().GetWorkflowId() != activity.GetInfo(ctx).WorkflowExecution.ID {
				return Ended{Execution: e, Foreign: true, Message: "what runs under its workflow ID is somebody else's"}, nil
			}
			e.RunID = first
			if info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
				return Ended{Execution: e, Going: true}, nil
			}
		}
		run := info.GetExecution().GetRunId()
		if first != e.RunID {
			run = e.RunID // another maintenance followed
		}
		ended, err := a.endOf(ctx, e, run)
		if err != nil {
			return Ended{}, err
		}
		after, err := a.describe(ctx, e.WorkflowID)
		if err != nil {
			return Ended{}, err
		}
		if after.GetFirstRunId() != e.RunID || after.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return ended, nil
		}
	}
}

func (a *Activities) describe(ctx context.Context, id string) (*workflowpb.WorkflowExecutionInfo, error) {
	d, err := a.Temporal.DescribeWorkflowExecution(ctx, id, "")
	return d.GetWorkflowExecutionInfo(), err
}

// endOf waits for the end of a run and of those that it continues as.
func (a *Activities) endOf(ctx context.Context, e Execution, run string) (Ended, error) {
	var result api.Result
	err := a.Temporal.GetWorkflow(ctx, e.WorkflowID, run).Get(ctx, &result)
	if err == nil {
		return EndOf(e, result, nil), nil
	}
	var failed *temporal.WorkflowExecutionError
	if !errors.As(err, &failed) {
		return Ended{}, fmt.Errorf("waiting for the end of workflow %s: %w", e.WorkflowID, err)
	}
	return EndOf(e, result, err), nil
}

// EndOf is the end of an execution by its result and its error.
func EndOf(e Execution, result api.Result, err error) Ended {
	ended := Ended{Execution: e, Phase: result.Phase, Message: result.Message}
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
		if application.HasDetails() {
			_ = application.Details(&result) // other errors have other details
		}
	default:
		ended.Phase, ended.Message = api.Failed, err.Error()
	}
	ended.Message, ended.Moves = bounds.Cut(ended.Message, bounds.Text), result.Moves
	return ended
}
