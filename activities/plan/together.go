package plan

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/api"
)

// lookForNodes is the pause between two looks for nodes that come to match.
const lookForNodes = 20 * time.Second

// AwaitPlanNodes returns when other nodes match than those of the digest that was given.
func (a *Activities) AwaitPlanNodes(ctx context.Context, in ListInput) (Listed, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	for {
		listed, err := a.ListPlanNodes(ctx, in)
		if err != nil || !listed.Unchanged {
			return listed, err
		}
		select {
		case <-ctx.Done():
			return Listed{}, context.Cause(ctx)
		case <-time.After(cmp.Or(a.LookEvery, lookForNodes)):
		}
	}
}

// IntentInput is what a plan intends, for the lockstep of that workflow ID.
type IntentInput struct {
	Lockstep string         `json:"lockstep"`
	Intent   api.PlanIntent `json:"intent"`
}

// About implements caller.Input.
func (in IntentInput) About() caller.Subject {
	return caller.Subject{Plan: in.Intent.Name, RunID: in.Intent.RunID}
}

// SendIntent sends the lockstep what a plan intends, and starts it where it does not run. Errors: ForeignCaller.
func (a *Activities) SendIntent(ctx context.Context, in IntentInput) error {
	if err := caller.SignalWithStart(ctx, a.Temporal, in.Lockstep, api.SignalPlanIntent, in.Intent); err != nil {
		return fmt.Errorf("sending %s the intent of plan %s: %w", in.Lockstep, in.Intent.Name, err)
	}
	return nil
}
