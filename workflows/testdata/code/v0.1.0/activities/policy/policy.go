package policy

import (
	"context"
	"encoding/json"
	"time"
)

type Activities struct{}

// ApprovalInput is somebody's word on a maintenance that waits for approval.
type ApprovalInput struct {
	Word Word      `json:"word"`
	At   time.Time `json:"at"`
	// Before is the number of events that the run's history had when the word was read; 0 where it is not known.
	Before int64 `json:"before,omitempty"`
	// Maintenance is the specification, where there are rules to judge by.
	Maintenance json.RawMessage `json:"maintenance,omitempty"`
}

// Judged is what is known of a word, and why it does not count.
type Judged struct {
	// Principal is who sent it, as the server verified it: "<type>:<name>"; empty where it verified nobody.
	Principal string `json:"principal,omitempty"`
	// Refused is empty where the word counts.
	Refused string `json:"refused,omitempty"`
}

func (a *Activities) JudgeApproval(ctx context.Context, in ApprovalInput) (Judged, error) {
	panic("frozen")
}
