package spec

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/period"
)

// Duration is a time.Duration written as a Go duration string, such as "90s" or "1h30m". It is never negative.
type Duration = period.Duration
