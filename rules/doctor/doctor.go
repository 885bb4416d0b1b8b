// Package doctor decides what is inconsistent between the cluster, the scheduler and the maintenances: facts in,
// findings out.
package doctor

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/bounds"
)

// Kind says in one word what a finding is about.
type Kind string

// The kinds of findings, in the order in which they are listed and healed: a mark goes before the slot that belongs to
// it, which fences what a dead maintenance left under way.
const (
	SchedulerMissing      Kind = "SchedulerMissing"
	SchedulerUnanswered   Kind = "SchedulerUnanswered"
	SchedulerRebuilding   Kind = "SchedulerRebuilding"
	MarkDead              Kind = "MarkDead"
	RequestsLeft          Kind = "RequestsLeft"
	SlotDead              Kind = "SlotDead"
	PendingDead           Kind = "PendingDead"
	SlotStale             Kind = "SlotStale"
	SlotUnknown           Kind = "SlotUnknown"
	SlotUntold            Kind = "SlotUntold"
	SlotUnrequested       Kind = "SlotUnrequested"
	SlotUnmarked          Kind = "SlotUnmarked"
	ConditionsLeft        Kind = "ConditionsLeft"
	TaintLeft             Kind = "TaintLeft"
	LabelLeft             Kind = "LabelLeft"
	CordonUnowned         Kind = "CordonUnowned"
	ProtectionLeft        Kind = "ProtectionLeft"
	MachineLeft           Kind = "MachineLeft"
	MarkUnreadable        Kind = "MarkUnreadable"
	MarkForeign           Kind = "MarkForeign"
	MarkUnknown           Kind = "MarkUnknown"
	MaintenanceUnanswered Kind = "MaintenanceUnanswered"
	NodeGone              Kind = "NodeGone"
	DeliveryFailing       Kind = "DeliveryFailing"
	DeliveryGivenUp       Kind = "DeliveryGivenUp"
	WorkflowTroubled      Kind = "WorkflowTroubled"
)

// Kinds of notes, which are no inconsistencies.
const (
	CordonByHand   Kind = "CordonByHand"
	NodeAwaited    Kind = "NodeAwaited"
	NotChecked     Kind = "NotChecked"
	RebuildingSoon Kind = "SchedulerStarting"
	OutOfService   Kind = "OutOfServiceByHand"
)

var order = []Kind{
	SchedulerMissing, SchedulerUnanswered, SchedulerRebuilding, MarkDead, RequestsLeft, SlotDead, PendingDead, SlotStale,
	SlotUnknown, SlotUntold, SlotUnrequested, SlotUnmarked, ConditionsLeft, TaintLeft, LabelLeft, CordonUnowned, ProtectionLeft, MachineLeft,
	MarkUnreadable, MarkForeign, MarkUnknown, MaintenanceUnanswered, NodeGone, DeliveryFailing, DeliveryGivenUp,
	WorkflowTroubled,
}

// Fix is how a finding is healed.
type Fix string

// The fixes.
const (
	AwaitScheduler   Fix = "await-scheduler"
	ReleaseMark      Fix = "release-mark"
	WithdrawRequests Fix = "withdraw-requests"
	ReleaseSlot      Fix = "release-slot"
	RequestSlot      Fix = "request-slot"
	RestoreMark      Fix = "restore-mark"
	CleanNode        Fix = "clean-node"
	HideConditions   Fix = "hide-conditions"
	ResumeMachine    Fix = "resume-machine"
)

// Does says in words what a fix does.
func (f Fix) Does() string {
	switch f {
	case AwaitScheduler:
		return "waits until a worker has started the scheduler and it knows who holds what"
	case ReleaseMark:
		return "takes the mark off, and puts back what was there before"
	case WithdrawRequests:
		return "withdraws and removes the EvictionRequests"
	case ReleaseSlot:
		return "takes the mark off, if it is there, and gives the slot back"
	case RequestSlot:
		return "asks the scheduler for the slot in the name of the maintenance"
	case RestoreMark:
		return "tells the maintenance, which marks its node again"
	case CleanNode:
		return "removes what Drydock left on the node"
	case ResumeMachine:
		return "takes Drydock's annotation off the Machine, so that Cluster API remediates it again"
	case HideConditions:
		return "takes the conditions off that only this maintenance shows"
	}
	return ""
}

// Finding is one inconsistency.
type Finding struct {
	Kind       Kind   `json:"kind"`
	Node       string `json:"node,omitempty"`
	WorkflowID string `json:"workflowId,omitempty"`
	RunID      string `json:"runId,omitempty"`
	RequestID  string `json:"requestId,omitempty"`
	Text       string `json:"text"`
	// Since is when the state began that is found, where that is known.
	Since *time.Time `json:"since,omitempty"`
	// Fix is empty for a finding that needs a person; NextStep then says what to do.
	Fix      Fix    `json:"fix,omitempty"`
	NextStep string `json:"nextStep,omitempty"`
	// Seen identifies the state that was found, so that a later one of the same kind is not taken for it.
	Seen string `json:"seen,omitempty"`
	// Tried says what became of an attempt to heal it.
	Tried string `json:"tried,omitempty"`
}

// Key is the same for findings of the same state of the same object.
func (f Finding) Key() string {
	return strings.Join([]string{string(f.Kind), f.Node, f.WorkflowID, f.RunID, f.RequestID, f.Seen}, "\n")
}

// Confirm keeps of a second look the findings that the first one had too, in the same state: what was so only in
// passing is none.
func Confirm(first, second []Finding) []Finding {
	known := map[string]bool{}
	for _, f := range first {
		known[f.Key()] = true
	}
	return slices.DeleteFunc(slices.Clone(second), func(f Finding) bool { return !known[f.Key()] })
}

// sorted is the order of Kind, then of names.
func sorted(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)),
			cmp.Compare(a.Node, b.Node), cmp.Compare(a.WorkflowID, b.WorkflowID), cmp.Compare(a.Key(), b.Key()),
		)
	})
	return findings
}

// Facts are what the cluster, the scheduler and Temporal say.
type Facts struct {
	At time.Time
	// Prefix begins the workflow IDs of this cluster's maintenances: "[<cluster>/]node-maintenance/".
	Prefix string
	// Transitions begins those of its transitions of profiles, which hold nodes for their drains: "[<cluster>/]profile-transition/".
	Transitions string
	Nodes       []Node
	Scheduler   Scheduler
	// Maintenances are those that Temporal lists as running. The list lags.
	Maintenances []Maintenance
	// Executions is what Temporal says of single runs, which is exact.
	Executions map[string]Execution
	// Requests are EvictionRequests of Drydock's, per run.
	Requests []Requests
	// Deliveries are under way to channels and audit sinks, or were given up.
	Deliveries []Delivery
	// Machines are those of Cluster API that Drydock has had left alone.
	Machines []Machine
	// Troubles are what health checks, their remediations, profiles, plans and their lockstep say that fails and is tried again.
	Troubles []Trouble
	// Unchecked says what could not be looked at.
	Unchecked []string
}

// Trouble is something that a workflow cannot do, and tries again.
type Trouble struct {
	WorkflowID, RunID string
	What, Why         string
	Since             time.Time
}

// Node is a node with what Drydock writes on it.
type Node struct {
	Name string
	UID  string
	// Mark is the text of the annotation, Holders what it says, Unreadable why nothing can be read from it.
	Mark       string
	Marked     bool
	Holders    []Holder
	Unreadable string
	// Phase is the label; Labelled is true if the node has it.
	Phase         string
	Labelled      bool
	Tainted       bool
	Unschedulable bool
	// Claims are the maintenances that show lifecycle conditions in the node's status.
	Claims []Holder
	// Protections are the annotations for autoscalers that Drydock sets too, where they say what Drydock says.
	Protections []string
	// Excluded: it has the label by which medik8s' remediators leave it alone. OutOfService: it is tainted as that; Owned says
	// that a holder has done so.
	Excluded, OutOfService, Owned bool
}

// Machine is a Machine of Cluster API, "namespace/name", and the node that it names.
type Machine struct{ Name, Node string }

// Holder is a chain of runs that a mark names by its first.
type Holder struct {
	WorkflowID, RunID, Requestor string
	Since                        time.Time
	// Namespace is the ID of the Temporal namespace that the mark names; empty if that can be none.
	Namespace string
	// Foreign: the mark names another Temporal namespace, or none.
	Foreign bool
}

// MaxLost bounds how many namespaces may be lost at once.
const MaxLost = 10

var namespaceID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)

// NamespaceID reports whether a text can be the ID of a Temporal namespace.
func NamespaceID(text string) error {
	if !namespaceID.MatchString(text) {
		return fmt.Errorf("%q cannot be the ID of a Temporal namespace: a mark on a node has it (drydock doctor says it)", bounds.Cut(text, maxText))
	}
	return nil
}

func (n Node) heldBy(run string) bool {
	return slices.ContainsFunc(n.Holders, func(h Holder) bool { return h.RunID == run })
}

// Scheduler is what the scheduler says of itself.
type Scheduler struct {
	WorkflowID string
	Execution
	// Unanswered is why it does not answer.
	Unanswered string
	Rebuilding bool
	Holders    []Slot
	Pending    []Slot
}

// Slot is a slot that the scheduler has granted, or a request for one.
type Slot struct {
	RequestID string    `json:"requestId"`
	ID        string    `json:"id"`
	Node      string    `json:"node"`
	Requestor string    `json:"requestor"`
	RunID     string    `json:"runId"`
	GrantedAt time.Time `json:"grantedAt"`
	Created   time.Time `json:"created"`
	// Kind is that of the holder, empty of a maintenance. WorkflowID is empty if it follows from node and requestor.
	Kind       string `json:"kind,omitempty"`
	WorkflowID string `json:"workflowId,omitempty"`
}

// Execution is what Temporal says of one chain of runs.
type Execution struct {
	RunID   string
	Running bool
	// Unknown: it is not found, and so young that it would have to be.
	Unknown bool
	// Status is the workflow's status in Temporal; "gone" where there is no such run any more.
	Status    string
	StartedAt time.Time
	// EndedBy is when a chain that does not run had ended at the latest; zero if that is not known.
	EndedBy time.Time
	// Attempt counts the attempts of the workflow task that is pending, if one is.
	Attempt int
}

// Maintenance is a running maintenance with what it says of itself.
type Maintenance struct {
	WorkflowID, RunID string
	Node              string
	// Asked: it was asked; Unanswered is why there is no answer.
	Asked      bool
	Unanswered string
	// Ended: it says that it has come to its end.
	Ended bool
	// Wants: it asks for a slot or holds one, under RequestID.
	Wants     bool
	RequestID string
	Granted   *time.Time
	// Phase and what follows are known of those that hold a slot.
	Phase string
	Since time.Time
	// AwaitsNode: it adopts a replacement of its node, at most until a deadline.
	AwaitsNode bool
}

// Requests are the EvictionRequests that one run has filed.
type Requests struct {
	Node, WorkflowID, RunID string
	Count                   int
}

// Bounds of a report, which has to fit in a Temporal payload: the first rows, and the count of the rest. The commands of a next step may be
// longer than texts are: half a command helps nobody.
const (
	MaxFindings = 300
	MaxNotes    = 100
	maxText     = 400
)

// Evaluation is what one look at everything found.
type Evaluation struct {
	At       time.Time `json:"at"`
	Looked   Looked    `json:"looked"`
	Findings []Finding `json:"findings,omitempty"`
	More     int       `json:"more,omitempty"`
	// Notes are worth knowing and no inconsistencies.
	Notes     []Finding `json:"notes,omitempty"`
	MoreNotes int       `json:"moreNotes,omitempty"`
	// Missing are nodes that were asked about, of which nothing is known.
	Missing []Missing `json:"missing,omitempty"`
}

// Missing is a node that does not exist, and that no maintenance and no slot is of.
type Missing struct {
	Node string `json:"node"`
	// Suggestion names nodes that are spelled alike.
	Suggestion string `json:"suggestion,omitempty"`
}

// Looked counts what was looked at.
type Looked struct {
	Nodes        int `json:"nodes"`
	Marked       int `json:"marked"`
	Maintenances int `json:"maintenances"`
	Holders      int `json:"holders"`
	Pending      int `json:"pending"`
}

// Healed is a finding that is no more, and what was done about it.
type Healed struct {
	Finding
	At time.Time `json:"at"`
}

// Report is what the doctor returns.
type Report struct {
	At      time.Time `json:"at"`
	Fix     bool      `json:"fix,omitempty"`
	By      string    `json:"by,omitempty"`
	Comment string    `json:"comment,omitempty"`
	// Nodes are those that it was restricted to.
	Nodes []string `json:"nodes,omitempty"`
	// Lost are the Temporal namespaces that doctor was told to regard as lost.
	Lost []string `json:"lost,omitempty"`
	// Missing are those of Nodes that do not exist.
	Missing []Missing `json:"missing,omitempty"`
	Looked  Looked    `json:"looked"`
	// Findings are what is inconsistent now, in two looks one after the other; of a doctor that heals, what is left.
	Findings []Finding `json:"findings"`
	More     int       `json:"more,omitempty"`
	Healed   []Healed  `json:"healed,omitempty"`
	// MoreHealed counts further healed findings; the workflow history has them all.
	MoreHealed int       `json:"moreHealed,omitempty"`
	Notes      []Finding `json:"notes,omitempty"`
	MoreNotes  int       `json:"moreNotes,omitempty"`
}

// Count counts all findings, those beyond the listed included.
func (r Report) Count() int { return len(r.Findings) + r.More }

// Fixable counts the listed findings that can be healed without a person.
func (r Report) Fixable() int {
	n := 0
	for _, f := range r.Findings {
		if f.Fix != "" {
			n++
		}
	}
	return n
}

// Delivery is a workflow that notifies a channel or keeps an audit record.
type Delivery struct {
	WorkflowID, RunID string
	// Since is when it began, or was GivenUp.
	Since   time.Time
	GivenUp bool
	// Attempts counts those of the message that is under way, Error says why the last of them failed.
	Attempts int
	Error    string
}
