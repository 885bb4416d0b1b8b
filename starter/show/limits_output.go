package show

import (
	"time"

	"drydock/api"
	"drydock/rules/period"
	"drydock/rules/schedule"
)

// Scheduler is the scheduler's state for programs.
type Scheduler struct {
	api.State
	Holders []api.Holder     `json:"holders"`
	Pending []PendingRequest `json:"pending"`
}

// PendingRequest waits for a slot.
type PendingRequest struct {
	RequestID string `json:"requestId"`
	Node      string `json:"node"`
	Requestor string `json:"requestor"`
	RunID     string `json:"runId"`
	// Kind is that of who asks: empty is a maintenance.
	Kind      schedule.HolderKind `json:"kind,omitempty"`
	Priority  int                 `json:"priority,omitempty"`
	CreatedAt time.Time           `json:"createdAt"`
	// Code and Reason say what it waits for, in one word and in words.
	Code   schedule.Code `json:"code,omitempty"`
	Reason string        `json:"reason,omitempty"`
	// OpensAt is when the windows that it waits for are open next, as far as that is known.
	OpensAt *time.Time `json:"opensAt,omitempty"`
	// Windows, ExpectedDuration and IgnoreWindows are those of its input.
	Windows          []string        `json:"windows,omitempty"`
	ExpectedDuration period.Duration `json:"expectedDuration,omitzero"`
	IgnoreWindows    string          `json:"ignoreWindows,omitempty"`
}

// SchedulerOf is a state as programs read it: its lists are whole, however long they are.
func SchedulerOf(s api.State) Scheduler {
	of := Scheduler{State: s, Holders: s.Holders, Pending: make([]PendingRequest, len(s.Pending))}
	for i, p := range s.Pending {
		of.Pending[i] = PendingRequest{
			RequestID: p.ID, Node: p.Node, Requestor: p.Requestor, RunID: p.RunID, Kind: p.Kind, Priority: p.Priority, CreatedAt: p.Created,
			Code: p.Code, Reason: p.Reason, OpensAt: p.OpensAt,
			Windows: p.Windows, ExpectedDuration: p.ExpectedDuration, IgnoreWindows: p.IgnoreWindows,
		}
	}
	return of
}
