package period

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration written as a Go duration string, such as "90s" or "1h30m". It is never negative.
type Duration time.Duration

// ParseDuration reads a duration string and refuses a negative one.
func ParseDuration(s string) (Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write it like \"90s\", \"1h30m\" or \"0s\"", s)
	}
	if d < 0 {
		return 0, fmt.Errorf("%q is negative", s)
	}
	return Duration(d), nil
}

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
