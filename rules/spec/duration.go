package spec

import (
	"drydock.dev/drydock/rules/period"
)

// Duration is a time.Duration written as a Go duration string, such as "90s" or "1h30m". It is never negative.
type Duration = period.Duration

// ParseDuration reads a duration string and refuses a negative one.
func ParseDuration(s string) (Duration, error) { return period.ParseDuration(s) }
