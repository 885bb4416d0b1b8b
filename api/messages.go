package api

import (
	"time"

	"drydock.dev/drydock/rules/spec"
)

// Message is the payload that every message to a maintenance can carry; each message uses the fields that its
// docstring names and refuses the others. By is a claim: the history shows the sender's identity beside it.
//
// ID tells one message from the next: one that comes twice is applied once, and its outcome stands in the status under
// that ID.
type Message struct {
	ID      string `json:"id,omitempty"`
	By      string `json:"by,omitempty"`
	Comment string `json:"comment,omitempty"`
}

// Said is who sent a message, and why.
func (m Message) Said() Message { return m }

// Done says that a requestor finished; if absent, Requestor is the maintenance's own. A Run that is not the present one
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

// Cancel undoes a maintenance that is not Ready yet; from Ready on it gives the node back only with Release, and changes
// nothing with BeforeReady: whoever works on the node finishes that.
type Cancel struct {
	Message
	Release     bool   `json:"release,omitempty"`
	BeforeReady bool   `json:"beforeReady,omitempty"`
	Run         string `json:"run,omitempty"`
}

// Extend moves the deadline of the ready timeout to For from now, where that is later; if absent, For is the
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

// Consent lets a Draining maintenance lose what it was not asked to: with Force the pods that nobody re-creates, with
// DeleteEmptyDir the data of emptyDir volumes; where Pods, "namespace/name", are named, theirs only. By and Comment have to
// be there.
type Consent struct {
	Message
	Force          bool     `json:"force,omitempty"`
	DeleteEmptyDir bool     `json:"deleteEmptyDir,omitempty"`
	Pods           []string `json:"pods,omitempty"`
	Run            string   `json:"run,omitempty"`
}

// Reschedule moves the time before which a maintenance does not begin, for as long as it waits for that.
type Reschedule struct {
	Message
	NotBefore time.Time `json:"notBefore"`
	Run       string    `json:"run,omitempty"`
}

// Simple is the payload of retry, drained, approve, deny, validated, validation-failed and retry-now. retry-now ends whatever backoff a maintenance is in:
// of refused evictions while it drains, or of the next attempt after the node was given back.
type Simple struct {
	Message
	Run string `json:"run,omitempty"`
}

// Started records that the work on a Ready node has begun. With Claim it is refused where somebody else has begun, so that
// of two who would work on a node one does.
type Started struct {
	Message
	Claim bool   `json:"claim,omitempty"`
	Run   string `json:"run,omitempty"`
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

// ReportTo names the workflow that a maintenance or a plan reports to from now on, and asks it for a report now, which has the message's ID
// (MaintenanceReport, PlanReport). It is refused where that reports to another workflow, unless Replace is set: only one is to work on the
// node.
type ReportTo struct {
	Message
	Workflow string `json:"workflow"`
	Signal   string `json:"signal"`
	Replace  bool   `json:"replace,omitempty"`
	Run      string `json:"run,omitempty"`
}

// To is that workflow, as an input names it.
func (r ReportTo) To() spec.ReportTo { return spec.ReportTo{Workflow: r.Workflow, Signal: r.Signal} }

// PlanReport is the payload of the signal that a plan sends the workflow it reports to: when it ends, and when a report-to asks for it.
// Its maintenances report to the same workflow as the same signal: a report of theirs has node, and no plan.
type PlanReport struct {
	WorkflowID string `json:"workflowId"`
	// RunID is that of the plan's first run.
	RunID     string    `json:"runId"`
	Plan      string    `json:"plan"`
	Requestor string    `json:"requestor"`
	Phase     PlanPhase `json:"phase"`
	Since     time.Time `json:"since"`
	// Message says how far it is, or why it has ended.
	Message string `json:"message,omitempty"`
	// Maintenances are those of its own that run, unless they wait for a decision.
	Maintenances []NodeRun `json:"maintenances,omitempty"`
	// Answers is the ID of the report-to that asked for the report; empty if none did.
	Answers string `json:"answers,omitempty"`
}

// NodeRun is the maintenance of a node, by its first run.
type NodeRun struct {
	Node  string `json:"node"`
	RunID string `json:"runId"`
}

// MaintenanceReport is the payload of the signal that a maintenance sends the workflow it reports to: when its node becomes Ready or
// RequestorFailed, when it no longer is, when the maintenance ends, and when a report-to asks for it. Phase and Since are the present
// ones, so that the latest report is the one that counts.
type MaintenanceReport struct {
	WorkflowID string `json:"workflowId"`
	// RunID is that of the maintenance's first run: a message that names it reaches no later maintenance of the node.
	RunID     string    `json:"runId"`
	Node      string    `json:"node"`
	Requestor string    `json:"requestor"`
	Phase     Phase     `json:"phase"`
	Since     time.Time `json:"since"`
	// ReadyDeadline is until when the requestors may hold a Ready node; absent if for ever.
	ReadyDeadline *time.Time `json:"readyDeadline,omitempty"`
	// Message says what it waits for, or why it has failed.
	Message string `json:"message,omitempty"`
	// DoneID is the ID of the done by which the maintenance's own requestor is done; empty until then.
	DoneID string `json:"doneId,omitempty"`
	// Answers is the ID of the latest report-to; empty if none was sent since the report before.
	Answers string `json:"answers,omitempty"`
}
