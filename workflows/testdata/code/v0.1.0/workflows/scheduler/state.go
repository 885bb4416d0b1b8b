package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	"errors"
	"fmt"
	"go.temporal.io/sdk/workflow"
	"time"
)

// What to do with the node of a maintenance that does not run any more.
const (
	ReleaseOrphans = "release"
	ReportOrphans  = "report"
)

// State is all that the scheduler knows: its input, and what continue-as-new carries on. The zero value is a
// scheduler that has to find out who holds what before it grants anything.
type State struct {
	Limits api.LimitsInForce `json:"limits"`
	// Revision counts changes of the limits, so that an observation made for other groups is told apart.
	Revision int                  `json:"revision"`
	Freezes  []schedule.Freeze    `json:"freezes,omitempty"`
	Holders  api.List[api.Holder] `json:"holders,omitempty"`
	// FreezeRevision grows with every change of the freezes. Untold are the holders' requests that have still to be told of
	// their grant and of freezes.
	FreezeRevision int              `json:"freezeRevision,omitempty"`
	Untold         api.List[string] `json:"untold,omitempty"`
	// Strays are marks of this cluster's maintenances that are nobody's slot.
	Strays api.List[api.StrayMark] `json:"strays,omitempty"`
	// GivenBack are the requests whose slots are said to be given back, and whose mark was still seen.
	GivenBack api.List[string] `json:"givenBack,omitempty"`
	// Pending, Told, Seen and Observed are empty where the requests are many (see pack).
	Pending   []api.PendingRequest   `json:"pending,omitempty"`
	Told      map[string]Told        `json:"told,omitempty"`
	Seen      map[string]bool        `json:"seen,omitempty"`
	Released  api.List[ReleasedNode] `json:"released,omitempty"`
	Observed  *cluster.Observed      `json:"observed,omitempty"`
	Decisions []api.RecordedDecision `json:"decisions,omitempty"`
	// OnOrphan is ReleaseOrphans (the default) or ReportOrphans.
	OnOrphan string `json:"onOrphan,omitempty"`
	// Rebuilt says that the holders are known. PreviousRun is the scheduler run whose state to take over.
	Rebuilt     bool   `json:"rebuilt,omitempty"`
	PreviousRun string `json:"previousRun,omitempty"`
	// ContinueAfter is how many signals a run takes before it continues as new; 0 is maxSignals.
	ContinueAfter int `json:"continueAfter,omitempty"`
}

// Told is what a pending request was last told, and when.
type Told struct {
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
		state, err = unpack(given.withDefaults(), packed)
		return state, nil, err
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
		fitting(state.Limits.Limits), short("limits.setBy", state.Limits.SetBy, maxName), short("limits.comment", state.Limits.Comment, maxWords),
	); err != nil {
		errs, state.Limits = append(errs, fmt.Errorf("limits: %w", err)), api.LimitsInForce{SetBy: "default"}
	}
	return state.withDefaults(), errors.Join(errs...), nil
}

func (s State) withDefaults() State {
	s.Limits.Limits = s.Limits.Limits.WithDefaults()
	if s.OnOrphan == "" {
		s.OnOrphan = ReleaseOrphans
	}
	if s.Told == nil {
		s.Told = map[string]Told{}
	}
	if s.Seen == nil {
		s.Seen = map[string]bool{}
	}
	return s
}
