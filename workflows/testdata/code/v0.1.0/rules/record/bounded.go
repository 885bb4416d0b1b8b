package record

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
)

// How much of a record's lists and texts is kept: it is written at once and has to stay small, whatever was said and
// however large the cluster is.
const (
	MaxPods          = 300
	MaxBlockers      = 50
	MaxNotifications = 200
	MaxPhases        = 200
	MaxStates        = 200
	MaxMessages      = 100
	MaxHooks         = 100
	MaxEscalations   = 100
	MaxChecks        = 100
	MaxRequestors    = 64
	MaxSkippedPods   = 200
	MaxOccupied      = 50
	// MaxText bounds a text and MaxSpecification the specification, in bytes of JSON.
	MaxText          = bounds.Text
	MaxSpecification = 64 << 10
)
