package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
	"drydock.dev/drydock/workflows/handover"
	"drydock.dev/drydock/workflows/inbox"
)

// What to do with the node of a maintenance that does not run any more.
const (
	ReleaseOrphans = "release"
	ReportOrphans  = "report"
)

// State is all that the scheduler knows: its input, and what continue-as-new carries on. The zero value is a scheduler that has to find
// out who holds what before it grants anything.
type State struct {
	Limits api.LimitsInForce `json:"limits"`
	// Revision counts changes of the limits, so that an observation made for other groups is recognized.
	Revision int                  `json:"revision"`
	Freezes  []schedule.Freeze    `json:"freezes,omitempty"`
	Holders  api.List[api.Holder] `json:"holders,omitempty"`
	// FreezeRevision grows with every change of the freezes. Unsent are the requests of holders to which their grant and freezes have
	// still to be sent.
	FreezeRevision int              `json:"freezeRevision,omitempty"`
	Unsent         api.List[string] `json:"untold,omitempty"`
	// Strays are marks of this cluster's maintenances that are nobody's slot.
	Strays api.List[api.StrayMark] `json:"strays,omitempty"`
	// GivenBack are the requests whose slots are said to be given back, while their mark was still seen.
	GivenBack api.List[string] `json:"givenBack,omitempty"`
	// Sent is the reason that was sent last, and Seen whether the node was there, both by request. Pending, Sent, Seen and Observed are empty
	// if the requests are many (see pack).
	Pending   []api.PendingRequest   `json:"pending,omitempty"`
	Sent      map[string]SentReason  `json:"told,omitempty"`
	Seen      map[string]bool        `json:"seen,omitempty"`
	Released  api.List[ReleasedNode] `json:"released,omitempty"`
	Observed  *cluster.Observed      `json:"observed,omitempty"`
	Decisions []api.RecordedDecision `json:"decisions,omitempty"`
	// Horizon is when windows are open, nil if that is not known: nothing is granted under a window then.
	Horizon *window.Horizon `json:"horizon,omitempty"`
	// WindowsOf is what the worker that was started last said of its windows, as far as one has: these count.
	WindowsOf api.WindowsChanged `json:"windowsOf,omitzero"`
	// OnOrphan is ReleaseOrphans (the default) or ReportOrphans.
	OnOrphan string `json:"onOrphan,omitempty"`
	// Rebuilt: the holders are known. PreviousRun is the scheduler run whose state to take over.
	Rebuilt     bool   `json:"rebuilt,omitempty"`
	PreviousRun string `json:"previousRun,omitempty"`
	// RestoredAt is when Temporal was last found to be restored to an earlier state.
	RestoredAt time.Time `json:"restoredAt,omitzero"`
	// ContinueAfter is how many signals a run takes before it continues as new; 0 is maxSignals.
	ContinueAfter int `json:"continueAfter,omitempty"`

	// unknown is what a newer release handed over, unreadable why the state was not read.
	unknown    handover.Unknown
	unreadable error
}

// plainState is a State as this release knows it.
type plainState State

// MarshalJSON writes what a newer release handed over too.
func (s State) MarshalJSON() ([]byte, error) { return handover.Encode(plainState(s), s.unknown) }

// UnmarshalJSON never fails: to end the workflow for what a newer release wrote would lose who holds what.
func (s *State) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var plain plainState
	unknown, err := handover.Decode(data, &plain)
	if err != nil {
		plain = plainState{}
	}
	*s = State(plain)
	s.unknown, s.unreadable = unknown, err
	return nil
}

// SentReason is the kind of the reason that was last sent for a pending request.
type SentReason struct {
	Code schedule.Code `json:"code"`
	At   time.Time     `json:"at"`
}

// ReleasedNode is a node that was given back lately.
type ReleasedNode struct {
	Node  string    `json:"node"`
	RunID string    `json:"runId,omitempty"`
	At    time.Time `json:"at"`
}

// accepted is what a run begins with. What was carried from another run is taken as it is. What somebody gives to a run
// that the server names no earlier one of is configuration and nothing else: state can be forged.
func accepted(ctx workflow.Context, given State, packed []byte) (state State, refused error, err error) {
	if inbox.IsContinued(ctx) {
		handover.Must("the state of the run before", given.unreadable)
		state, err = unpack(given.withDefaults(), packed)
		handover.Must("the requests of the run before", err)
		return state, nil, nil
	}
	if given.unreadable != nil {
		return State{}, nil, inbox.InvalidSpec(given.unreadable)
	}
	state = State{Limits: given.Limits, OnOrphan: given.OnOrphan, PreviousRun: given.PreviousRun}
	var errs []error
	if state.OnOrphan != "" && state.OnOrphan != ReleaseOrphans && state.OnOrphan != ReportOrphans {
		errs, state.OnOrphan = append(errs, fmt.Errorf("onOrphan: %s is neither %s nor %s", bounds.Cut(state.OnOrphan, maxName), ReleaseOrphans, ReportOrphans)), ""
	}
	if state.PreviousRun != "" && api.RunID(state.PreviousRun) != nil {
		errs, state.PreviousRun = append(errs, fmt.Errorf("previousRun: %w", api.RunID(state.PreviousRun))), ""
	}
	if err := errors.Join(
		fitting(state.Limits.Limits), short("limits.setBy", state.Limits.SetBy, maxName), short("limits.comment", state.Limits.Comment, maxText),
	); err != nil {
		errs, state.Limits = append(errs, fmt.Errorf("limits: %w", err)), api.LimitsInForce{SetBy: "default"}
	}
	return state.withDefaults(), errors.Join(errs...), nil
}

func (s State) withDefaults() State {
	s.Limits.Limits = s.Limits.Limits.WithDefaults()
	s.OnOrphan = cmp.Or(s.OnOrphan, ReleaseOrphans)
	if s.Sent == nil {
		s.Sent = map[string]SentReason{}
	}
	if s.Seen == nil {
		s.Seen = map[string]bool{}
	}
	return s
}
