package maintenance

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/handover"
	"drydock.dev/drydock/workflows/inbox"
)

// state is what a run passes to the next. Each part of the run has a pointer to its own field. It fits into a payload: the parts bound
// what they write.
type state struct {
	Status api.Status `json:"status"`
	// Seen are the IDs of the latest messages.
	Seen     []string          `json:"heard,omitempty"`
	Prepared settings.Prepared `json:"prepared"`

	// At is the step that the run is in. Restarting is set while the maintenance begins again with the slot, End once it ends.
	At         string  `json:"at"`
	Restarting string  `json:"restarting,omitempty"`
	End        *ending `json:"end,omitempty"`
	// Stop is a decision that the next run carries out, Why says who made it.
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
	Reports    reporterState  `json:"reports,omitzero"`
	// Channels are the IDs of the channels' workflows, by channel.
	Channels map[string]string `json:"channels,omitempty"`
}

// Values of state.Restarting.
const (
	givenBack = "givenBack"
	lostSlot  = "slotLost"
)

// continueAsNew goes on in a new run: a history has its limits, and a maintenance may wait for months.
func (m *maintenance) continueAsNew(root workflow.Context, input converter.RawValue) error {
	s := *m.state
	s.Stop, s.Why, s.Channels = m.control.reason, m.control.why, m.outbox.started
	carried, err := contract.Write(s, m.unknown)
	handover.Must("the state for the next run", err)
	return workflow.NewContinueAsNewError(root, api.NodeMaintenanceType, input, carried)
}

// restore reads the state of the run before this one, and refuses a state from anybody else.
func (m *maintenance) restore(root workflow.Context, carried converter.RawValue) (continued bool, err error) {
	if len(inbox.Payload(carried)) == 0 {
		return false, nil
	}
	if !inbox.IsContinued(root) {
		return false, inbox.InvalidSpec(errors.New("a second input is what a run hands to the next: give the specification only"))
	}
	s := state{Channels: map[string]string{}}
	m.unknown, err = handover.Read(carried, &s)
	handover.Must("the state of the run before", err)
	*m.state = s
	m.spec = s.Status.Spec
	m.admission.over = !slices.Contains(beforeSlot, s.At)
	m.control.set(s.Stop, s.Why)
	m.outbox.started = s.Channels
	m.journal.describe()
	return true, nil
}
