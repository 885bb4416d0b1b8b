// Package record is the audit record of a maintenance: what it holds, what follows from it, and how it is shown.
package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Schema names the form of a record. Fields may be added under the same name; a change of what one means gets another.
const Schema = "drydock.dev/audit/v1"

// Record is what is kept of one maintenance when Temporal has forgotten it. A maintenance is identified by WorkflowID and
// RunID together: of two records with the same ones, and the same LastRunID, either can be dropped. The later one of several is of
// the end that holds.
type Record struct {
	Schema     string `json:"schema"`
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
	// LastRunID is the run that ended, where that is not the first. What ends a second time, after a reset, has a second record.
	LastRunID string `json:"lastRunId,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Node      string `json:"node"`
	// Plan is there where the record is that of a plan, which has no node.
	Plan *Plan `json:"plan,omitempty"`
	// Remediation is there where the record is that of a node's remediation by a health check.
	Remediation          *Remediation `json:"remediation,omitempty"`
	NodeUID              string       `json:"nodeUid,omitempty"`
	Requestor            string       `json:"requestor"`
	AdditionalRequestors []string     `json:"additionalRequestors,omitempty"`
	// Starter is who started it, as far as its history told.
	Starter *Sender `json:"starter,omitempty"`
	Owner   string  `json:"owner,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Ticket  string  `json:"ticket,omitempty"`
	// Type is planned or unplanned.
	Type string `json:"type,omitempty"`
	// Phase is the end, or where a maintenance is that has not ended.
	Phase   string `json:"phase,omitempty"`
	Failure string `json:"failure,omitempty"`
	// Attempts counts the slots that were requested.
	Attempts  int       `json:"attempts,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// AsOf is when the record was made of a maintenance that has not ended.
	AsOf time.Time `json:"asOf,omitzero"`
	// TerminatedBy is who terminated the workflow, where somebody did.
	TerminatedBy *Sender   `json:"terminatedBy,omitempty"`
	Approval     *Approval `json:"approval,omitempty"`
	Slot         *Slot     `json:"slot,omitempty"`
	Phases       []Phase   `json:"phases,omitempty"`
	// MorePhases were left out of the middle of Phases, where there are very many.
	MorePhases int     `json:"morePhases,omitempty"`
	States     []State `json:"states,omitempty"`
	Drain      *Drain  `json:"drain,omitempty"`
	// Blockers are the pods that kept the node from being empty.
	Blockers      []Blocker      `json:"blockers,omitempty"`
	MoreBlockers  int            `json:"moreBlockers,omitempty"`
	Escalations   []Escalation   `json:"escalations,omitempty"`
	Messages      []Message      `json:"messages,omitempty"`
	Hooks         []Hook         `json:"hooks,omitempty"`
	Work          []Work         `json:"work,omitempty"`
	Validation    []Check        `json:"validation,omitempty"`
	Notifications []Notification `json:"notifications,omitempty"`
	// Occupied are the workflow IDs of the maintenance's own that something else had taken, and what was done about it.
	Occupied []string `json:"occupied,omitempty"`
	// Specification is the maintenance's input with all defaults; a text where it is too long.
	Specification json.RawMessage `json:"specification,omitempty"`
	// LeftOut counts what was left out of the lists that have no counter of their own, by the list's name.
	LeftOut map[string]int `json:"leftOut,omitempty"`
	// Provenance is what the server vouched for when the record was written.
	Provenance *Provenance `json:"provenance,omitempty"`
	Link
}

// Provenance is what the server vouches for of the workflow that a record was read from.
type Provenance struct {
	// Runs counts the runs whose histories were read, the last one first.
	Runs int `json:"runs"`
	// Worker is the verified principal of the worker that wrote the record, where it answered workflow tasks of these runs.
	Worker string `json:"worker,omitempty"`
	// Claimed says why what the record says may be a claim; empty if the server vouches for all of it.
	Claimed []string `json:"claimed,omitempty"`
}

// Key is what no record of another end has.
func (r Record) Key() string { return cmp.Or(r.LastRunID, r.RunID) }

// Link is a record's place in the chain of the writer that wrote it. It says nothing of the maintenance.
type Link struct {
	// Writer identifies the chain, Number counts its records from 1.
	Writer string `json:"writer,omitempty"`
	Number int64  `json:"number,omitempty"`
	// Previous is the Hash of the record before it, empty for the first.
	Previous string `json:"previous,omitempty"`
	// Hash is the SHA-256 of the record without Hash and MAC, in hexadecimal digits; MAC the HMAC-SHA256 of the Hash,
	// where the writer has a key.
	Hash string `json:"hash,omitempty"`
	MAC  string `json:"mac,omitempty"`
}

// Sender is who sent a message, or started the maintenance: Identity is what the sender's client calls itself, Principal is
// who the server verified, if anybody.
type Sender struct {
	Identity  string `json:"identity,omitempty"`
	Principal string `json:"principal,omitempty"`
}

// Approval is who allowed a maintenance, or denied it. By is a claim, Identity and Principal are the Sender's.
type Approval struct {
	By        string    `json:"by,omitempty"`
	Identity  string    `json:"identity,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Comment   string    `json:"comment,omitempty"`
	At        time.Time `json:"at"`
	Denied    bool      `json:"denied,omitempty"`
}

// Slot is the slot that was requested last.
type Slot struct {
	RequestID   string    `json:"requestId"`
	RequestedAt time.Time `json:"requestedAt,omitzero"`
	GrantedAt   time.Time `json:"grantedAt,omitzero"`
}

// Phase is a change of phase, or, where the phase is that of the entry before, something noteworthy in it.
type Phase struct {
	Phase   string    `json:"phase"`
	At      time.Time `json:"at"`
	Message string    `json:"message,omitempty"`
}

// State is a lifecycle state of which channels were notified.
type State struct {
	ID       string    `json:"id"`
	Sequence int       `json:"sequence"`
	State    string    `json:"state"`
	At       time.Time `json:"at"`
	Message  string    `json:"message,omitempty"`
}

// Drain is how the node was emptied.
type Drain struct {
	// Evicted, Deleted and Total count pods: those deleted were not evicted.
	Evicted int `json:"evicted"`
	Deleted int `json:"deleted,omitempty"`
	Total   int `json:"total"`
	// SkippedPods are those that an operator left on the node.
	SkippedPods []string `json:"skippedPods,omitempty"`
	Pods        []Pod    `json:"pods,omitempty"`
	MorePods    int      `json:"morePods,omitempty"`
}

// Pod is a pod that left the node. How is one word, such as evicted or deleted.
type Pod struct {
	Pod string    `json:"pod"`
	UID string    `json:"uid,omitempty"`
	At  time.Time `json:"at"`
	How string    `json:"how"`
}

// Blocker is a pod, "namespace/name", that kept the node from being empty.
type Blocker struct {
	Pod string `json:"pod"`
	// Owner is who re-creates the pod, "Kind name"; empty for a bare pod.
	Owner   string    `json:"owner,omitempty"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	// Until is when it no longer was in the way; absent if it was until the drain ended.
	Until time.Time `json:"until,omitzero"`
}

// Escalation is a rung that was taken. By is empty if its time had come.
type Escalation struct {
	At  time.Time `json:"at"`
	Do  string    `json:"do"`
	By  string    `json:"by,omitempty"`
	Why string    `json:"why,omitempty"`
}

// Message is what somebody told the maintenance, and what became of it. By is what the sender claims to be, Identity what
// the sender's client calls itself, where that was looked for.
type Message struct {
	At       time.Time `json:"at"`
	Name     string    `json:"name"`
	By       string    `json:"by,omitempty"`
	Identity string    `json:"identity,omitempty"`
	Comment  string    `json:"comment,omitempty"`
	Effect   string    `json:"effect,omitempty"`
}

// Hook is a hook that was run: when says before or after what.
type Hook struct {
	Name    string    `json:"name"`
	When    string    `json:"when"`
	Outcome string    `json:"outcome"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"`
}

// Work is one attempt at the work that the worker did on the node. Output is an excerpt of what it wrote or was answered.
type Work struct {
	Name    string `json:"name"`
	Kind    string `json:"kind,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// At is when it began; EndedAt is absent if it had not ended.
	At      time.Time `json:"at"`
	EndedAt time.Time `json:"endedAt,omitzero"`
	Outcome string    `json:"outcome,omitempty"`
	Output  string    `json:"output,omitempty"`
	// Job is the Job, "namespace/name", and BootIDBefore the boot ID that the node had before.
	Job          string `json:"job,omitempty"`
	BootIDBefore string `json:"bootIdBefore,omitempty"`
}

// Check is a check of the node before it returned to production.
type Check struct {
	Name    string    `json:"name"`
	OK      bool      `json:"ok"`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// Notification is an event that was sent to a channel, or could not be.
type Notification struct {
	Channel string    `json:"channel"`
	Event   string    `json:"event"`
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
}

// Ended reports whether the maintenance has ended.
func (r Record) Ended() bool { return !r.EndedAt.IsZero() }

// beforeSlot are the phases in which nothing has been done to a node yet, and the end of those that failed there.
var beforeSlot = []string{"AwaitingApproval", "Pending", "Releasing", "Failed"}

// Refused reports whether the maintenance failed before it had a slot
func (r Record) Refused() bool {
	return r.Phase == "Failed" && r.Ended() && len(r.Phases) > 0 && r.MorePhases == 0 &&
		!slices.ContainsFunc(r.Phases, func(p Phase) bool { return !slices.Contains(beforeSlot, p.Phase) })
}

// Validate returns why a record cannot be kept: without its identity it cannot be told from another.
func (r Record) Validate() error {
	var problems []error
	if r.Schema != Schema {
		problems = append(problems, fmt.Errorf("schema: %q is not known to this version; want %q", r.Schema, Schema))
	}
	for _, required := range []struct{ field, value string }{
		{"workflowId", r.WorkflowID}, {"runId", r.RunID}, {"node", r.Subject()}, {"requestor", r.Requestor},
	} {
		if required.value == "" {
			problems = append(problems, fmt.Errorf("%s: is missing, and identifies the record", required.field))
		}
	}
	if r.CreatedAt.IsZero() {
		problems = append(problems, errors.New("createdAt: is missing"))
	}
	return errors.Join(problems...)
}

// Encode is the record as one line of JSON, without the line's end.
func (r Record) Encode() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the record of %s, run %s: %w", r.WorkflowID, r.RunID, err)
	}
	return line, nil
}

// Decode reads what Encode wrote. Fields that this version does not know are skipped: a newer one may have added them.
func Decode(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, fmt.Errorf("not an audit record: %w", err)
	}
	if err := r.Validate(); err != nil {
		return Record{}, fmt.Errorf("not an audit record: %w", err)
	}
	return r, nil
}

// Distinct leaves out the records of a maintenance after its first one: a writer that is not sure whether a record was
// written writes it again. Of several ends of a maintenance, which was reset after each but the last, the last one counts.
func Distinct(records []Record) []Record {
	type identity struct{ workflow, run string }
	places := make(map[identity]int, len(records))
	var distinct []Record
	for _, r := range records {
		id := identity{r.WorkflowID, r.RunID}
		switch at, known := places[id]; {
		case !known:
			places[id] = len(distinct)
			distinct = append(distinct, r)
		case distinct[at].Key() != r.Key() && r.EndedAt.After(distinct[at].EndedAt):
			distinct[at] = r
		}
	}
	return distinct
}
