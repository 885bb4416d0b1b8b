package node

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/nodeevent"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/k8s"
	"encoding/json"
	"time"
)

type Activities struct{}

// HoldInput asks for a node to be marked for a maintenance.
type HoldInput struct {
	Node string `json:"node"`
	// UID is the node held before; empty accepts whatever has the name.
	UID string `json:"uid,omitempty"`
	// RunID is the first run of the maintenance.
	RunID string `json:"runId"`
	// Slot is the request by which the maintenance holds its slot.
	Slot      Slot            `json:"slot,omitzero"`
	Requestor string          `json:"requestor"`
	Since     time.Time       `json:"since"`
	Cordon    bool            `json:"cordon"`
	Phase     string          `json:"phase"`
	Event     nodeevent.Event `json:"event"`
	// Maintenance is the specification, where the policy is to judge it before the node is held.
	Maintenance json.RawMessage `json:"maintenance,omitempty"`
	// Prior is what the maintenance remembers of the node that it holds; nil where it holds it for the first time.
	Prior *Prior `json:"prior,omitempty"`
}

// Prior is what a node was like before Drydock came.
type Prior = k8s.Prior

// Slot names a slot that a scheduler granted.
type Slot struct {
	// Scheduler is the workflow ID of the scheduler.
	Scheduler string `json:"scheduler"`
	RequestID string `json:"requestId"`
}

// Held is what HoldNode found and did.
type Held struct {
	UID string `json:"uid"`
	// Run is the run of the maintenance that held the node.
	Run string `json:"run"`
	// Mark is the mark's text, by which a later step can tell without a request that it is still the same.
	Mark string `json:"mark"`
	// Again: the mark was there, and somebody had lifted the cordon.
	Again            bool `json:"again,omitempty"`
	WasUnschedulable bool `json:"wasUnschedulable,omitempty"`
	// BootID is the node's at that moment.
	BootID string `json:"bootId,omitempty"`
	// Cordon: the mark wants the node unschedulable. It still does where a cordon that was to be given up is in place.
	Cordon bool `json:"cordon,omitempty"`
	// Prior is what the maintenance is to remember of the node.
	Prior *Prior `json:"prior,omitempty"`
}

func (n *Activities) HoldNode(ctx context.Context, in HoldInput) (Held, error) { panic("frozen") }

func (n *Activities) AdoptNode(ctx context.Context, in HoldInput) (Held, error) { panic("frozen") }

func (n *Activities) AskSlot(ctx context.Context, slot Slot) (api.SlotHeld, error) { panic("frozen") }

// AnnounceInput is a change of phase to show on the node.
type AnnounceInput struct {
	Node string `json:"node"`
	// WorkflowID and RunID are the holder's; an empty WorkflowID is the calling workflow's.
	WorkflowID string `json:"workflowId,omitempty"`
	RunID      string `json:"runId"`
	// Mark is the mark's text as HoldNode returned it; it saves a request.
	Mark  string          `json:"mark,omitempty"`
	Phase string          `json:"phase"`
	Event nodeevent.Event `json:"event"`
}

func (n *Activities) AnnouncePhase(ctx context.Context, in AnnounceInput) error { panic("frozen") }

// UntaintInput asks for a held node's taint to be taken off.
type UntaintInput struct {
	Node  string `json:"node"`
	RunID string `json:"runId"`
}

func (n *Activities) Untaint(ctx context.Context, in UntaintInput) error { panic("frozen") }
