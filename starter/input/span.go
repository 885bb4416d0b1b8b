package input

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Span is a flag for how far to look back: a duration that can also have days, of 24 hours each.
type Span time.Duration

var daysFirst = regexp.MustCompile(`^([0-9]{1,5})d(.*)$`)

// Set reads a span such as 30d, 1d12h or 90m; it is always more than nothing.
func (s *Span) Set(text string) error {
	var days time.Duration
	rest := text
	if found := daysFirst.FindStringSubmatch(text); found != nil {
		n, err := strconv.Atoi(found[1])
		if err != nil {
			return err
		}
		days, rest = time.Duration(n)*24*time.Hour, cmp.Or(found[2], "0s")
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || days+d <= 0 {
		return fmt.Errorf("want a time like 30d, 12h or 90m")
	}
	*s = Span(days + d)
	return nil
}

// String is the span as it can be typed; nothing is empty.
func (s *Span) String() string {
	if *s == 0 {
		return ""
	}
	d := time.Duration(*s)
	if days := d / (24 * time.Hour); days > 0 {
		if d %= 24 * time.Hour; d == 0 {
			return fmt.Sprintf("%dd", days)
		}
		return fmt.Sprintf("%dd%s", days, d)
	}
	return d.String()
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
