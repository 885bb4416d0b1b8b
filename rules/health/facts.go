package health

import "time"

// Facts is what was seen of a node.
type Facts struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
	// Group is GroupOf the node's labels; empty if there are no groups.
	Group        string    `json:"group,omitempty"`
	ControlPlane bool      `json:"controlPlane,omitempty"`
	CreatedAt    time.Time `json:"createdAt,omitzero"`
	// Matches are the unhealthy conditions that the node has, whether or not their durations are over.
	Matches []Match `json:"matches,omitempty"`
	// Excluded: the label remediation.medik8s.io/exclude-from-remediation is there, and Exclude is its value.
	Excluded bool   `json:"excluded,omitempty"`
	Exclude  string `json:"exclude,omitempty"`
	// Confirmed: the annotation remediation.medik8s.io/manually-confirmed-healthy is there.
	Confirmed bool `json:"confirmed,omitempty"`
	// UnderMaintenance is the workflow ID of a maintenance of ours that holds the node and is no remediation of this check.
	UnderMaintenance string `json:"underMaintenance,omitempty"`
	// Upgrading says in words that the node itself is being upgraded; empty is none.
	Upgrading string `json:"upgrading,omitempty"`
	// Left: the check does not select the node any more, and with Gone because it was deleted.
	Left bool `json:"left,omitempty"`
	Gone bool `json:"gone,omitempty"`
}

// Match is an unhealthy condition of a node: Index is its place in Spec.UnhealthyConditions, and Since the node condition's
// lastTransitionTime, or, where an observation has none, when the check first saw it so.
type Match struct {
	Index int       `json:"i"`
	Since time.Time `json:"since"`
}

// GroupCount counts a group of the selected nodes. Group "" counts all of them, and is always there.
type GroupCount struct {
	Group string `json:"group,omitempty"`
	Nodes int    `json:"nodes"`
	// Matching are those with at least one Match.
	Matching int `json:"matching,omitempty"`
}

// Observation is what the cluster looked like at one moment.
type Observation struct {
	// Full: nodes that are named neither here nor in the parts that follow are healthy or not selected.
	Full bool `json:"full,omitempty"`
	// More: further parts follow, which are not Full; nothing is decided before the last.
	More bool `json:"more,omitempty"`
	// At is when it was seen.
	At time.Time `json:"at"`
	// Groups are the counts of the same moment as the last part's Nodes: of group "", and of each group with a node that matches
	// or that is being remediated.
	Groups []GroupCount `json:"groups,omitempty"`
	// Nodes are those that changed: with Full, all that have a Match, or that are being remediated.
	Nodes []Facts `json:"nodes,omitempty"`
	// Upgrading says in words that the cluster is being upgraded; empty is none.
	Upgrading string `json:"upgrading,omitempty"`
	// Disabled says why nothing may begin, and DisabledReason is one of the reasons of the condition Disabled.
	Disabled       string `json:"disabled,omitempty"`
	DisabledReason string `json:"disabledReason,omitempty"`
	// Overlap is the oldest check, older than this one, that selects nodes of this check; zero is none.
	Overlap Overlap `json:"overlap,omitzero"`
}

// Overlap is a check that selects nodes of another, and the first of these nodes by name.
type Overlap struct {
	Check string `json:"check"`
	Node  string `json:"node"`
}

// Intent is what a check has watched.
type Intent struct {
	// Selector is a label selector as text.
	Selector   string               `json:"selector"`
	Conditions []UnhealthyCondition `json:"conditions"`
	GroupBy    []string             `json:"groupBy,omitempty"`
	// Templates are those that have to be there.
	Templates []TemplateRef `json:"templates,omitempty"`
	// Unseen are nodes under remediation of which nothing was seen: facts of them are wanted, whatever they are.
	Unseen []string `json:"unseen,omitempty"`
}

// Progress is what a remediation says of itself.
type Progress struct {
	Node string `json:"node"`
	UID  string `json:"uid,omitempty"`
	// ControlPlane is what the remediation was begun with, or has found out.
	ControlPlane bool `json:"controlPlane,omitempty"`
	// RunID is the first run of the remediation's chain; empty of one that could not be started.
	RunID string `json:"runId"`
	// Revision is that of the latest order taken, 0 before one.
	Revision int `json:"revision"`
	// Step is the index of the step that is at work.
	Step      int       `json:"step"`
	StartedAt time.Time `json:"startedAt"`
	// Steps are those that have begun or have failed to, in the order of their index.
	Steps []StepState `json:"steps,omitempty"`
	// LeaseHeldBy is who holds the node's lease, and NotOwned says which remediation object of somebody else's stands in the
	// way. If nothing has begun, the remediation has Ended with that: the check decides again whether and when to try.
	LeaseHeldBy string `json:"leaseHeldBy,omitempty"`
	NotOwned    string `json:"notOwned,omitempty"`
	// Indispensable says why the control plane cannot do without the node now. The remediation has Ended with that, too: another
	// control-plane node may be one that it can do without.
	Indispensable string `json:"indispensable,omitempty"`
	// Waiting says in words what the remediation waits for.
	Waiting string `json:"waiting,omitempty"`
	// Trouble says in words what it cannot do and tries again, and why. With Ended it is what kept it from beginning.
	Trouble string `json:"trouble,omitempty"`
	// WaitsForSlot: nothing has begun, since the scheduler has not granted it the slot of a control-plane node.
	WaitsForSlot bool `json:"waitsForSlot,omitempty"`
	// PermanentNodeDeletionExpected: a remediator says that the node goes for good, and comes back under another name.
	PermanentNodeDeletionExpected bool `json:"permanentNodeDeletionExpected,omitempty"`
	// Ended: no object of the remediation is left, and its lease is given back. Failure says why that came about without an
	// order; Recovered, that the node was healthy or gone: an order said so, or it was seen while no check answered.
	Ended     bool   `json:"ended,omitempty"`
	Recovered bool   `json:"recovered,omitempty"`
	Failure   string `json:"failure,omitempty"`
}

// StepState is how a step of a remediation stands.
type StepState struct {
	Index int `json:"index"`
	// Resource is the remediation object, or WorkflowID that of the maintenance.
	Resource   *Resource `json:"resource,omitempty"`
	WorkflowID string    `json:"workflowId,omitempty"`
	// StartedAt is when the object was created; zero if that has not happened.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// TimedOut is when it was marked.
	TimedOut *time.Time `json:"timedOut,omitempty"`
	// Succeeded is what the remediator says, nil while it says nothing or Unknown.
	Succeeded *bool `json:"succeeded,omitempty"`
	// Gone: somebody else has deleted the object.
	Gone bool `json:"gone,omitempty"`
	// Failure says why the step could not begin, or how it failed.
	Failure string `json:"failure,omitempty"`
}

// Resource is a reference to a remediation object (v1.ObjectReference).
type Resource struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}
