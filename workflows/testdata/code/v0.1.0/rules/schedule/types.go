package schedule

import (
	"time"
)

// Limits bound how many nodes may be out of service at a time. All of them hold at once.
type Limits struct {
	// MaxParallel is how many maintenances may run at a time: a number, a percentage of all nodes
	// rounded up, or "unlimited". The zero Amount means the default of 1.
	MaxParallel Amount `json:"maxParallel,omitzero"`
	// MaxUnavailable is how many nodes may be unavailable at a time, maintenances included: a number or a
	// percentage of all nodes rounded up. Absent means no limit, 0 that no further node may become unavailable.
	MaxUnavailable Amount `json:"maxUnavailable,omitzero"`
	// Groups are further limits on parts of the cluster.
	Groups []Group `json:"groups,omitempty"`
	// Quotas bound what single requestors may have.
	Quotas Quotas `json:"quotas,omitzero"`
}

// Group limits the nodes a selector selects, or each set of nodes that share the values of some labels.
type Group struct {
	// Name identifies the group in reasons and in state.
	Name string `json:"name"`
	// NodeSelector is a label selector; empty selects every node.
	NodeSelector string `json:"nodeSelector,omitempty"`
	// GroupBy are label keys (zone, rack, pool): every combination of values is a group of its own, and so are
	// the nodes that lack the labels or leave them empty.
	GroupBy []string `json:"groupBy,omitempty"`
	// MaxParallel and MaxUnavailable are as in Limits, percentages being of the group; absent means no limit.
	MaxParallel    Amount `json:"maxParallel,omitzero"`
	MaxUnavailable Amount `json:"maxUnavailable,omitzero"`
}

// Request asks for the slot of one node.
type Request struct {
	ID        string    `json:"id"`
	Node      string    `json:"node"`
	Requestor string    `json:"requestor"`
	Priority  int       `json:"priority,omitempty"`
	Created   time.Time `json:"created"`
}

// Grant is a slot that a maintenance holds.
type Grant struct {
	RequestID string `json:"requestId"`
	Node      string `json:"node"`
	Requestor string `json:"requestor"`
}

// Freeze stops new grants while it is in force.
type Freeze struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	// Running also holds the maintenances that already have a slot before their next side effect.
	Running bool `json:"running,omitempty"`
}

// Observation is what was seen of the cluster at one instant. It counts every node and tells facts of some.
type Observation struct {
	At time.Time `json:"at"`
	// Revision is the revision of the limits whose groups the observation was made for.
	Revision int `json:"revision"`
	// Nodes and Unavailable count all nodes, and those unschedulable or not Ready.
	Nodes       int `json:"nodes"`
	Unavailable int `json:"unavailable"`
	// Groups counts the same per group key (see Grouper.Keys); a group with no node is absent.
	Groups map[string]GroupCount `json:"groups,omitempty"`
	// Facts are known of candidates, holders and recently released nodes, by node name.
	Facts map[string]NodeFacts `json:"facts,omitempty"`
}

// GroupCount counts the nodes of one group.
type GroupCount struct {
	Nodes       int `json:"nodes"`
	Unavailable int `json:"unavailable,omitempty"`
}

// NodeFacts is what was seen of one node.
type NodeFacts struct {
	// Missing says that there is no such node; Suggestion may name one that is spelled alike.
	Missing    bool   `json:"missing,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
	// Unavailable says that the node was unschedulable or not Ready.
	Unavailable bool `json:"unavailable,omitempty"`
	// Groups are the keys of the groups the node belongs to, in the order of Limits.Groups.
	Groups []string `json:"groups,omitempty"`
}

// Input is everything a decision depends on.
type Input struct {
	Limits  Limits
	Freezes []Freeze
	// Observed is the newest observation; nil before the first.
	Observed *Observation
	// Revision is the revision of Limits; an observation of another revision grants nothing.
	Revision int
	Granted  []Grant
	// Released are nodes given back after Observed.At: they count as available until a newer
	// observation says otherwise.
	Released []string
	Pending  []Request
}

// Decision is what Decide concludes. Every pending request is in exactly one of the two lists, both in rank order.
type Decision struct {
	Grants  []Request
	Refused []Refusal
}

// Refusal tells why a request has to wait.
type Refusal struct {
	Request Request
	// Code names the kind of constraint, for metrics and for noticing change.
	Code Code
	// Reason says it in words, with the numbers and the nodes that matter.
	Reason string
}

// Code is the kind of a refusal.
type Code string

// The codes, one for each thing that can make a request wait.
const (
	Frozen              Code = "Frozen"
	Unobserved          Code = "Unobserved"
	NodeMissing         Code = "NodeMissing"
	NodeBusy            Code = "NodeBusy"
	Outranked           Code = "Outranked"
	MaxParallel         Code = "MaxParallel"
	MaxUnavailable      Code = "MaxUnavailable"
	GroupMaxParallel    Code = "GroupMaxParallel"
	GroupMaxUnavailable Code = "GroupMaxUnavailable"
	// Quota is a quota of the requestor: of held nodes where the request waits, of pending requests where it is turned
	// down.
	Quota Code = "Quota"
)
