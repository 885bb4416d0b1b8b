// Package period is how inputs and configuration write a length of time.
package period

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration written as a Go duration string, such as "90s" or "1h30m", which may begin with days, such as
// "2d" or "1d12h". It is never negative.
type Duration time.Duration

// day is always as long: a duration knows no dates.
const day = 24 * time.Hour

var daysFirst = regexp.MustCompile(`^([0-9]{1,5})d(.*)$`)

// ParseDuration reads a duration string and refuses a negative one.
func ParseDuration(s string) (Duration, error) {
	var days time.Duration
	rest := s
	if found := daysFirst.FindStringSubmatch(s); found != nil {
		n, _ := strconv.Atoi(found[1]) // five digits
		days, rest = time.Duration(n)*day, cmp.Or(found[2], "0s")
	}
	d, err := time.ParseDuration(rest)
	switch {
	case err != nil, d < 0 && rest != s:
		return 0, fmt.Errorf("%q is not a duration: write it like \"90s\", \"1h30m\", \"2d\" or \"0s\"", s)
	case d < 0:
		return 0, fmt.Errorf("%q is negative", s)
	case days+d < 0:
		return 0, fmt.Errorf("%q is too long", s)
	}
	return Duration(days + d), nil
}

// HasDays reports whether a duration string is written with days, which Go's own are not.
func HasDays(s string) bool { return daysFirst.MatchString(s) }

// UnmarshalJSON accepts duration strings only: a bare number would not say its unit.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%s is not a duration: write it as a string like \"90s\" or \"1h30m\"", data)
	}
	parsed, err := ParseDuration(s)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// MarshalJSON writes the duration string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// String is the duration as Go writes it.
func (d Duration) String() string { return time.Duration(d).String() }

// Std is the duration as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// Text is a duration without its zero units at the end: 1h30m, not 1h30m0s.
func Text(d time.Duration) string {
	text := d.String()
	for _, unit := range []struct{ before, none string }{{"m", "0s"}, {"h", "0m"}} {
		if shorter := strings.TrimSuffix(text, unit.none); strings.HasSuffix(shorter, unit.before) {
			text = shorter
		}
	}
	return text
}

// Doubled is the pause before something is tried again: first, doubled with each time before, and not more than most.
func Doubled(first, most time.Duration, times int) time.Duration {
	for range min(times, 20) {
		first = min(2*first, most)
	}
	return min(first, most)
}

// InDays is a duration string as Text writes it, in days where they are whole, such as 7d and not 168h.
func InDays(d time.Duration) string {
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return Text(d)
}

// Age is a duration as people say it: its two largest units.
func Age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}
