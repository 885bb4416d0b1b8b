package profile

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
)

// lookAtRunsEvery is how often is looked whether the transitions under way run.
const lookAtRunsEvery = 10 * time.Second

// lookAtRuns finds out which transitions do not run though nobody said that they have ended.
func (e *evaluator) lookAtRuns(ctx context.Context, result *Evaluated) error {
	e.mu.Lock()
	due := time.Since(e.lookedAt) >= lookAtRunsEvery
	if due {
		e.lookedAt = time.Now()
	}
	e.mu.Unlock()
	if !due {
		return nil
	}
	for _, u := range e.in.UnderWay {
		if u.Ended || u.RunID == "" && !u.IDTaken || time.Since(u.Began) < lookAtRunsEvery {
			continue
		}
		id := api.ProfileTransitionID(e.cluster, u.Profile, u.Node)
		first, err := execution.Running(ctx, e.Temporal, id)
		if err != nil {
			return err
		}
		activity.RecordHeartbeat(ctx)
		if first != "" && (u.IDTaken || first == u.RunID) {
			continue
		}
		ended, err := e.resultOf(ctx, id, u, first == "")
		if err != nil {
			activity.GetLogger(ctx).Info("a transition has ended without a result", "workflow", id, "error", err)
			u.Lost = true
		}
		u.Ended, u.Moved = true, ended.Moved
		result.Ended = append(result.Ended, u)
	}
	return nil
}

// resultOf is what a transition came to that has ended. A run that was terminated may have been reset: the latest run of its ID is it, where
// none of another runs.
func (e *evaluator) resultOf(ctx context.Context, id string, u UnderWay, none bool) (ended api.ProfileTransitionEnded, err error) {
	var terminated *temporal.TerminatedError
	if !u.IDTaken {
		err = e.Temporal.GetWorkflow(ctx, id, u.RunID).Get(ctx, &ended)
	}
	if u.IDTaken || none && errors.As(err, &terminated) {
		err = e.Temporal.GetWorkflow(ctx, id, "").Get(ctx, &ended)
	}
	return ended, err
}
