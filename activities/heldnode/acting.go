package heldnode

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
)

// CallerOf is the calling workflow as one who acts on a node that the maintenance holds whose first run is runID.
func CallerOf(ctx context.Context, runID string) k8s.Caller {
	run := activity.GetInfo(ctx).WorkflowExecution
	return k8s.Caller{WorkflowID: run.ID, RunID: runID, Run: run.RunID}
}

// Acting is how activities touch held nodes. A maintenance that was reset, or continued as a new run, takes its mark over
// from the run before, and is fenced off by the run after.
type Acting struct {
	Client   kube.Interface
	Temporal client.Client
	// Nodes is the shared watch of nodes; nil if none is watched.
	Nodes *k8s.Nodes
}

// Do acts, and where another run of the maintenance holds the node takes it over first.
func (a Acting) Do(ctx context.Context, node string, c k8s.Caller, act func() error) error {
	err := act()
	if !errors.Is(err, k8s.ErrOtherRun) {
		return err
	}
	if err := a.TakeOver(ctx, node, c); err != nil {
		return err
	}
	return act()
}

// TakeOver has the mark name the caller's run. Errors: ErrNotHolder where that run does not act any more.
func (a Acting) TakeOver(ctx context.Context, node string, c k8s.Caller) error {
	if err := a.IsCurrent(ctx, c); err != nil {
		return fmt.Errorf("node %s: %w", node, err)
	}
	return k8s.TakeOver(ctx, a.Client, node, c)
}

// IsCurrent asks whether the caller's run is the one that acts for its maintenance. Errors: ErrNotHolder.
func (a Acting) IsCurrent(ctx context.Context, c k8s.Caller) error {
	found, err := a.Temporal.DescribeWorkflowExecution(ctx, c.WorkflowID, "")
	if err != nil {
		return fmt.Errorf("asking which run of %s acts: %w", c.WorkflowID, err)
	}
	if current := found.GetWorkflowExecutionInfo().GetExecution().GetRunId(); current != c.Run {
		return fmt.Errorf("%w: run %s acts for it now, and not %s", k8s.ErrNotHolder, current, c.Run)
	}
	return nil
}
