package maintenance

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/settings"
	"drydock/api"
	"drydock/workflows/handover"
	"drydock/workflows/inbox"
)

// state is all that a run hands to the next. It fits into a payload: its parts are bounded where they are written.
type state struct {
	Status   api.Status        `json:"status"`
	Seen     []string          `json:"heard,omitempty"`
	Prepared settings.Prepared `json:"prepared"`

	At         string  `json:"at"`
	Restarting string  `json:"restarting,omitempty"`
	End        *ending `json:"end,omitempty"`
	// Stop is a decision that the next run carries out, and Why says who made it.
	Stop reason `json:"stop,omitempty"`
	Why  string `json:"why,omitempty"`

	Slot   slotState   `json:"slot,omitzero"`
	Hold   holdState   `json:"hold,omitzero"`
	Drain  drainState  `json:"drain,omitzero"`
	Hooks  hooksState  `json:"hooks,omitzero"`
	Work   workState   `json:"work,omitzero"`
	Target targetState `json:"target,omitzero"`

	OutOfService outOfServiceState `json:"outOfService,omitzero"`

	Validation validatorState `json:"validation,omitzero"`
	Freeze     freezeState    `json:"freeze,omitzero"`
	Announced  shownState     `json:"announced,omitzero"`
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
		Status: m.journal.status(), Seen: m.journal.seen, Prepared: m.prepared,
		At: m.at, End: m.end, Stop: m.control.reason, Why: m.control.why,
		Slot: m.slot.slotState, Hold: m.hold.holdState, Drain: m.drainer.drainState, Hooks: m.hooks.hooksState,
		Work: m.requestors.work.workState, Target: m.plans.targetState, Validation: m.validator.validatorState, Freeze: m.control.freezeState, Announced: m.hold.shownState,
		Channels: m.outbox.started(), OutOfService: m.hold.outOfServiceState,
	}
	switch {
	case errors.Is(m.restarting, errGivenBack):
		s.Restarting = givenBack
	case errors.Is(m.restarting, errSlotLost):
		s.Restarting = lostSlot
	}
	carried, err := contract.Write(s, m.unknown)
	handover.Must("the state for the next run", err)
	return workflow.NewContinueAsNewError(root, api.NodeMaintenanceType, input, carried)
}

// restore takes up what the run before this one handed over, and refuses a state that came otherwise.
func (m *maintenance) restore(root workflow.Context, carried converter.RawValue) (continued bool, err error) {
	if len(inbox.Payload(carried)) == 0 {
		return false, nil
	}
	if !inbox.IsContinued(root) {
		return false, inbox.InvalidSpec(errors.New("a second input is what a run hands to the next: give the specification only"))
	}
	var s state
	m.unknown, err = handover.Read(carried, &s)
	handover.Must("the state of the run before", err)
	m.journal.s, m.journal.seen = s.Status, s.Seen
	m.spec, m.prepared = s.Status.Spec, s.Prepared
	m.at, m.end = s.At, s.End
	m.admission.over = !slices.Contains(beforeSlot, s.At)
	switch s.Restarting {
	case givenBack:
		m.restarting = errGivenBack
	case lostSlot:
		m.restarting = errSlotLost
	}
	if s.Stop != goesOn {
		m.control.set(s.Stop, s.Why)
	}
	m.slot.slotState, m.hold.holdState, m.drainer.drainState = s.Slot, s.Hold, s.Drain
	m.hooks.hooksState, m.validator.validatorState = s.Hooks, s.Validation
	m.requestors.work.workState, m.plans.targetState, m.hold.outOfServiceState = s.Work, s.Target, s.OutOfService
	m.control.freezeState, m.hold.shownState = s.Freeze, s.Announced
	m.outbox.known = s.Channels
	m.journal.describe()
	return true, nil
}
