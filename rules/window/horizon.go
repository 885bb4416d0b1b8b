package window

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// Horizon is what is known of the windows of a configuration: when they are open, as instants, for some time ahead.
type Horizon struct {
	// At is the instant from which on it is known.
	At time.Time `json:"at"`
	// Zones says which time zone data it was computed with, Digest with which windows.
	Zones  string `json:"zones"`
	Digest string `json:"digest"`
	// Since is when the worker was started whose windows they are, as far as it said so.
	Since time.Time `json:"since,omitzero"`
	// Windows are the openings by the window's name.
	Windows map[string]Openings `json:"windows,omitempty"`
}

// Openings are those of one window: all that are not over at the Horizon's beginning and begin before Until.
type Openings struct {
	Timezone string    `json:"timezone"`
	Until    time.Time `json:"until"`
	Openings []Opening `json:"openings"`
}

// At is the opening that an instant falls into, or else the next one; none where it is not known.
func At(openings []Opening, at time.Time) (Opening, bool) {
	i, _ := slices.BinarySearchFunc(openings, at, func(o Opening, at time.Time) int {
		if o.Until.After(at) {
			return 1
		}
		return -1
	})
	if i == len(openings) {
		return Opening{}, false
	}
	return openings[i], true
}

// Digest identifies a configuration of windows.
func Digest(windows map[string]Window) string {
	text, err := json.Marshal(windows) // in the order of the names
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
