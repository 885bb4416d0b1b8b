package config

import (
	"fmt"
	"time"

	"drydock.dev/drydock/rules/spec"
)

// Metrics bounds what metrics cost, and says who may read them.
type Metrics struct {
	// StateEvery is how old the counts of the scheduler and of Temporal's lists may be that a scrape is answered with, 1s or more.
	StateEvery spec.Duration `json:"stateEvery"`
	// Authentication is who may read metrics: with `none` anyone who reaches the port, with `token` anyone with a token of an account
	// that may `get` the nonResourceURL `/metrics`.
	Authentication string `json:"authentication,omitempty" jsonschema:"enum=none,enum=token,default=none"`
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
		all = append(all, fmt.Errorf("metrics.authentication: %q is not one of %s, %s", m.Authentication, AuthenticationNone, AuthenticationToken))
	}
	return all
}
