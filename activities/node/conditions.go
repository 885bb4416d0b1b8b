package node

import (
	"context"
	"errors"
	"time"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/k8s"
)

// Condition is a lifecycle condition of a node (KEP-5683).
type Condition = k8s.Condition

// The types of lifecycle conditions.
const (
	MaintenancePlanned    = k8s.MaintenancePlanned
	MaintenanceInProgress = k8s.MaintenanceInProgress
	DrainInProgress       = k8s.DrainInProgress
	Drained               = k8s.Drained
)

// ConditionsInput is what a maintenance shows in a node's status; no conditions take off its own.
type ConditionsInput struct {
	Node string `json:"node"`
	// RunID is the first run of the maintenance.
	RunID      string      `json:"runId"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// About implements caller.Input.
func (in ConditionsInput) About() caller.Subject {
	return caller.Subject{Node: in.Node, RunID: in.RunID}
}

// ShowConditions shows lifecycle conditions. A node that is gone shows none. Errors: MissingPermission.
func (n *Activities) ShowConditions(ctx context.Context, in ConditionsInput) error {
	caller := heldnode.CallerOf(ctx, in.RunID)
	err := k8s.ShowConditions(ctx, n.Client, in.Node, k8s.Claim{
		WorkflowID: caller.WorkflowID, RunID: caller.RunID, Namespace: n.Home.ID, Since: time.Now().UTC(), Conditions: in.Conditions,
	})
	if errors.Is(err, k8s.ErrNodeGone) {
		return nil
	}
	return failure.Translate(ctx, n.Client, err)
}
