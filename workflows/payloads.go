package workflows

import (
	"time"

	"drydock/activities"
	"drydock/workflows/notices"
	"drydock/workflows/record"
	"drydock/workflows/schedule"
	"drydock/workflows/spec"
	"drydock/workflows/validation"
)

// Phase is where a maintenance is.
type Phase string

// The phases, in the order a maintenance goes through them, and its ends.
const (
	AwaitingApproval Phase = "AwaitingApproval"
	Pending          Phase = "Pending"
	Scheduled        Phase = "Scheduled"
	Cordoning        Phase = "Cordoning"
	WaitingForPods   Phase = "WaitingForPods"
	Draining         Phase = "Draining"
	Ready            Phase = "Ready"
	RequestorFailed  Phase = "RequestorFailed"
	Validating       Phase = "Validating"
	Releasing        Phase = "Releasing"

	Completed Phase = "Completed"
	Failed    Phase = "Failed"
	Cancelled Phase = "Cancelled"
	NodeGone  Phase = "NodeGone"
)

// Ended tells whether the phase is an end.
func (p Phase) Ended() bool {
	return p == Completed || p == Failed || p == Cancelled || p == NodeGone
}

// Message is the payload that every message to a maintenance can carry; each message uses the fields that its
// docstring names and refuses the others. By is a claim: the history shows the sender's identity beside it.
type Message struct {
	By      string `json:"by,omitempty"`
	Comment string `json:"comment,omitempty"`
}

// Done says that a requestor finished; absent, Requestor is the maintenance's own. A Run that is not the present one
// belongs to an earlier maintenance of the node, and the message is ignored.
type Done struct {
	Message
	Requestor string `json:"requestor,omitempty"`
	Run       string `json:"run,omitempty"`
}

// FailedMessage says that a requestor's work failed: the node stays out until retry, done or cancel.
type FailedMessage struct {
	Message
	Requestor string `json:"requestor,omitempty"`
	Run       string `json:"run,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// Cancel undoes a maintenance that is not Ready yet; from Ready on it gives the node back only with Release.
type Cancel struct {
	Message
	Release bool   `json:"release,omitempty"`
	Run     string `json:"run,omitempty"`
}

// Extend moves the deadline of the ready timeout to For from now, where that is later; absent, For is the
// maintenance's readyTimeout.
type Extend struct {
	Message
	For spec.Duration `json:"for,omitzero"`
	Run string        `json:"run,omitempty"`
}

// Escalate takes the next rung of the escalation now, or the one that Do names, which need not be in the plan. Expect is
// the rung that the sender has seen to be the next one: where it is another by now, none is taken.
type Escalate struct {
	Message
	Do     string `json:"do,omitempty"`
	Expect string `json:"expect,omitempty"`
	Run    string `json:"run,omitempty"`
}

// SkipPod leaves a pod, "namespace/name", on the node: the drain neither evicts it nor waits for it.
type SkipPod struct {
	Message
	Pod string `json:"pod"`
	Run string `json:"run,omitempty"`
}

// Simple is the payload of retry, started, drained, approve, deny, validated, validation-failed and retry-now. retry-now ends whatever backoff a maintenance is in:
// of refused evictions while it drains, or of the next attempt after the node was given back.
type Simple struct {
	Message
	Run string `json:"run,omitempty"`
}

// HookMessage is the payload of hook-done, which ends a hook that waits for a signal, and of skip-hook, which goes on
// without a hook. With Failed, the hook has failed.
type HookMessage struct {
	Message
	Hook   string `json:"hook"`
	Failed bool   `json:"failed,omitempty"`
	Run    string `json:"run,omitempty"`
}

// Membership is the payload of join and leave.
type Membership struct {
	Message
	Requestor string `json:"requestor"`
}

// Status is the answer to the status query of a maintenance.
type Status struct {
	WorkflowID string           `json:"workflowId"`
	RunID      string           `json:"runId"`
	Spec       spec.Maintenance `json:"spec"`
	Phase      Phase            `json:"phase"`
	Since      time.Time        `json:"since"`
	// WaitingFor says in words what has to happen next; empty while the maintenance itself is at work.
	WaitingFor string `json:"waitingFor,omitempty"`
	// Attempt counts the slots asked for: it rises each time the node was given back.
	Attempt    int               `json:"attempt"`
	Requestors []RequestorStatus `json:"requestors"`
	Slot       *SlotStatus       `json:"slot,omitempty"`
	// NextAttemptAt is when a node that was given back is tried again.
	NextAttemptAt *time.Time     `json:"nextAttemptAt,omitempty"`
	CordonedAt    *time.Time     `json:"cordonedAt,omitempty"`
	StartedAt     *time.Time     `json:"startedAt,omitempty"`
	ReadyDeadline *time.Time     `json:"readyDeadline,omitempty"`
	Drain         *DrainProgress `json:"drain,omitempty"`
	// BlockersSeen are the pods that were in the way of a drain at some time, and until when; MoreBlockersSeen counts
	// those that are not kept.
	BlockersSeen     []record.Blocker `json:"blockersSeen,omitempty"`
	MoreBlockersSeen int              `json:"moreBlockersSeen,omitempty"`
	// EarlierPods and EarlierRungs are what earlier attempts did.
	EarlierPods  []activities.EndedPod `json:"earlierPods,omitempty"`
	EarlierRungs []RungTaken           `json:"earlierRungs,omitempty"`
	// Escalation are the rungs taken in the present attempt, and Force what they allow: empty, bypassBudget or kill.
	Escalation []RungTaken `json:"escalation,omitempty"`
	Force      string      `json:"force,omitempty"`
	// SkippedPods are those that an operator asked to leave on the node.
	SkippedPods []string     `json:"skippedPods,omitempty"`
	Failure     string       `json:"failure,omitempty"`
	Transitions []Transition `json:"transitions"`
	// TransitionsDropped were left out after the first ones, where there are very many; the history has them all.
	TransitionsDropped int `json:"transitionsDropped,omitempty"`
	// Messages are the latest that arrived, with what became of each.
	Messages []Received `json:"messages,omitempty"`
	// States are those of NotifyMaintenance, and notices beside them, in the order in which the outside was told.
	States   []LifecycleState `json:"states,omitempty"`
	Approval *ApprovalStatus  `json:"approval,omitempty"`
	Hooks    []HookRun        `json:"hooks,omitempty"`
	// OpenHooks are those under way.
	OpenHooks  []string          `json:"openHooks,omitempty"`
	Validation *ValidationStatus `json:"validation,omitempty"`
	// Channels are the latest events that channels were to be told.
	Channels []ChannelTold `json:"channels,omitempty"`
}

// ChannelTold is an event that a channel's workflow was given to tell.
type ChannelTold struct {
	At      time.Time     `json:"at"`
	Channel string        `json:"channel"`
	Event   string        `json:"event"`
	State   notices.State `json:"state"`
	Outcome string        `json:"outcome"`
}

// LifecycleState is a state that a maintenance came into. ID and Sequence are those of the event that tells of it.
type LifecycleState struct {
	ID       string        `json:"id"`
	Sequence int           `json:"sequence"`
	State    notices.State `json:"state"`
	At       time.Time     `json:"at"`
	Message  string        `json:"message,omitempty"`
}

// ApprovalStatus is who approved a maintenance, or denied it.
type ApprovalStatus struct {
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"`
	Comment string    `json:"comment,omitempty"`
	Denied  bool      `json:"denied,omitempty"`
}

// HookRun is a hook that was called. When is beforeCordon, afterDrain, beforeRelease or closing.
type HookRun struct {
	At      time.Time `json:"at"`
	Name    string    `json:"name"`
	When    string    `json:"when"`
	Outcome string    `json:"outcome"`
	By      string    `json:"by,omitempty"`
}

// ValidationStatus is where the validation of a node stands.
type ValidationStatus struct {
	State validation.State `json:"state"`
	// Results are those of the last look that is known.
	Results []validation.Result `json:"results,omitempty"`
	// Overruled: somebody declared the node validated whatever the looks said.
	Overruled bool `json:"overruled,omitempty"`
}

// RungTaken is one step of the escalation that was taken. By is empty where its time had come.
type RungTaken struct {
	At  time.Time `json:"at"`
	Do  string    `json:"do"`
	By  string    `json:"by,omitempty"`
	Why string    `json:"why,omitempty"`
	// Planned: it was the next rung of the plan, and its turn is over.
	Planned bool `json:"planned,omitempty"`
}

// RequestorStatus is one of those who share a maintenance.
type RequestorStatus struct {
	Name   string     `json:"name"`
	DoneAt *time.Time `json:"doneAt,omitempty"`
}

// SlotWanted is a maintenance's own word on its slot: what it asks for or holds, if anything.
type SlotWanted struct {
	SlotRequest
	// Wants is false for a maintenance that has no request at present, GrantedAt set where it holds the slot.
	Wants     bool       `json:"wants,omitempty"`
	GrantedAt *time.Time `json:"grantedAt,omitempty"`
	Ended     bool       `json:"ended,omitempty"`
}

// SlotStatus is the request for a slot, or the slot.
type SlotStatus struct {
	RequestID string     `json:"requestId"`
	GrantedAt *time.Time `json:"grantedAt,omitempty"`
}

// Transition is one change of phase.
type Transition struct {
	Phase   Phase     `json:"phase"`
	At      time.Time `json:"at"`
	Message string    `json:"message,omitempty"`
}

// Received is a message and what became of it.
type Received struct {
	At      time.Time `json:"at"`
	Name    string    `json:"name"`
	By      string    `json:"by,omitempty"`
	Comment string    `json:"comment,omitempty"`
	Effect  string    `json:"effect"`
}

// DrainProgress is how far a drain has come.
type DrainProgress = activities.DrainProgress

// Blocker is a pod that keeps a drain from ending, and why.
type Blocker = activities.Blocker

// Result is what a maintenance returns when it ends.
type Result struct {
	WorkflowID  string       `json:"workflowId"`
	RunID       string       `json:"runId"`
	Node        string       `json:"node"`
	Requestor   string       `json:"requestor"`
	Phase       Phase        `json:"phase"`
	Message     string       `json:"message,omitempty"`
	Transitions []Transition `json:"transitions,omitempty"`
}

// SlotRequest asks the scheduler for a node's slot. It is repeated until it is answered; ID makes it idempotent.
type SlotRequest struct {
	schedule.Request
	RunID string `json:"runId"`
}

// SlotRelease gives a slot back or withdraws the request for it. By and Why are set where it is not the maintenance that
// does so, and put it on record.
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
	// Seen tells, where a node is missing, that it was there before.
	Seen bool `json:"seen,omitempty"`
}

// NodeChange tells a holder what happened to its node while it held it.
type NodeChange = activities.HolderChange

// Hold stops a running maintenance before its next side effect; empty Reasons let it go on.
type Hold struct {
	Reasons []string `json:"reasons,omitempty"`
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
	PreviousRun string                  `json:"previousRun,omitempty"`
	Freezes     []schedule.Freeze       `json:"freezes,omitempty"`
	Holders     activities.List[Holder] `json:"holders"`
	// Nodes and Unavailable count the cluster when it was last observed.
	Nodes       int              `json:"nodes"`
	Unavailable int              `json:"unavailable"`
	ObservedAt  *time.Time       `json:"observedAt,omitempty"`
	PendingAll  int              `json:"pendingAll"`
	Pending     []PendingRequest `json:"pending"`
	// NextOffset is where the next page begins; 0 after the last.
	NextOffset int `json:"nextOffset,omitempty"`
	// Decisions are the latest changes of limits and freezes, and slots reclaimed.
	Decisions []RecordedDecision `json:"decisions,omitempty"`
}

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
	RunID     string    `json:"runId"`
	GrantedAt time.Time `json:"grantedAt"`
}

// PendingRequest waits for a slot.
type PendingRequest struct {
	SlotRequest
	Code   schedule.Code `json:"code,omitempty"`
	Reason string        `json:"reason,omitempty"`
}

// RecordedDecision is one entry of the scheduler's own log.
type RecordedDecision struct {
	At   time.Time `json:"at"`
	By   string    `json:"by,omitempty"`
	What string    `json:"what"`
	Why  string    `json:"why,omitempty"`
}
