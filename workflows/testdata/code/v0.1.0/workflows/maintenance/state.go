package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/settings"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	"errors"
	"fmt"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

// state is all that a run hands to the next. It fits into a payload: what it is made of is bounded where it is written.
type state struct {
	Status   api.Status        `json:"status"`
	Heard    []string          `json:"heard,omitempty"`
	Prepared settings.Prepared `json:"prepared"`

	At         string  `json:"at"`
	Restarting string  `json:"restarting,omitempty"`
	End        *ending `json:"end,omitempty"`
	// Stop is a decision that the next run acts upon, and Why who made it.
	Stop reason `json:"stop,omitempty"`
	Why  string `json:"why,omitempty"`

	Slot       slotState      `json:"slot,omitzero"`
	Hold       holdState      `json:"hold,omitzero"`
	Drain      drainState     `json:"drain,omitzero"`
	Hooks      hooksState     `json:"hooks,omitzero"`
	Validation validatorState `json:"validation,omitzero"`
	Freeze     freezeState    `json:"freeze,omitzero"`
	Announced  announcerState `json:"announced,omitzero"`
	// Channels are the IDs of the workflows that tell channels, by channel.
	Channels map[string]string `json:"channels,omitempty"`
}

// restart words, as a state has them.
const (
	givenBack = "givenBack"
	lostSlot  = "slotLost"
)

// continueAsNew goes on in a new run: a history has its limits, and a maintenance may wait for months.
func (m *maintenance) continueAsNew(root workflow.Context, input converter.RawValue) error {
	s := state{
		Status: m.journal.status(), Heard: m.journal.heard, Prepared: m.prepared,
		At: m.at, End: m.end, Stop: m.stop.reason, Why: m.stop.why,
		Slot: m.slot.slotState, Hold: m.hold.holdState, Drain: m.drainer.drainState, Hooks: m.hooks.hooksState,
		Validation: m.validator.validatorState, Freeze: m.freeze.freezeState, Announced: m.announcer.announcerState,
		Channels: m.outbox.started(),
	}
	switch {
	case errors.Is(m.restarting, errGivenBack):
		s.Restarting = givenBack
	case errors.Is(m.restarting, errSlotLost):
		s.Restarting = lostSlot
	}
	return workflow.NewContinueAsNewError(root, api.NodeMaintenanceType, input, s)
}

// restore takes up what the run before this one handed over. A state that nobody continued from is somebody's invention.
func (m *maintenance) restore(root workflow.Context, carried []byte) (continued bool, err error) {
	if len(carried) == 0 {
		return false, nil
	}
	if !inbox.IsContinued(root) {
		return false, inbox.InvalidSpec(errors.New("a second input is what a run hands to the next: give the specification only"))
	}
	var s state
	if err := spec.DecodeStrict(carried, &s); err != nil {
		return false, inbox.InvalidSpec(fmt.Errorf("carried state: %w", err))
	}
	m.journal.s, m.journal.heard = s.Status, s.Heard
	m.spec, m.prepared = s.Status.Spec, s.Prepared
	m.at, m.end = s.At, s.End
	switch s.Restarting {
	case givenBack:
		m.restarting = errGivenBack
	case lostSlot:
		m.restarting = errSlotLost
	}
	if s.Stop != goesOn {
		m.stop.set(s.Stop, s.Why)
	}
	m.slot.slotState, m.hold.holdState, m.drainer.drainState = s.Slot, s.Hold, s.Drain
	m.hooks.hooksState, m.validator.validatorState = s.Hooks, s.Validation
	m.freeze.freezeState, m.announcer.announcerState = s.Freeze, s.Announced
	m.outbox.known = s.Channels
	m.journal.describe()
	return true, nil
}
