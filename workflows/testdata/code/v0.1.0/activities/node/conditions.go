package node

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/k8s"
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

func (n *Activities) ShowConditions(ctx context.Context, in ConditionsInput) error { panic("frozen") }
