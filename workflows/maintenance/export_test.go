package maintenance

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// Member is a maintenance whose gang a test sets.
type Member struct{ m *maintenance }

// Maintain is NodeMaintenance, but for resets.
func (x *Member) Maintain(root workflow.Context, input, carried converter.RawValue) (api.Result, error) {
	x.m = newMaintenance(root)
	return x.m.maintain(root, input, carried)
}

// Join makes it a member of a gang.
func (x *Member) Join(gang *schedule.Gang) { x.m.slot.join(gang) }

// State is what a run hands to the next.
type State = state

// Contract is what 0.1.0 takes of it.
var Contract = contract
