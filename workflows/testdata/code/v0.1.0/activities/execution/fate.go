package execution

import (
	"context"
	"time"
)

// Fate is what became of a holder's chain of runs.
type Fate string

// The fates.
const (
	Alive Fate = "alive"
	Ended Fate = "ended"
	// Unknown: there is no such workflow, and the mark is so young that it would have to be known.
	Unknown Fate = "unknown"
)

// HolderRef names a holder: its workflow, the first run of its chain, and since when it holds.
type HolderRef struct {
	WorkflowID string    `json:"workflowId"`
	RunID      string    `json:"runId"`
	Since      time.Time `json:"since"`
}

// Found is the fate of a holder, and in words why.
type Found struct {
	Fate   Fate   `json:"fate"`
	Status string `json:"status"`
}

func (e *Activities) AskFate(ctx context.Context, h HolderRef) (Found, error) { panic("frozen") }
