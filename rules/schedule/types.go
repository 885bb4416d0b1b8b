// Package schedule decides which node maintenance may start next: plain values in, plain values out.
package schedule

import (
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/window"
)

// Limits bound how many nodes may be out of service at a time. All of them hold at once.
type Limits struct {
	// MaxParallel is how many maintenances may run at a time: a number, a percentage of all nodes rounded up, or `unlimited`. 0 is refused.
	MaxParallel Amount `json:"maxParallel,omitzero" jsonschema_extras:"x-flag=max-parallel"`
	// MaxUnavailable is how many nodes may be unavailable at a time, those in maintenance included: a number, or a percentage of all nodes
	// rounded up; with 0 no further node may become unavailable. If absent, there is no limit.
	MaxUnavailable Amount `json:"maxUnavailable,omitzero" jsonschema_extras:"x-flag=max-unavailable"`
	// Remediations is how many maintenances of health checks may run at a time, in slots of their own: a number, a percentage of all nodes
	// rounded up, or `unlimited`; with 0 none starts. They do not count in `maxParallel`.
	Remediations Amount `json:"remediations,omitzero" jsonschema_extras:"x-flag=remediations"`
	// Groups are further limits on parts of the cluster. All limits hold at once.
	Groups []Group `json:"groups,omitempty"`
	// Windows are names of [windows](#windows) of the worker's configuration: slots are granted only while all of them are open. It has at
	// most 10 names.
	Windows []string `json:"windows,omitempty" jsonschema:"maxItems=10" jsonschema_extras:"x-flag=window"`
	// Quotas are what a requestor may ask for and hold: see [policy and quotas](#policy-and-quotas).
	Quotas Quotas `json:"quotas,omitzero"`
}

// Group limits the nodes a selector selects, or each set of nodes that share the values of some labels.
type Group struct {
	// Name is the name of the group in reasons and in the scheduler's state: lower-case letters, digits and `-`.
	Name string `json:"name" jsonschema:"required"`
	// NodeSelector is a label selector of the group's nodes; if absent, they are all that have the labels of `groupBy`. One of the two is
	// required.
	NodeSelector string `json:"nodeSelector,omitempty"`
	// GroupBy are label keys, such as that of a zone, a rack or a pool: every combination of values is a group of its own, and so are the
	// nodes that lack the labels or leave them empty.
	GroupBy []string `json:"groupBy,omitempty"`
	// MaxParallel is as that of all nodes, percentages being of the group; if absent, there is no limit. Remediations do not count. One of
	// `maxParallel`, `maxUnavailable` and `windows` is required.
	MaxParallel Amount `json:"maxParallel,omitzero"`
	// MaxUnavailable is as that of all nodes, percentages being of the group; if absent, there is no limit. Remediations count.
	MaxUnavailable Amount `json:"maxUnavailable,omitzero"`
	// Windows are names of [windows](#windows), which count for the group's nodes besides those of all nodes. It has at most 10 names.
	Windows []string `json:"windows,omitempty" jsonschema:"maxItems=10"`
}

// HolderKind is what kind of workflow asks for a slot, or holds one.
type HolderKind string

const (
	// KindMaintenance is the maintenance of the node by the requestor. It is what requests mean that name no kind.
	KindMaintenance HolderKind = ""
	// KindControlPlane is a health check's remediation of a control-plane node. Its slot is none of the node's: a maintenance that the
	// remediation begins asks for that. Of the cluster's control-plane nodes one has such slots at a time, and no other limit counts.
	KindControlPlane HolderKind = "control-plane"
	// KindProfile is a profile's transition that takes the node into maintenance. It holds a slot for as long as it is carried out: what it
	// makes of the node is counted by what the node shows. The node may be out of service for others too. It counts as unavailable, and
	// keeps to windows; maxParallel and quotas do not concern it.
	KindProfile HolderKind = "profile"
)

// Request asks for the slot of one node.
type Request struct {
	ID        string    `json:"id"`
	Node      string    `json:"node"`
	Requestor string    `json:"requestor"`
	Priority  int       `json:"priority,omitempty"`
	Created   time.Time `json:"created"`
	// Windows are the names of windows that have to be open for it, besides those of the limits. ExpectedDuration is how long
	// they have to stay so from the grant on; 0 says nothing of it. IgnoreWindows is the reason to ignore all windows; empty if they count.
	Windows          []string        `json:"windows,omitempty"`
	ExpectedDuration period.Duration `json:"expectedDuration,omitzero"`
	IgnoreWindows    string          `json:"ignoreWindows,omitempty"`
	// Gang is the gang that it is a member of, nil if it asks for itself alone.
	Gang *Gang `json:"gang,omitempty"`
	// Remediation: the request is for a node that a health check found ill. It goes before all that are planned, into a
	// slot of its own: neither MaxParallel nor windows, gangs or quotas concern it.
	Remediation bool `json:"remediation,omitempty"`
	// Kind is that of the workflow that asks.
	Kind HolderKind `json:"kind,omitempty"`
}

// Grant is a slot that a workflow holds.
type Grant struct {
	RequestID string `json:"requestId"`
	Node      string `json:"node"`
	Requestor string `json:"requestor"`
	// Gang is the name of the gang that it was requested for.
	Gang string `json:"gang,omitempty"`
	// Remediation and Kind are the request's.
	Remediation bool       `json:"remediation,omitempty"`
	Kind        HolderKind `json:"kind,omitempty"`
}

// Freeze stops new grants while it is in force.
type Freeze struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	// Running also holds the maintenances that already have a slot before their next side effect.
	Running bool `json:"running,omitempty"`
}

// Observation is what was seen of the cluster at one instant. It counts every node and has facts of some.
type Observation struct {
	At time.Time `json:"at"`
	// Revision is the revision of the limits whose groups the observation was made for.
	Revision int `json:"revision"`
	// Nodes and Unavailable count all nodes, and those unschedulable or not Ready.
	Nodes       int `json:"nodes"`
	Unavailable int `json:"unavailable"`
	// Others are those counted in Unavailable, the first of them by name.
	Others []UnavailableNode `json:"others,omitempty"`
	// Groups counts the same per group key (see Grouper.Keys); a group with no node is absent.
	Groups map[string]GroupCount `json:"groups,omitempty"`
	// Facts are known of candidates, holders and recently released nodes, by node name.
	Facts map[string]NodeFacts `json:"facts,omitempty"`
}

// UnavailableNode is a node that is out of service for another reason than a maintenance.
type UnavailableNode struct {
	Node string `json:"node"`
	// Why is cordoned, not Ready, or both.
	Why string `json:"why"`
}

// GroupCount counts the nodes of one group.
type GroupCount struct {
	Nodes       int `json:"nodes"`
	Unavailable int `json:"unavailable,omitempty"`
}

// NodeFacts is what was seen of one node.
type NodeFacts struct {
	// Missing: there is no such node. Suggestion may name one that is spelled alike.
	Missing    bool   `json:"missing,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
	// Unavailable: the node was unschedulable or not Ready.
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

	// Now is the time at which windows are open or not. Horizon is what is known of them, nil if nothing is, and
	// HorizonTrouble then why, empty if it is just not known yet.
	Now            time.Time
	Horizon        *window.Horizon
	HorizonTrouble string
	// Seen are the requests whose node is known to be there: those that wait for a window need no observation.
	Seen map[string]bool
}

// Decision is what Decide concludes. Every pending request is in exactly one of the two lists, both in rank order.
type Decision struct {
	Grants  []Request
	Refused []Refusal
	// Windows: the decision looked at windows. Next is then when it may change because one of them opens or closes, zero if none
	// does. Unknown: it needed openings that the horizon does not have.
	Windows bool
	Next    time.Time
	Unknown bool
}

// Refusal is why a request has to wait.
type Refusal struct {
	Request Request
	// Code names the kind of constraint, for metrics and for noticing change.
	Code Code
	// Reason is for people, with the numbers and the nodes that matter.
	Reason string
	// Until is when the windows that a request waits for are open next; zero if that is not known, or it waits for
	// something else.
	Until time.Time
}

// IsWindow reports whether a request waits for windows alone.
func (c Code) IsWindow() bool { return c == Window || c == WindowUnknown }

// NeedsCluster reports whether a change of the cluster may end the wait. It does not where that is for windows alone, for
// others to ask, or for a control-plane node's remediation to end.
func (c Code) NeedsCluster() bool { return !c.IsWindow() && c != GangIncomplete && c != ControlPlane }

// Code is the kind of a refusal.
type Code string

// The codes, one for each thing that can make a request wait.
const (
	Frozen Code = "Frozen"
	Window Code = "Window"
	// WindowUnknown is a window whose openings are being found out.
	WindowUnknown       Code = "WindowUnknown"
	Unobserved          Code = "Unobserved"
	NodeMissing         Code = "NodeMissing"
	NodeBusy            Code = "NodeBusy"
	Outranked           Code = "Outranked"
	MaxParallel         Code = "MaxParallel"
	MaxUnavailable      Code = "MaxUnavailable"
	GroupMaxParallel    Code = "GroupMaxParallel"
	GroupMaxUnavailable Code = "GroupMaxUnavailable"
	// Remediations is the limit on those.
	Remediations Code = "Remediations"
	// ControlPlane is the limit of one control-plane node that is remediated.
	ControlPlane Code = "ControlPlane"
	// Quota is a quota of the requestor: of held nodes where the request waits, of pending requests where it is turned
	// down.
	Quota Code = "Quota"
	// GangIncomplete is a member of a gang of which not all nodes have asked yet, GangWaits one that could go while its gang
	// cannot, and GangTooLarge one whose gang is larger than some limit allows by itself.
	GangIncomplete Code = "GangIncomplete"
	GangWaits      Code = "GangWaits"
	GangTooLarge   Code = "GangTooLarge"
	// Reserved is what a gang that goes first needs.
	Reserved Code = "Reserved"
)

// Codes are all codes.
var Codes = []Code{
	Frozen, Window, WindowUnknown, Unobserved, NodeMissing, NodeBusy, Outranked, MaxParallel, MaxUnavailable,
	GroupMaxParallel, GroupMaxUnavailable, Remediations, ControlPlane, Quota, GangIncomplete, GangWaits, GangTooLarge, Reserved,
}
