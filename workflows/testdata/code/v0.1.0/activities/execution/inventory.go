package execution

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"time"
)

// Inventory is what can be found out about maintenances without the scheduler.
type Inventory struct {
	// Marked are the holders written on nodes that still run, Ended those that do not.
	Marked api.List[MarkedHolder] `json:"marked,omitempty"`
	Ended  api.List[MarkedHolder] `json:"ended,omitempty"`
	// Strays are marks that are no holder's, at most MaxStrays of them, and StraysAll counts them.
	Strays    api.List[api.StrayMark] `json:"strays,omitempty"`
	StraysAll int                     `json:"straysAll,omitempty"`
	// Running are the maintenances that run, marked or not, More where the next of them begin.
	Running []Run  `json:"running,omitempty"`
	More    []byte `json:"more,omitempty"`
}

// MarkedHolder is a holder as its node's mark names it; its RunID is the first of its chain.
type MarkedHolder struct {
	Run
	Node      string    `json:"node"`
	Requestor string    `json:"requestor"`
	Since     time.Time `json:"since"`
}

// InventoryInput names the workflow type and the task queue of maintenances.
type InventoryInput struct {
	WorkflowType string `json:"workflowType"`
	TaskQueue    string `json:"taskQueue"`
	// From is the More of the inventory before, which told the marks.
	From []byte `json:"from,omitempty"`
}

func (e *Activities) TakeInventory(ctx context.Context, in InventoryInput) (Inventory, error) {
	panic("frozen")
}
