package api

import (
	"time"

	"drydock.dev/drydock/rules/schedule"
)

// Summary is the scheduler's answer to the summary query: counts, which stay small however many maintenances there are.
type Summary struct {
	schedule.Usage
	// Nodes are all nodes, as they were observed last.
	Nodes      int        `json:"nodes"`
	ObservedAt *time.Time `json:"observedAt,omitempty"`
	Rebuilding bool       `json:"rebuilding,omitempty"`
	// Freezes are those in force, FreezesRunning those among them that hold running maintenances too.
	Freezes        int            `json:"freezes,omitempty"`
	FreezesRunning int            `json:"freezesRunning,omitempty"`
	Pending        []PendingCount `json:"pending,omitempty"`
	// OldestPending is since when the request waits that has waited longest.
	OldestPending *time.Time   `json:"oldestPending,omitempty"`
	Strays        []StrayCount `json:"strays,omitempty"`
	// TroubleSince is since when something fails that the scheduler has to know before it grants.
	TroubleSince *time.Time `json:"troubleSince,omitempty"`
}

// PendingCount counts requests of a kind that wait for the same kind of limit, for nodes whose first group is the same; an empty
// Group is none, or one of a node that was not observed.
type PendingCount struct {
	Code  schedule.Code       `json:"code"`
	Group string              `json:"group,omitempty"`
	Kind  schedule.HolderKind `json:"kind,omitempty"`
	Count int                 `json:"count"`
}

// StrayCount counts stray marks of a kind.
type StrayCount struct {
	Kind  StrayKind `json:"kind"`
	Count int       `json:"count"`
}
