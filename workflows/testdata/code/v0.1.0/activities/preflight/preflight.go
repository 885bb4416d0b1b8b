package preflight

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/preflight"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
)

type Activities struct{}

// Input asks what a drain of a node would meet.
type Input struct {
	Node  string     `json:"node"`
	Drain spec.Drain `json:"drain"`
	// WaitsForPods: the maintenance waits for pods before its drain.
	WaitsForPods bool `json:"waitsForPods,omitempty"`
	// Together are other nodes that go at the same time, and so have no room for pods.
	Together []string `json:"together,omitempty"`
	// BlockedSignal is the signal by which the workflow wants to hear what AwaitPreflight waits for.
	BlockedSignal string `json:"blockedSignal,omitempty"`
}

func (p *Activities) CheckPreflight(ctx context.Context, in Input) (preflight.Report, error) {
	panic("frozen")
}

func (p *Activities) AwaitPreflight(ctx context.Context, in Input) (preflight.Report, error) {
	panic("frozen")
}
