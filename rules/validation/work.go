package validation

import (
	"time"

	"drydock.dev/drydock/rules/period"
)

// Success is what counts as the success of work.
type Success string

// OwnSuccess is what the call or the Job says of itself, SuccessByBootID that the node was restarted and is Ready again,
// whatever those say: a Job that its own reboot killed has not failed.
const (
	OwnSuccess      Success = "own"
	SuccessByBootID Success = "newBootID"
)

// DefaultWorkDeadline is the deadline of work that names none.
const DefaultWorkDeadline = period.Duration(30 * time.Minute)

// Work is what a workflow has to know of what is done to a node that is Ready. It holds no secrets.
type Work struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Deadline is the time after its beginning at which the work has failed.
	Deadline period.Duration `json:"deadline"`
	// NewBootID tells that its success is SuccessByBootID.
	NewBootID bool `json:"newBootID,omitempty"`
}

// IsBegun tells that the work has a beginning of its own, after which it is only looked at: that of a Job, and the look at
// the boot ID that it is to change.
func (w Work) IsBegun() bool { return w.Kind == KindJob || w.NewBootID }
