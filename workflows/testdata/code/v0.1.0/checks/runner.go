package checks

import ()

// Outcome is what a hook that went well leaves behind.
type Outcome struct {
	Message string `json:"message"`
	// Captured is to be given to the hook's cleanup, as Subject.Captured.
	Captured string `json:"captured,omitempty"`
}
