package health

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/settings"
	"drydock/api"
	"drydock/rules/health"
	"drydock/workflows/loop"
)

// state is all that a run hands to the next, and what the status is made of.
type state struct {
	// Spec is the check as it was configured last.
	Spec      health.Spec  `json:"spec"`
	Health    health.State `json:"health"`
	CreatedAt time.Time    `json:"createdAt"`
	// Known: the remediations that run are.
	Known bool `json:"known,omitempty"`
	// Queue are remediations that were decided on and not begun yet.
	Queue []health.Begin `json:"queue,omitempty"`
	// Removed: the check ends.
	Removed  bool               `json:"removed,omitempty"`
	Prepared *settings.Prepared `json:"prepared,omitempty"`
	Events   []api.HealthEvent  `json:"events,omitempty"`
	// Sequence numbers the events.
	Sequence int `json:"sequence,omitempty"`
	// Owed: the present intent was not answered yet. Ask: everything is to be told.
	Owed bool `json:"owed,omitempty"`
	Ask  bool `json:"ask,omitempty"`
	// Watch are the troubles of the watch of the nodes.
	Watch []api.Trouble `json:"watch,omitempty"`
	loop.Carried
}

// continueAsNew goes on in a new run: a history has its limits.
func (c *check) continueAsNew(root workflow.Context, input converter.RawValue) error {
	packed, err := api.Pack(c.state)
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(root, api.HealthCheckType, input, packed)
}

func unpack(packed []byte) (state, error) {
	var s state
	if err := api.Unpack(packed, &s); err != nil {
		return s, fmt.Errorf("carried state: %w", err)
	}
	return s, nil
}
