package site

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
)

// StatesOf are the states of events, in their order.
func StatesOf(events []notices.Event) []notices.State {
	var states []notices.State
	for _, e := range events {
		states = append(states, e.State)
	}
	return states
}

// UntilTold waits until a signed webhook was told the end of a run, and checks what it was told: each event once, in order.
func (r *Receivers) UntilTold(path string, run client.WorkflowRun, want ...notices.State) []notices.Event {
	r.Helper()
	var events []notices.Event
	r.Eventually("what "+path+" is told", func() error {
		if events = r.Events(path, run.GetRunID()); !slices.Equal(StatesOf(events), want) {
			return fmt.Errorf("%v, want %v", StatesOf(events), want)
		}
		return nil
	})
	for i, e := range events {
		if e.Sequence != i+1 || e.ID != api.EventID(run.GetID(), run.GetRunID(), api.Moment{Sequence: i + 1, At: e.At}) {
			r.Errorf("event %d of %s is %s", i+1, path, e.ID)
		}
	}
	return events
}
