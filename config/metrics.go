package config

import (
	"fmt"
	"time"

	"drydock/rules/spec"
)

// Metrics bounds what metrics cost.
type Metrics struct {
	// StateEvery is how long the counts of the scheduler and of Temporal's lists are told before the next scrape has them
	// asked for anew.
	StateEvery spec.Duration `json:"stateEvery"`
}

// stateEveryLeast keeps scrapes from being the scheduler's work.
const stateEveryLeast = spec.Duration(time.Second)

func (m Metrics) validate() []error {
	if m.StateEvery < stateEveryLeast {
		return []error{fmt.Errorf("metrics.stateEvery: %s: want %s or more", m.StateEvery, stateEveryLeast)}
	}
	return nil
}
