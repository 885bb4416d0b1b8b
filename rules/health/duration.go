package health

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/period"
)

// SignedDuration is a duration that may be negative.
type SignedDuration time.Duration

// UnmarshalJSON accepts duration strings, such as "90s" or "-1s".
func (d *SignedDuration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("%.40s is not a duration: write it as a string like \"90s\" or \"-1s\"", data)
	}
	rest, negative := strings.CutPrefix(text, "-")
	parsed, err := period.ParseDuration(rest)
	if err != nil {
		return err
	}
	*d = SignedDuration(parsed)
	if negative {
		*d = -*d
	}
	return nil
}

// MarshalJSON writes the duration string.
func (d SignedDuration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// String is the duration as Go writes it.
func (d SignedDuration) String() string { return time.Duration(d).String() }

// Std is the duration as the standard library's type.
func (d SignedDuration) Std() time.Duration { return time.Duration(d) }
