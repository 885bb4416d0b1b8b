package api

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/rules/who"
)

// Phase is where a maintenance is.
type Phase string

// The phases, in the order a maintenance goes through them, and its ends.
const (
	AwaitingApproval Phase = "AwaitingApproval"
	Pending          Phase = "Pending"
	Scheduled        Phase = "Scheduled"
	Cordoning        Phase = "Cordoning"
	// Cordoned is that of a shared maintenance whose plans do not drain it yet.
	Cordoned        Phase = "Cordoned"
	WaitingForPods  Phase = "WaitingForPods"
	Draining        Phase = "Draining"
	Ready           Phase = "Ready"
	RequestorFailed Phase = "RequestorFailed"
	Validating      Phase = "Validating"
	Releasing       Phase = "Releasing"

	Completed Phase = "Completed"
	Failed    Phase = "Failed"
	Cancelled Phase = "Cancelled"
	NodeGone  Phase = "NodeGone"
)

// Ended reports whether the phase is an end.
func (p Phase) Ended() bool {
	return p == Completed || p == Failed || p == Cancelled || p == NodeGone
}

// WaitsForThaw begins Status.WaitingFor of a maintenance that a freeze holds.
const WaitsForThaw = "a thaw: "

// WaitsForSlot begins Status.WaitingFor of a maintenance that the scheduler has refused a slot so far; the reason follows.
const WaitsForSlot = "a slot: "

// Status is the answer to the status query of a maintenance.
type Status struct {
	WorkflowID string           `json:"workflowId"`
	RunID      string           `json:"runId"`
	Spec       spec.Maintenance `json:"spec"`
	Phase      Phase            `json:"phase"`
	Since      time.Time        `json:"since"`
	// CreatedAt is when its first run was started, and Starter who did that, as far as it is known.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	Starter   *Sender   `json:"starter,omitempty"`
	// WaitingFor says in words what has to happen next; empty while the maintenance itself is at work.
	WaitingFor string `json:"waitingFor,omitempty"`
	// Attempt counts the slots requested: it rises each time the node was given back.
	Attempt    int               `json:"attempt"`
	Requestors []RequestorStatus `json:"requestors"`
	Slot       *SlotStatus       `json:"slot,omitempty"`
	// NextAttemptAt is when a node that was given back is tried again.
	NextAttemptAt *time.Time `json:"nextAttemptAt,omitempty"`
	CordonedAt    *time.Time `json:"cordonedAt,omitempty"`
	// FoundCordoned: the node was unschedulable before the maintenance, and stays so.
	FoundCordoned bool           `json:"foundCordoned,omitempty"`
	StartedAt     *time.Time     `json:"startedAt,omitempty"`
	ReadyDeadline *time.Time     `json:"readyDeadline,omitempty"`
	Drain         *DrainProgress `json:"drain,omitempty"`
	// BlockersSeen are the pods that were in the way of a drain at some time, and until when; MoreBlockersSeen counts
	// those that are not kept.
	BlockersSeen     []record.Blocker `json:"blockersSeen,omitempty"`
	MoreBlockersSeen int              `json:"moreBlockersSeen,omitempty"`
	// EarlierPods and EarlierRungs are what earlier attempts did.
	EarlierPods  []EndedPod  `json:"earlierPods,omitempty"`
	EarlierRungs []RungTaken `json:"earlierRungs,omitempty"`
	// EarlierDrains counts the pods of their drains.
	EarlierDrains EarlierDrains `json:"earlierDrains,omitzero"`
	// Escalation are the rungs taken in the present attempt, and Force what they allow: empty, bypassBudget or kill.
	Escalation []RungTaken `json:"escalation,omitempty"`
	Force      string      `json:"force,omitempty"`
	// SkippedPods are those that an operator asked to leave on the node.
	SkippedPods []string `json:"skippedPods,omitempty"`
	// Consents are those that were given to the drain since it began.
	Consents []ConsentGiven `json:"consents,omitempty"`
	// Arrived are pods that came to the node after it was drained, the first of them; MoreArrived counts the rest.
	Arrived     []ArrivedPod `json:"arrived,omitempty"`
	MoreArrived int          `json:"moreArrived,omitempty"`
	Failure     string       `json:"failure,omitempty"`
	Transitions []Transition `json:"transitions"`
	// TransitionsDropped were left out after the first ones, where there are very many; the history has them all.
	TransitionsDropped int `json:"transitionsDropped,omitempty"`
	// Messages are the latest that arrived, with what became of each.
	Messages []Received `json:"messages,omitempty"`
	// States are those of NotifyMaintenance, and notices beside them, in the order in which they were published.
	States   []LifecycleState `json:"states,omitempty"`
	Approval *ApprovalStatus  `json:"approval,omitempty"`
	Hooks    []HookRun        `json:"hooks,omitempty"`
	// OpenHooks are those under way.
	OpenHooks  []string          `json:"openHooks,omitempty"`
	Validation *ValidationStatus `json:"validation,omitempty"`
	// Work are the latest attempts at the work that it names.
	Work []WorkRun `json:"work,omitempty"`
	// Tells are the channels that are notified of the maintenance, and Groups the groups of its node at the beginning,
	// where a channel wants to know them.
	Tells  []string `json:"tells,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Channels are the latest events that channels were to be told.
	Channels []ChannelEvent `json:"channels,omitempty"`
	// Lockstep is how far the plans of a shared maintenance let it go.
	Lockstep *LockstepStatus `json:"lockstep,omitempty"`
	// NodeUID is that of the node that is held, or was held last.
	NodeUID string `json:"nodeUid,omitempty"`
	// ReportsTo is the workflow that it reports to.
	ReportsTo *spec.ReportTo `json:"reportsTo,omitempty"`
	// Occupied are workflow IDs of the maintenance's own that something else had taken, and what was done about it.
	Occupied []string `json:"occupied,omitempty"`
}

// LockstepStatus is the NodeTarget that counts, as the status of a shared maintenance shows it. Plans and Targets have the
// first of each.
type LockstepStatus struct {
	Revision int               `json:"revision"`
	Targets  []drainplan.Entry `json:"targets,omitempty"`
	Last     bool              `json:"last,omitempty"`
	Plans    []string          `json:"plans,omitempty"`
}

// HandedOver is the outcome of an event that a channel's workflow knows of: what becomes of it, that one knows.
const HandedOver = "handed over"

// ChannelEvent is an event that a channel's workflow was sent.
type ChannelEvent struct {
	At      time.Time     `json:"at"`
	Channel string        `json:"channel"`
	Event   string        `json:"event"`
	State   notices.State `json:"state"`
	Outcome string        `json:"outcome"`
}

// LifecycleState is a state that a maintenance came into. ID and Sequence are those of its event.
type LifecycleState struct {
	ID       string        `json:"id"`
	Sequence int           `json:"sequence"`
	State    notices.State `json:"state"`
	At       time.Time     `json:"at"`
	Message  string        `json:"message,omitempty"`
	// Phase is the one that it was in.
	Phase Phase `json:"phase,omitempty"`
	// Blockers are the first things that the drain waited for, in words; MoreBlockers counts the rest.
	Blockers     []string `json:"blockers,omitempty"`
	MoreBlockers int      `json:"moreBlockers,omitempty"`
}

// Moment is its place among the others.
func (s LifecycleState) Moment() Moment { return Moment{Sequence: s.Sequence, At: s.At} }

// EarlierDrains counts the pods that the drains of earlier attempts were about, Evicted and Deleted those that they ended,
// and MorePods those of them that are not listed.
type EarlierDrains struct {
	Total    int `json:"total"`
	Evicted  int `json:"evicted"`
	Deleted  int `json:"deleted,omitempty"`
	MorePods int `json:"morePods,omitempty"`
	// Moves is as in DrainProgress.
	Moves record.PodMoves `json:"moves,omitzero"`
}

// Sender is who sent a message, or started a workflow, by the event of that in the history. Identity is what the sender's
// client calls itself, a claim, with what a worker began a maintenance for; Principal, "<type>:<name>", is who the server
// verified, absent if it verified nobody.
type Sender struct {
	Identity  string `json:"identity,omitempty"`
	Principal string `json:"principal,omitempty"`
}

// ApprovalStatus is who approved a maintenance, or denied it. By is what the message claims, Identity and Principal are its
// Sender's.
type ApprovalStatus struct {
	At        time.Time `json:"at"`
	By        string    `json:"by,omitempty"`
	Identity  string    `json:"identity,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Comment   string    `json:"comment,omitempty"`
	Denied    bool      `json:"denied,omitempty"`
}

// Who is who decided, in words.
func (a ApprovalStatus) Who() string { return who.Sent(a.By, a.Identity, a.Principal) }

// Verb is what was done, in words.
func (a ApprovalStatus) Verb() string {
	if a.Denied {
		return "denied"
	}
	return "approved"
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

// RungTaken is one step of the escalation that was taken. By is empty if its time had come.
type RungTaken struct {
	At  time.Time `json:"at"`
	Do  string    `json:"do"`
	By  string    `json:"by,omitempty"`
	Why string    `json:"why,omitempty"`
	// Planned: it was the next rung of the plan, and its turn is over.
	Planned bool `json:"planned,omitempty"`
}

// ConsentGiven is what somebody let a drain lose: of Pods, or of all pods where none are named.
type ConsentGiven struct {
	At             time.Time `json:"at"`
	By             string    `json:"by,omitempty"`
	Comment        string    `json:"comment,omitempty"`
	Force          bool      `json:"force,omitempty"`
	DeleteEmptyDir bool      `json:"deleteEmptyDir,omitempty"`
	Pods           []string  `json:"pods,omitempty"`
}

// What is what may be lost, in the input's words.
func (c ConsentGiven) What() string {
	var lost []string
	if c.Force {
		lost = append(lost, "force")
	}
	if c.DeleteEmptyDir {
		lost = append(lost, "deleteEmptyDir")
	}
	of := "all pods"
	if len(c.Pods) > 0 {
		of = strings.Join(c.Pods, ", ")
	}
	return strings.Join(lost, " and ") + " for " + of
}

// Lost is what may be lost, in words.
func (c ConsentGiven) Lost() string {
	switch {
	case c.Force && c.DeleteEmptyDir:
		return "pods that nobody re-creates, and emptyDir data"
	case c.Force:
		return "pods that nobody re-creates"
	default:
		return "emptyDir data"
	}
}

// RequestorStatus is one of those who share a maintenance.
type RequestorStatus struct {
	Name   string     `json:"name"`
	DoneAt *time.Time `json:"doneAt,omitempty"`
	// DoneID is the ID of the message by which it is done.
	DoneID string `json:"doneId,omitempty"`
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

// PlansGoOn says what becomes of the plans that share the maintenance where its node is given back before they are completed; empty
// where none do.
func (s *Status) PlansGoOn() string {
	switch {
	case s == nil || s.Lockstep == nil || len(s.Lockstep.Plans) == 0:
		return ""
	case len(s.Lockstep.Plans) == 1:
		return "plan " + s.Lockstep.Plans[0] + " goes on without the node"
	}
	const named = 5
	names := s.Lockstep.Plans
	text := strings.Join(names[:min(named, len(names))], ", ")
	if more := len(names) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "plans " + text + " go on without the node"
}

// Received is a message and what became of it: Effect says that in words. Identity is the Sender's, where it was looked for.
type Received struct {
	At       time.Time `json:"at"`
	ID       string    `json:"id,omitempty"`
	Name     string    `json:"name"`
	By       string    `json:"by,omitempty"`
	Identity string    `json:"identity,omitempty"`
	Comment  string    `json:"comment,omitempty"`
	Outcome  Outcome   `json:"outcome"`
	Effect   string    `json:"effect"`
}

// Who is who sent it, in words.
func (r Received) Who() string { return who.Sent(r.By, r.Identity, "") }

// Outcome is what became of a message.
type Outcome string

// Outcomes: Applied took effect, and Judged may take effect once the policy has been asked. Ignored did not fit at that
// moment, Refused could not be read; neither changed anything.
const (
	Applied Outcome = "applied"
	Judged  Outcome = "beingJudged"
	Ignored Outcome = "ignored"
	Refused Outcome = "refused"
)

// Result is what a maintenance returns when it ends.
type Result struct {
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
	Node       string `json:"node"`
	Requestor  string `json:"requestor"`
	Phase      Phase  `json:"phase"`
	Message    string `json:"message,omitempty"`
	// DoneID is as in MaintenanceReport; only of a maintenance whose input has reportTo.
	DoneID string `json:"doneId,omitempty"`
	// Moves is as in DrainProgress, of all attempts.
	Moves       record.PodMoves `json:"moves,omitzero"`
	CreatedAt   time.Time       `json:"createdAt,omitzero"`
	Transitions []Transition    `json:"transitions,omitempty"`
}
