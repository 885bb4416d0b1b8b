package profile

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"drydock.dev/drydock/api"
)

const (
	// askFreezeWithin bounds the question whether there is a freeze, freezeAgain is when it is asked again.
	askFreezeWithin = 10 * time.Second
	freezeAgain     = 10 * time.Second
)

// hold leaves out what a freeze holds back: whatever does not bring a node back. Where the scheduler does not answer there may be one.
func (e *evaluator) hold(ctx context.Context, all []move) (left []move, held bool) {
	forward := func(m move) bool { return IsForward(m.To) }
	if !slices.ContainsFunc(all, forward) {
		return all, false
	}
	frozen, err := e.isFrozen(ctx)
	if err != nil {
		activity.GetLogger(ctx).Warn("no transition begins: not known whether there is a freeze", "error", err)
	}
	if err == nil && !frozen {
		return all, false
	}
	return slices.DeleteFunc(slices.Clone(all), forward), true
}

// isFrozen asks the scheduler. Without one nothing is frozen.
func (e *evaluator) isFrozen(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askFreezeWithin)
	defer cancel()
	var summary api.Summary
	answer, err := e.Temporal.QueryWorkflow(ctx, api.SchedulerID(e.cluster), "", api.QuerySummary)
	var nobody *serviceerror.NotFound
	if errors.As(err, &nobody) {
		return false, nil
	}
	if err == nil {
		err = answer.Get(&summary)
	}
	return summary.Freezes > 0, err
}
