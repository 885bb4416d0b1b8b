package drain

import (
	"context"
)

// WaitInput asks to wait for pods of a held node to complete.
type WaitInput struct {
	Node          string `json:"node"`
	UID           string `json:"uid"`
	RunID         string `json:"runId"`
	PodSelector   string `json:"podSelector"`
	BlockedSignal string `json:"blockedSignal"`
}

func (d *Activities) WaitForPods(ctx context.Context, in WaitInput) error { panic("frozen") }
