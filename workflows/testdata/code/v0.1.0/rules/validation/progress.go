package validation

import ()

// State is where a validation stands.
type State string

// The states. Passed and Failed are ends: nothing is looked at any more.
const (
	// Waiting: something does not hold. Soaking: all holds, and has to keep holding.
	Waiting State = "waiting"
	Soaking State = "soaking"
	Passed  State = "passed"
	Failed  State = "failed"
)
