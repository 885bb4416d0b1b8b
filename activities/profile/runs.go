package profile

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock/activities/execution"
	"drydock/api"
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
		if u.Ended || u.RunID == "" && !u.Doubted || time.Since(u.Began) < lookAtRunsEvery {
			continue
		}
		id := api.ProfileTransitionID(e.cluster, u.Profile, u.Node)
		first, err := execution.Running(ctx, e.Temporal, id)
		if err != nil {
			return err
		}
		activity.RecordHeartbeat(ctx)
		if first != "" && (u.Doubted || first == u.RunID) {
			continue
		}
		run := u.RunID
		if u.Doubted {
			run = "" // whichever was the last
		}
		var ended api.ProfileTransitionEnded
		if err := e.Temporal.GetWorkflow(ctx, id, run).Get(ctx, &ended); err != nil {
			activity.GetLogger(ctx).Info("a transition has ended without a result", "workflow", id, "error", err)
			u.Lost = true
		}
		u.Ended, u.Moved = true, ended.Moved
		result.Ended = append(result.Ended, u)
	}
	return nil
}
