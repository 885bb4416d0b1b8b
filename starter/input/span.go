package input

import (
	"fmt"
	"time"

	"drydock.dev/drydock/rules/period"
)

// Span is a flag for how far to look back: a duration that can also have days, of 24 hours each.
type Span time.Duration

// Set reads a span such as 30d, 1d12h or 90m; it is always more than nothing.
func (s *Span) Set(text string) error {
	d, err := period.ParseDuration(text)
	if err != nil || d == 0 {
		return fmt.Errorf("want a time like 30d, 12h or 90m")
	}
	*s = Span(d)
	return nil
}

// String is the span as it can be typed; nothing is empty.
func (s *Span) String() string {
	if *s == 0 {
		return ""
	}
	return period.InDays(time.Duration(*s))
}

// Type names the flag's value in the help.
func (s *Span) Type() string { return "duration" }

// Before is the moment that lies so far back; the zero time of an empty span.
func (s Span) Before(now time.Time) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return now.Add(-time.Duration(s))
}
