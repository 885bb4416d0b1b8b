package config

import (
	"fmt"
	"time"

	"drydock.dev/drydock/rules/spec"
)

// Metrics bounds what metrics cost, and says who may read them.
type Metrics struct {
	// StateEvery is how long the counts of the scheduler and of Temporal's lists are shown before the next scrape has them
	// asked for anew.
	StateEvery spec.Duration `json:"stateEvery"`
	// Authentication says who may read them: everybody who reaches the port (AuthenticationNone), or who shows a token of an account
	// that may get the nonResourceURL /metrics (AuthenticationToken).
	Authentication string `json:"authentication,omitempty"`
}

// The ways in which a reader of metrics proves who it is. Empty is none.
const (
	AuthenticationNone  = "none"
	AuthenticationToken = "token"
)

// stateEveryLeast keeps scrapes from being the scheduler's work.
const stateEveryLeast = spec.Duration(time.Second)

func (m Metrics) validate() []error {
	var all []error
	if m.StateEvery < stateEveryLeast {
		all = append(all, fmt.Errorf("metrics.stateEvery: %s: want %s or more", m.StateEvery, stateEveryLeast))
	}
	switch m.Authentication {
	case "", AuthenticationNone, AuthenticationToken:
	default:
		all = append(all, fmt.Errorf("metrics.authentication: %q: want %s or %s", m.Authentication, AuthenticationNone, AuthenticationToken))
	}
	return all
}
