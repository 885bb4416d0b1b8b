// Package spec is what a node maintenance is asked to be: the workflow's JSON input, its defaults and its rules.
package spec

import "slices"

// Maintenance is the input of the NodeMaintenance workflow after defaults. Only Node is required of the input.
type Maintenance struct {
	// Node is the name of the node to take out of service.
	Node string `json:"node"`
	// Requestor is the domain-style name of whoever asks, 2 to 63 characters. Node and requestor are the
	// identity of a maintenance.
	Requestor string `json:"requestor"`
	// AdditionalRequestors share this maintenance: the node is released when all of them are done.
	AdditionalRequestors []string `json:"additionalRequestors,omitempty"`
	// Reason, Ticket and Type are shown everywhere; Type is Planned or Unplanned.
	Reason string `json:"reason,omitempty"`
	Ticket string `json:"ticket,omitempty"`
	Type   string `json:"type"`
	// Priority ranks requests for a slot: higher goes first.
	Priority int `json:"priority"`
	// Cordon marks the node unschedulable.
	Cordon bool `json:"cordon"`
	// WaitForPodCompletion lets pods finish by themselves before the drain; absent waits for none.
	WaitForPodCompletion *WaitForPods `json:"waitForPodCompletion,omitempty"`
	Drain                Drain        `json:"drain"`
	// ReadyTimeout is how long the requestor may hold the node; 0 is for ever.
	ReadyTimeout Duration `json:"readyTimeout"`
	// OnReadyTimeout is FailOnTimeout or ReleaseOnTimeout.
	OnReadyTimeout string `json:"onReadyTimeout"`
	// OnNodeReplaced is AdoptReplacement or EndOnReplacement.
	OnNodeReplaced string `json:"onNodeReplaced"`
}

// WaitForPods selects pods that have to complete before the drain. Completed pods do not count, nor do the pods
// that stay on a drained node: those of DaemonSets and static pods.
type WaitForPods struct {
	// PodSelector is a label selector; empty selects every pod.
	PodSelector string `json:"podSelector"`
	// Timeout is how long to wait before going on regardless; 0 is for ever.
	Timeout Duration `json:"timeout"`
}

// Drain says how the node is emptied.
type Drain struct {
	Mode string `json:"mode"`
	// PodSelector and PodEvictionFilters choose the pods, before any question of consent.
	PodSelector        string           `json:"podSelector,omitempty"`
	PodEvictionFilters []EvictionFilter `json:"podEvictionFilters,omitempty"`
	// Force consents to the loss of pods that no controller re-creates.
	Force bool `json:"force,omitempty"`
	// DeleteEmptyDir consents to the loss of the data in emptyDir volumes.
	DeleteEmptyDir bool `json:"deleteEmptyDir,omitempty"`
	// GracePeriodSeconds replaces the pods' own grace period; absent keeps it.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// Escalation is what happens when the node does not empty, on one clock from the cordon. Empty waits for ever.
	Escalation []Rung `json:"escalation"`
}

// EvictionFilter selects pods that request a resource whose name matches; entries are joined by OR
// (maintenance-operator, drainSpec.podEvictionFilters).
type EvictionFilter struct {
	ByResourceNameRegex string `json:"byResourceNameRegex"`
}

// Rung is one step of the escalation.
type Rung struct {
	// After is the time since the cordon.
	After Duration `json:"after"`
	// Do is GiveBack or Fail.
	Do string `json:"do"`
}

// The values of the enumerated fields.
const (
	Planned   = "planned"
	Unplanned = "unplanned"

	// ModeEvict evicts the pods, ModeWait lets the cordoned node empty by itself, ModeExternal waits for somebody
	// else's "drained", ModeNone leaves the pods alone.
	ModeEvict    = "evict"
	ModeWait     = "wait"
	ModeExternal = "external"
	ModeNone     = "none"

	FailOnTimeout    = "fail"
	ReleaseOnTimeout = "release"

	AdoptReplacement = "adopt"
	EndOnReplacement = "end"

	// GiveBack uncordons the node and asks for a new slot after a backoff, Fail ends the maintenance as failed.
	GiveBack = "giveBack"
	Fail     = "fail"
)

// Defaults are merged under the worker's defaults, and those under the input.
const Defaults = `{
	"requestor": "manual",
	"type": "planned",
	"priority": 0,
	"cordon": true,
	"drain": {"mode": "evict", "escalation": [{"after": "1h", "do": "giveBack"}]},
	"readyTimeout": "1h",
	"onReadyTimeout": "fail",
	"onNodeReplaced": "adopt"
}`

// Requestors are all who share the maintenance, the first being its identity.
func (m Maintenance) Requestors() []string {
	all := []string{m.Requestor}
	for _, name := range m.AdditionalRequestors {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
