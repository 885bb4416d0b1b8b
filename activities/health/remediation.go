package health

import (
	"time"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/api"
	rules "drydock.dev/drydock/rules/health"
)

// LeaseWant is for how long a remediation wants the lease of its node.
type LeaseWant struct {
	// For is the timeout of the present step, 0 where it has none; Before is the sum of those of the steps before.
	For    time.Duration `json:"for,omitempty"`
	Before time.Duration `json:"before,omitempty"`
}

// LeaseInput names a check, a node and what is wanted of its lease.
type LeaseInput struct {
	Check string `json:"check"`
	Node  string `json:"node"`
	UID   string `json:"uid,omitempty"`
	LeaseWant
}

// About implements caller.Input.
func (in LeaseInput) About() caller.Subject { return caller.Subject{Check: in.Check, Node: in.Node} }

// LeaseState is how the lease of a node stands for a check.
type LeaseState struct {
	Held bool `json:"held,omitempty"`
	// HeldBy is who else has it.
	HeldBy string `json:"heldBy,omitempty"`
	// Overdue: it was held for too long, and was given back.
	Overdue bool `json:"overdue,omitempty"`
}

// ObjectInput asks for the remediation object of a step.
type ObjectInput struct {
	Check string `json:"check"`
	Node  string `json:"node"`
	// UID is that of the node when the remediation began; empty is any.
	UID          string `json:"uid,omitempty"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
	Step         int    `json:"step"`
	// Begun: a step of the remediation has an object or a maintenance. The control plane does without the node already.
	Begun    bool              `json:"begun,omitempty"`
	Template rules.TemplateRef `json:"template"`
	// RunID is the first run of the remediation's chain.
	RunID string    `json:"runId"`
	Lease LeaseWant `json:"lease"`
	// Slot is the request whose slot lets a control-plane node be remediated; empty is none.
	Slot string `json:"slot,omitempty"`
	// Etcd is the check's, for control-plane nodes.
	Etcd *rules.EtcdQuestion `json:"etcd,omitempty"`
	// Conditions are the check's: where the node has none of them any more nothing is begun. Empty does not look.
	Conditions []rules.UnhealthyCondition `json:"conditions,omitempty"`
	// Owner owns the object; nil looks for a NodeHealthCheck with the check's name.
	Owner *api.HealthCheckOwner `json:"owner,omitempty"`
}

// About implements caller.Input.
func (in ObjectInput) About() caller.Subject {
	return caller.Subject{Check: in.Check, Node: in.Node, RunID: in.RunID, Request: in.Slot}
}

// EnsuredObject is the remediation object of a step, or in words why there is none.
type EnsuredObject struct {
	// Resource is the object, nil if there is none.
	Resource  *rules.Resource `json:"resource,omitempty"`
	StartedAt time.Time       `json:"startedAt,omitzero"`
	// Found: it was there already, and is this check's.
	Found bool `json:"found,omitempty"`
	// NotOwned names the object of somebody else's that stands in the way, LeaseHeldBy who has the node's lease.
	NotOwned    string `json:"notOwned,omitempty"`
	LeaseHeldBy string `json:"leaseHeldBy,omitempty"`
	// Waiting says what has to be over first, such as the deletion of an earlier object. Ask again after a while.
	Waiting string `json:"waiting,omitempty"`
	// Indispensable says why the control plane cannot do without the node now.
	Indispensable string `json:"indispensable,omitempty"`
	// Skipped says what of the node forbids it: it is excluded, or under a maintenance.
	Skipped string `json:"skipped,omitempty"`
	// Unproven says why the Machine that the node names is not the node's: nothing that acts on it is made.
	Unproven string `json:"unproven,omitempty"`
	// Failure says what is wrong with the template; FailureReason is one of the reasons of the condition Disabled, or empty.
	Failure       string `json:"failure,omitempty"`
	FailureReason string `json:"failureReason,omitempty"`
	// NodeGone: there is no such node, or another one of its name, whose UID is NodeUID.
	NodeGone bool   `json:"nodeGone,omitempty"`
	NodeUID  string `json:"nodeUid,omitempty"`
	// NeedsSlot: the node is one of the control plane, and the scheduler knows of no slot of the remediation's.
	NeedsSlot bool `json:"needsSlot,omitempty"`
	// Lease is how it stands.
	Lease LeaseState `json:"lease,omitzero"`
}

// FindInput asks which objects a check has made for a node from templates.
type FindInput struct {
	Check     string              `json:"check"`
	Node      string              `json:"node"`
	Templates []rules.TemplateRef `json:"templates"`
}

// About implements caller.Input.
func (in FindInput) About() caller.Subject { return caller.Subject{Check: in.Check, Node: in.Node} }

// FoundObjects are the objects that are there.
type FoundObjects struct {
	Objects []FoundObject `json:"objects,omitempty"`
}

// FoundObject is an object, and the index of its template in FindInput.Templates.
type FoundObject struct {
	Template  int            `json:"template"`
	Resource  rules.Resource `json:"resource"`
	StartedAt time.Time      `json:"startedAt"`
}

// WatchedObject is the remediation object of a step.
type WatchedObject struct {
	Index    int            `json:"index"`
	Resource rules.Resource `json:"resource"`
}

// RemediationWatch is what WatchRemediation looks at, and what was seen before.
type RemediationWatch struct {
	Check string `json:"check"`
	Node  string `json:"node"`
	UID   string `json:"uid,omitempty"`
	// Objects are those of all steps that have begun.
	Objects []WatchedObject `json:"objects,omitempty"`
	// Lease is kept meanwhile; nil keeps none.
	Lease *LeaseWant `json:"lease,omitempty"`
	// Conditions have the node itself looked at; empty does not.
	Conditions []rules.UnhealthyCondition `json:"conditions,omitempty"`
	// Known is what was reported last; nil has everything reported at once.
	Known *RemediationSeen `json:"known,omitempty"`
}

// About implements caller.Input.
func (in RemediationWatch) About() caller.Subject {
	return caller.Subject{Check: in.Check, Node: in.Node}
}

// RemediationSeen is how a remediation stands.
type RemediationSeen struct {
	// Objects are in the order of those that were asked about.
	Objects []ObjectSeen `json:"objects,omitempty"`
	// Lease is zero if none is kept.
	Lease LeaseState `json:"lease,omitzero"`
	// NodeGone: there is no such node; NodeReplaced: there is another one of its name, whose UID is NodeUID.
	NodeGone     bool   `json:"nodeGone,omitempty"`
	NodeReplaced bool   `json:"nodeReplaced,omitempty"`
	NodeUID      string `json:"nodeUid,omitempty"`
	// Ill: the node has one of the Conditions, whether or not its duration is over.
	Ill bool `json:"ill,omitempty"`
}

// ObjectSeen is how a remediation object stands.
type ObjectSeen struct {
	Index int `json:"index"`
	// Gone: there is no such object any more. Deleting: there is, and it has a finalizer left.
	Gone     bool `json:"gone,omitempty"`
	Deleting bool `json:"deleting,omitempty"`
	// Succeeded and PermanentNodeDeletionExpected are conditions, nil while they are absent or Unknown.
	Succeeded                     *bool `json:"succeeded,omitempty"`
	PermanentNodeDeletionExpected *bool `json:"permanentNodeDeletionExpected,omitempty"`
	// TimedOut: it has the annotation.
	TimedOut bool `json:"timedOut,omitempty"`
	// Message is the condition Succeeded's, cut.
	Message string `json:"message,omitempty"`
}

// MarkInput asks for marks on remediation objects of a check; those that are gone, or not the check's, are left out.
type MarkInput struct {
	Check   string           `json:"check"`
	Objects []rules.Resource `json:"objects"`
	// TimedOut marks the step as timed out, so that the remediator stops, unless it has succeeded.
	TimedOut *time.Time `json:"timedOut,omitempty"`
	// Old flags objects that are older than 48 h.
	Old bool `json:"old,omitempty"`
	// HealthySince shows since when the node is healthy while the removal is delayed, Relapsed takes that off.
	HealthySince *time.Time `json:"healthySince,omitempty"`
	Relapsed     bool       `json:"relapsed,omitempty"`
}

// About implements caller.Input.
func (in MarkInput) About() caller.Subject { return caller.Subject{Check: in.Check} }

// MarkedObjects says for each object whether it is there, and has the marks.
type MarkedObjects struct {
	Gone []bool `json:"gone,omitempty"`
	// Flagged are how many were flagged as old by this call.
	Flagged int `json:"flagged,omitempty"`
}

// RemoveInput asks for the end of what remediates a node. Objects that are not the check's are left alone, and count as gone.
type RemoveInput struct {
	Check   string           `json:"check"`
	Node    string           `json:"node"`
	Objects []rules.Resource `json:"objects,omitempty"`
	// Templates have the check's objects for the node removed that are from them, too: an activity may have made one whose answer was lost.
	Templates []rules.TemplateRef `json:"templates,omitempty"`
	// KeepLease leaves the lease, and KeepConfirmation the node's annotation that it is healthy.
	KeepLease        bool `json:"keepLease,omitempty"`
	KeepConfirmation bool `json:"keepConfirmation,omitempty"`
}

// About implements caller.Input.
func (in RemoveInput) About() caller.Subject { return caller.Subject{Check: in.Check, Node: in.Node} }

// Removed says for each object whether it is gone. Done: all are, and lease and confirmation are taken off. Otherwise finalizers
// keep some: WatchRemediation reports when they are gone, and then RemoveObjects does the rest.
type Removed struct {
	Gone []bool `json:"gone,omitempty"`
	Done bool   `json:"done,omitempty"`
}

// RemediationsInput names a check and the task queue of its cluster.
type RemediationsInput struct {
	Check     string `json:"check"`
	TaskQueue string `json:"taskQueue"`
}

// About implements caller.Input.
func (in RemediationsInput) About() caller.Subject { return caller.Subject{Check: in.Check} }

// FoundRemediations are the remediations of a check that run.
type FoundRemediations struct {
	Remediations api.List[RunningRemediation] `json:"remediations,omitempty"`
}

// RunningRemediation is a remediation that runs; RunID is the first of its chain.
type RunningRemediation struct {
	Node  string `json:"node"`
	RunID string `json:"runId"`
}
