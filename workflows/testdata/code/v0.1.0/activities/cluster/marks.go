package cluster

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"time"
)

// KnownMark is a mark that the scheduler knows of: a holder's, one that was given back lately, or a stray one.
type KnownMark struct {
	Node  string `json:"node"`
	RunID string `json:"runId"`
	// Until is when the mark of a node that was given back is surprising: watches lag behind. Zero is never.
	Until time.Time `json:"until,omitzero"`
	// Stray marks are nobody's slot; that they vanish is news.
	Stray bool `json:"stray,omitempty"`
}

// MarksSeen are marks on nodes that are no holder's.
type MarksSeen struct {
	// Foreign are marks that are not this cluster's maintenances', the first of them; ForeignAll counts them.
	Foreign    api.List[api.StrayMark] `json:"foreign,omitempty"`
	ForeignAll int                     `json:"foreignAll,omitempty"`
	// Unknown are marks of this cluster's maintenances that the scheduler does not know of, the first of them.
	Unknown api.List[api.StrayMark] `json:"unknown,omitempty"`
	// Vanished are the stray marks that are known and no more there.
	Vanished api.List[KnownMark] `json:"vanished,omitempty"`
}
