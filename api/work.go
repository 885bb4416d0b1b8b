package api

import (
	"cmp"
	"time"

	"drydock.dev/drydock/rules/validation"
)

// WorkRun is one attempt at the work that a maintenance names. It runs as long as EndedAt is absent.
type WorkRun struct {
	Name string          `json:"name"`
	Kind validation.Kind `json:"kind"`
	// Attempt counts from 1: retry begins another.
	Attempt   int        `json:"attempt"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	// Outcome begins with done, failed or ended, which a person's message or the maintenance's end makes of work that
	// runs; it is absent as long as the work runs.
	Outcome string `json:"outcome,omitempty"`
	// Output is an excerpt of what the work wrote or was answered, in one line.
	Output string `json:"output,omitempty"`
	// Job is the Job, "namespace/name", and BootIDBefore the boot ID that the node had before.
	Job          string `json:"job,omitempty"`
	BootIDBefore string `json:"bootIdBefore,omitempty"`
}

// Running reports whether the work has not ended.
func (w WorkRun) Running() bool { return w.EndedAt == nil }

// State is where the work stands, in words.
func (w WorkRun) State() string { return cmp.Or(w.Outcome, "runs") }

// RunningWork is the work that runs, nil if none does.
func (s Status) RunningWork() *WorkRun {
	if n := len(s.Work); n > 0 && s.Work[n-1].Running() {
		return &s.Work[n-1]
	}
	return nil
}
