package node

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/nodeevent"
	"encoding/json"
)

// ReleaseInput asks for a maintenance's mark to be taken off a node.
type ReleaseInput struct {
	Node string `json:"node"`
	// WorkflowID is the holder's; empty is the calling workflow's. RunID is the holder's first run.
	WorkflowID string          `json:"workflowId,omitempty"`
	RunID      string          `json:"runId"`
	Event      nodeevent.Event `json:"event"`
	// HideConditions: the maintenance showed lifecycle conditions, which are taken off.
	HideConditions bool `json:"hideConditions,omitempty"`
	// WithdrawRequests withdraws the EvictionRequests that the run's drain left behind.
	WithdrawRequests bool `json:"withdrawRequests,omitempty"`
	// Orphan has it released only if the holder does not run any more. Error: HolderAlive.
	Orphan bool `json:"orphan,omitempty"`
	// Prior is what the maintenance remembers of the node, should its mark be gone.
	Prior *Prior `json:"prior,omitempty"`
	// Then is sent as soon as the node is released; nil sends nothing.
	Then *Signal `json:"then,omitempty"`
}

// Signal is a signal to a workflow.
type Signal struct {
	WorkflowID string          `json:"workflowId"`
	Name       string          `json:"name"`
	Payload    json.RawMessage `json:"payload"`
}

// Released is what ReleaseNode found and did.
type Released struct {
	Gone    bool `json:"gone,omitempty"`
	Foreign bool `json:"foreign,omitempty"`
	// Stripped: the mark was gone, and what Drydock changed was put back all the same.
	Stripped     bool     `json:"stripped,omitempty"`
	Uncordoned   bool     `json:"uncordoned,omitempty"`
	OtherHolders []string `json:"otherHolders,omitempty"`
}

func (n *Activities) ReleaseNode(ctx context.Context, in ReleaseInput) (Released, error) {
	panic("frozen")
}
