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

// Work is what a workflow has to know of the work on a node that is Ready. It holds no secrets.
type Work struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Deadline is the time after its beginning at which the work has failed.
	Deadline period.Duration `json:"deadline"`
	// NewBootID is true if its success is SuccessByBootID.
	NewBootID bool `json:"newBootID,omitempty"`
}

// IsBegun reports whether the work has a start of its own and is only followed afterwards: a Job that is created, or a boot ID
// that is read before it is to change.
func (w Work) IsBegun() bool { return w.Kind == KindJob || w.NewBootID }
