package cluster

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
	"time"
)

type Activities struct{}

// ObserveInput asks for counts of all nodes and for facts on some.
type ObserveInput struct {
	Groups   []schedule.Group `json:"groups,omitempty"`
	Revision int              `json:"revision"`
	// Names are the nodes to tell facts of.
	Names api.List[string] `json:"names"`
	// Ours are nodes that hold a slot or gave it back lately. What Drydock's own mark explains is left out of their
	// unavailability: the scheduler counts its grants itself, and a watch may lag behind a release.
	Ours api.List[string] `json:"ours,omitempty"`
	// Cluster is the name in front of its workflow IDs, Known are the marks that are expected on nodes.
	Cluster string              `json:"cluster,omitempty"`
	Known   api.List[KnownMark] `json:"known,omitempty"`
}

// Observed is an observation, and a digest of what others than Drydock can change, by which WatchCluster notices that
// it is out of date.
type Observed struct {
	Observation schedule.Observation `json:"observation"`
	Digest      string               `json:"digest"`
	// Columns are the facts where they are many (see Pack).
	Columns *FactColumns `json:"columns,omitempty"`
	// Marks are those that the scheduler does not count as its holders'.
	Marks MarksSeen `json:"marks,omitzero"`
}

func (c *Activities) ObserveNodes(ctx context.Context, in ObserveInput) (Observed, error) {
	panic("frozen")
}

// WatchInput tells WatchCluster what is known, so that it returns when that is no longer true.
type WatchInput struct {
	Groups []schedule.Group `json:"groups,omitempty"`
	// Digest is the last observation's; empty where nothing waits, so that only the holders matter.
	Digest  string                  `json:"digest,omitempty"`
	Holders api.List[WatchedHolder] `json:"holders,omitempty"`
	// Marked are the requests that had their mark on their node when an earlier watch looked, Told those whose missing
	// mark or node was reported.
	Marked api.List[string] `json:"marked,omitempty"`
	Told   api.List[string] `json:"told,omitempty"`
	// Cluster is the name in front of its workflow IDs, Known are the marks that are expected on nodes besides those of
	// the Holders.
	Cluster string              `json:"cluster,omitempty"`
	Known   api.List[KnownMark] `json:"known,omitempty"`
	// IgnoreUnknown: there are more marks that nobody knows of than can be kept.
	IgnoreUnknown bool `json:"ignoreUnknown,omitempty"`
}

// WatchedHolder is a maintenance that holds a slot.
type WatchedHolder struct {
	RequestID  string `json:"requestId"`
	Node       string `json:"node"`
	WorkflowID string `json:"workflowId"`
	// RunID is the first of its chain, Since is when it was granted its slot.
	RunID string    `json:"runId"`
	Since time.Time `json:"since,omitzero"`
}

// WatchReport is what WatchCluster noticed.
type WatchReport struct {
	// Stale: the last observation no longer holds.
	Stale bool `json:"stale,omitempty"`
	// Ended are holders whose workflow no longer runs, so that nobody will release their slot.
	Ended api.List[EndedHolder] `json:"ended,omitempty"`
	// Changes are what happened to nodes that are held.
	Changes api.List[api.NodeChange] `json:"changes,omitempty"`
	// Marked and Told are to be given to the next watch.
	Marked api.List[string] `json:"marked,omitempty"`
	Told   api.List[string] `json:"told,omitempty"`
	// Unknown are marks of this cluster's maintenances that the scheduler does not know of, Vanished those stray ones that
	// it knows and that are no more.
	Unknown  api.List[api.StrayMark] `json:"unknown,omitempty"`
	Vanished api.List[KnownMark]     `json:"vanished,omitempty"`
}

// EndedHolder is a holder that does not run any more.
type EndedHolder struct {
	WatchedHolder
	Status string `json:"status"`
}

func (c *Activities) WatchCluster(ctx context.Context, in WatchInput) (WatchReport, error) {
	panic("frozen")
}
