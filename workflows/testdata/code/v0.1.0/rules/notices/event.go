package notices

import (
	"slices"
	"time"
)

// State is what an event tells of a maintenance, in the words of NVIDIA's NotifyMaintenance where it has one.
type State string

// The states of NotifyMaintenance, in the order in which a maintenance goes through them.
const (
	MaintenanceUnknown    State = "MaintenanceUnknown"
	MaintenanceScheduled  State = "MaintenanceScheduled"
	MaintenanceStarted    State = "MaintenanceStarted"
	SLAExpired            State = "SLAExpired"
	ObjectsDrained        State = "ObjectsDrained"
	Validating            State = "Validating"
	MaintenanceIncomplete State = "MaintenanceIncomplete"
	MaintenanceEnded      State = "MaintenanceEnded"
	MaintenanceComplete   State = "MaintenanceComplete"
	MaintenanceCancelled  State = "MaintenanceCancelled"
)

// Notices that are not states: they tell of a moment, and the maintenance stays in the state it is in.
const (
	AwaitingApproval State = "AwaitingApproval"
	ApprovalReminder State = "ApprovalReminder"
	Escalated        State = "Escalated"
)

var phrases = map[State]string{
	MaintenanceUnknown:    "maintenance was asked for",
	MaintenanceScheduled:  "maintenance is scheduled",
	MaintenanceStarted:    "cordoned, the drain has begun",
	SLAExpired:            "not empty in the agreed time, what is left may be removed by force",
	ObjectsDrained:        "drained, maintenance may begin",
	Validating:            "maintenance is done, the node is being validated",
	MaintenanceIncomplete: "maintenance is incomplete, the node stays out of service",
	MaintenanceEnded:      "the end of the maintenance was asked for",
	MaintenanceComplete:   "maintenance is complete, the node is back in service",
	MaintenanceCancelled:  "maintenance is cancelled",
	AwaitingApproval:      "maintenance waits for approval",
	ApprovalReminder:      "maintenance still waits for approval",
	Escalated:             "the drain was escalated",
}

// States lists every state and notice, sorted.
func States() []State {
	var all []State
	for s := range phrases {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

// Ends says that nothing follows a state.
func Ends(s State) bool { return s == MaintenanceComplete || s == MaintenanceCancelled }

// Lasts says that a maintenance is in a state until its next event, so that it can be told again and again. The ends
// last for ever, and a notice is of a moment: both are told once.
func Lasts(s State) bool {
	return !Ends(s) && s != AwaitingApproval && s != ApprovalReminder && s != Escalated
}

// Event is one thing that happened to a maintenance.
type Event struct {
	// ID is the same whenever the event is sent again.
	ID string `json:"id"`
	// Sequence counts the events of one run of a maintenance.
	Sequence int       `json:"sequence"`
	State    State     `json:"state"`
	At       time.Time `json:"at"`
	Node     string    `json:"node"`
	// Requestor asked for the maintenance; Owner is who answers for the node.
	Requestor string `json:"requestor,omitempty"`
	Owner     string `json:"owner,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// Groups are the values of the scheduler's groups that the node is in.
	Groups []string `json:"groups,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Ticket string   `json:"ticket,omitempty"`
	// Type is planned or unplanned.
	Type    string `json:"type,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Message string `json:"message,omitempty"`
	// Blockers are the first things that the drain waits for, in words; MoreBlockers counts the rest.
	Blockers     []string `json:"blockers,omitempty"`
	MoreBlockers int      `json:"moreBlockers,omitempty"`
	WorkflowID   string   `json:"workflowId,omitempty"`
	RunID        string   `json:"runId,omitempty"`
}
