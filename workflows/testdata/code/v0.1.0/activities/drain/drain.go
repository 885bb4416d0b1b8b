package drain

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"time"
)

type Activities struct{}

// Input asks for a held node to be emptied.
type Input struct {
	Node string `json:"node"`
	UID  string `json:"uid"`
	// RunID is the first run of the maintenance that holds the node.
	RunID string     `json:"runId"`
	Drain spec.Drain `json:"drain"`
	// Why is shown on the pods that are evicted.
	Why string `json:"why,omitempty"`
	// Began is when the escalation's clock started.
	Began time.Time `json:"began"`
	// Cordoned is when the node was cordoned, by the server's clock.
	Cordoned time.Time `json:"cordoned,omitzero"`
	// Force is what the escalation allows by now: spec.BypassBudget deletes pods instead of evicting them, spec.Kill
	// does not give them time either.
	Force string `json:"force,omitempty"`
	// KillAt is when the rung Kill is due: before it every pod is deleted early enough to end in its own time.
	KillAt *time.Time `json:"killAt,omitempty"`
	// Skip are the pods, "namespace/name", that an operator asked to leave on the node.
	Skip []string `json:"skip,omitempty"`
	// Before is how far earlier drains of the same attempt came.
	Before *api.DrainProgress `json:"before,omitempty"`
	// BlockedSignal is the signal by which the workflow wants to hear of blockers.
	BlockedSignal string `json:"blockedSignal"`
}

func (d *Activities) Drain(ctx context.Context, in Input) (api.DrainProgress, error) { panic("frozen") }
