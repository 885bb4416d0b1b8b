package api

import (
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/schedule"
)

// NodeChange is what others did to a held node.
type NodeChange struct {
	RequestID  string `json:"requestId"`
	Missing    bool   `json:"missing,omitempty"`
	Unmarked   bool   `json:"unmarked,omitempty"`
	Uncordoned bool   `json:"uncordoned,omitempty"`
	// Arrived are pods that came to the node while it was out of service.
	Arrived *PodsArrived `json:"arrived,omitempty"`
}

// PodsArrived are pods that came to a node, the first of them; More counts the rest.
type PodsArrived struct {
	Pods []ArrivedPod `json:"pods"`
	More int          `json:"more,omitempty"`
}

// MaxArrived bounds lists of pods that arrived.
const MaxArrived = 20

// ArrivedPod is a pod, "namespace/name", and when it came to its node.
type ArrivedPod struct {
	Pod string    `json:"pod"`
	At  time.Time `json:"at"`
}

// SlotWanted is what a workflow that may hold a slot answers: what it asks for or holds, if anything.
type SlotWanted struct {
	SlotRequest
	// Wants is false for one that has no request at present, GrantedAt set where it holds the slot.
	Wants     bool       `json:"wants,omitempty"`
	GrantedAt *time.Time `json:"grantedAt,omitempty"`
	Ended     bool       `json:"ended,omitempty"`
}

// SlotRequest asks the scheduler for a node's slot. It is repeated until it is answered; ID makes it idempotent.
type SlotRequest struct {
	schedule.Request
	// RunID is the first run of the asking workflow's chain, which no reset and no continue-as-new changes.
	RunID string `json:"runId"`
}

// WorkflowID is that of the workflow that asks.
func (r SlotRequest) WorkflowID(cluster string) string {
	return HolderID(cluster, r.Kind, r.Node, r.Requestor)
}

// IsFirstRequest reports whether an ID "<run>/<attempt>" is that of a maintenance's first request: later ones follow when its node was
// given back.
func IsFirstRequest(id string) bool { return strings.HasSuffix(id, "/1") }

// SlotRelease gives a slot back or withdraws the request for it. By and Why are set, and recorded, where somebody else than the
// maintenance does so.
type SlotRelease struct {
	RequestID string `json:"requestId"`
	By        string `json:"by,omitempty"`
	Why       string `json:"why,omitempty"`
}

// SlotAnswer is what the scheduler says of a request: granted, still pending or refused.
type SlotAnswer struct {
	RequestID string        `json:"requestId"`
	Code      schedule.Code `json:"code,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	// OpensAt is when the windows that it waits for are open next, as far as that is known.
	OpensAt *time.Time `json:"opensAt,omitempty"`
	// Seen: a node that is missing was there before.
	Seen bool `json:"seen,omitempty"`
}

// MaxSlotsAsked bounds the requests of one SlotQuestion.
const MaxSlotsAsked = 1000

// SlotQuestion asks the scheduler which of the requests hold their slots.
type SlotQuestion struct {
	RequestIDs []string `json:"requestIds"`
}

// SlotsHeld is the answer: the requests that do, and those that are Waiting for their slots. While the scheduler is Rebuilding it does
// not know. Frozen are the freezes that hold running maintenances at that Revision.
type SlotsHeld struct {
	Held       []string `json:"held"`
	Waiting    []string `json:"waiting,omitempty"`
	Rebuilding bool     `json:"rebuilding,omitempty"`
	Frozen     []string `json:"frozen,omitempty"`
	Revision   int      `json:"revision,omitempty"`
}

// Of is the answer for one request.
func (s SlotsHeld) Of(requestID string) SlotHeld {
	return SlotHeld{
		Held: slices.Contains(s.Held, requestID), Waiting: slices.Contains(s.Waiting, requestID), Rebuilding: s.Rebuilding,
		Frozen: s.Frozen, Revision: s.Revision,
	}
}

// SlotHeld is the answer for one request.
type SlotHeld struct {
	Held       bool     `json:"held"`
	Waiting    bool     `json:"waiting,omitempty"`
	Rebuilding bool     `json:"rebuilding,omitempty"`
	Frozen     []string `json:"frozen,omitempty"`
	Revision   int      `json:"revision,omitempty"`
}

// FreezeNotice stops a running maintenance before its next side effect; empty Reasons let it go on.
//
// RequestID is the holder's: a notice to an earlier maintenance of the node concerns no later one. Revision counts the
// changes of freezes, so that a notice which comes after a later one holds nothing.
type FreezeNotice struct {
	RequestID string   `json:"requestId"`
	Revision  int      `json:"revision"`
	Reasons   []string `json:"reasons,omitempty"`
}

// SetLimits replaces the scheduler's limits. With IfRevision, the State.Revision that the sender saw, it is refused
// where somebody else changed them since.
type SetLimits struct {
	Limits     schedule.Limits `json:"limits"`
	By         string          `json:"by"`
	Comment    string          `json:"comment,omitempty"`
	IfRevision *int            `json:"ifRevision,omitempty"`
}

// FreezeRequest stops grants on behalf of By until the same By, or somebody with All, thaws.
type FreezeRequest struct {
	By      string `json:"by"`
	Reason  string `json:"reason,omitempty"`
	Running bool   `json:"running,omitempty"`
}

// ThawRequest takes back the freeze of By, or of everybody with All.
type ThawRequest struct {
	By      string `json:"by"`
	Comment string `json:"comment,omitempty"`
	All     bool   `json:"all,omitempty"`
}

// StateRequest selects a page of the scheduler's pending requests, in rank order. The zero value is the first page.
type StateRequest struct {
	Offset int `json:"offset,omitempty"`
	Limit  int `json:"limit,omitempty"`
}

// State is the scheduler's answer to the state query.
type State struct {
	Limits LimitsInForce `json:"limits"`
	// Revision counts the changes of the limits.
	Revision int `json:"revision"`
	// Rebuilding: nothing is granted until the holders are known again.
	Rebuilding bool `json:"rebuilding,omitempty"`
	// PreviousRun is the scheduler run whose state is still to be taken over.
	PreviousRun string            `json:"previousRun,omitempty"`
	Freezes     []schedule.Freeze `json:"freezes,omitempty"`
	Holders     List[Holder]      `json:"holders"`
	// Nodes and Unavailable count the cluster by what was last observed and by the slots granted since. UnavailableOthers are
	// the unavailable nodes that no maintenance holds, the first of them.
	Nodes             int                        `json:"nodes"`
	Unavailable       int                        `json:"unavailable"`
	UnavailableOthers []schedule.UnavailableNode `json:"unavailableOthers,omitempty"`
	ObservedAt        *time.Time                 `json:"observedAt,omitempty"`
	PendingAll        int                        `json:"pendingAll"`
	Pending           []PendingRequest           `json:"pending"`
	// NextOffset is where the next page begins; 0 after the last.
	NextOffset int `json:"nextOffset,omitempty"`
	// Decisions are the latest changes of limits and freezes, and slots reclaimed.
	Decisions []RecordedDecision `json:"decisions,omitempty"`
	// Strays are marks on nodes that are no holder's, the first of them; StraysAll counts them.
	Strays    []StrayMark `json:"strays,omitempty"`
	StraysAll int         `json:"straysAll,omitempty"`
	// Windows is what is known of the windows that limits and requests name; nil if nothing is, or nothing names one.
	Windows *WindowsKnown `json:"windows,omitempty"`
	// Trouble is what keeps the scheduler from finding out what it has to know before it grants.
	Trouble *Trouble `json:"trouble,omitempty"`
}

// HeldNodes counts the nodes that maintenances and profiles hold slots of.
func (s State) HeldNodes() int {
	held := map[string]bool{}
	for _, h := range s.Holders {
		if h.Kind != schedule.KindControlPlane {
			held[h.Node] = true
		}
	}
	return len(held)
}

// StrayKind is why a mark is no holder's.
type StrayKind string

// The kinds of stray marks. None is touched; a node that carries one counts as unavailable where it is.
const (
	// StrayForeign: the mark is that of another Temporal namespace, of another Drydock in it, or of none that is known.
	StrayForeign StrayKind = "foreign"
	// StrayMalformed: it cannot be read, or does not name a maintenance of this node.
	StrayMalformed StrayKind = "malformed"
	// StrayUnknown: its workflow is not found, and the mark is younger than what the namespace keeps.
	StrayUnknown StrayKind = "unknown"
	// StrayOrphan: its workflow has ended, and orphans are to be reported only.
	StrayOrphan StrayKind = "orphan"
)

// StrayMark is a mark on a node that is no holder's.
type StrayMark struct {
	Node       string    `json:"node"`
	Kind       StrayKind `json:"kind"`
	WorkflowID string    `json:"workflowId,omitempty"`
	RunID      string    `json:"runId,omitempty"`
	Requestor  string    `json:"requestor,omitempty"`
	Namespace  string    `json:"namespace,omitempty"`
	Since      time.Time `json:"since,omitzero"`
}

// Trouble is what fails again and again.
type Trouble struct {
	What  string    `json:"what"`
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
	// NextTry is when it is tried again.
	NextTry time.Time `json:"nextTry"`
}

// String is the trouble as a sentence.
func (t Trouble) String() string { return t.What + ": " + t.Why }

// LimitsInForce are the limits with who set them and why.
type LimitsInForce struct {
	schedule.Limits
	SetBy   string    `json:"setBy"`
	Comment string    `json:"comment,omitempty"`
	SetAt   time.Time `json:"setAt"`
}

// Holder holds a slot.
type Holder struct {
	schedule.Grant
	// RunID is the first run of the holding workflow's chain.
	RunID     string    `json:"runId"`
	GrantedAt time.Time `json:"grantedAt"`
	// Assumed: its workflow does not answer, and may hold the slot. It is granted nothing by that.
	Assumed bool `json:"assumed,omitempty"`
}

// WorkflowID is that of the workflow that holds.
func (h Holder) WorkflowID(cluster string) string {
	return HolderID(cluster, h.Kind, h.Node, h.Requestor)
}

// IsMarked reports whether the holder marks its node: a maintenance does.
func (h Holder) IsMarked() bool { return h.Kind == schedule.KindMaintenance }

// PendingRequest waits for a slot.
type PendingRequest struct {
	SlotRequest
	Code   schedule.Code `json:"code,omitempty"`
	Reason string        `json:"reason,omitempty"`
	// OpensAt is when the windows that it waits for are open next, as far as that is known.
	OpensAt *time.Time `json:"opensAt,omitempty"`
}

// RecordedDecision is one entry of the scheduler's own log.
type RecordedDecision struct {
	At   time.Time `json:"at"`
	By   string    `json:"by,omitempty"`
	What string    `json:"what"`
	Why  string    `json:"why,omitempty"`
}
