package cluster

import (
	"context"
)

// HeldSlot is a slot and the mark that its holder has on the node.
type HeldSlot struct {
	RequestID  string `json:"requestId"`
	Node       string `json:"node"`
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
}

func (c *Activities) SeeGivenBack(ctx context.Context, slots []HeldSlot) ([]string, error) {
	panic("frozen")
}
