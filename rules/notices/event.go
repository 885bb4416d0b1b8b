// Package notices decides which events of a maintenance a channel is sent, and when: plain values in, plain values
// out.
package notices

import "time"

// State is what an event reports of a maintenance. The names are those of NVIDIA's NotifyMaintenance where it has
// one.
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

// The events of a maintenance plan.
const (
	PlanBegun       State = "PlanBegun"
	PlanCanaryWaits State = "PlanCanaryWaits"
	PlanPaused      State = "PlanPaused"
	PlanResumed     State = "PlanResumed"
	PlanStage       State = "PlanStage"
	PlanDrained     State = "PlanDrained"
	PlanEnded       State = "PlanEnded"
)

// The events of a health check and its remediations.
const (
	NodeUnhealthy        State = "NodeUnhealthy"
	RemediationBegun     State = "RemediationBegun"
	RemediationEscalated State = "RemediationEscalated"
	RemediationWaits     State = "RemediationWaits"
	RemediationFailed    State = "RemediationFailed"
	RemediationEnded     State = "RemediationEnded"
	HealthCheckDisabled  State = "HealthCheckDisabled"
	HealthCheckEnabled   State = "HealthCheckEnabled"
	HealthStorm          State = "HealthStorm"
	HealthStormEnded     State = "HealthStormEnded"
)

// states are all states and notices, each in words that read on after a node's name and a colon.
var states = []struct {
	state  State
	phrase string
}{
	{MaintenanceUnknown, "maintenance was asked for"},
	{MaintenanceScheduled, "maintenance is scheduled"},
	{MaintenanceStarted, "cordoned, the drain has begun"},
	{SLAExpired, "not empty in the agreed time, what is left may be removed by force"},
	{ObjectsDrained, "drained, maintenance may begin"},
	{Validating, "maintenance is done, the node is being validated"},
	{MaintenanceIncomplete, "maintenance is incomplete, the node stays out of service"},
	{MaintenanceEnded, "the end of the maintenance was asked for"},
	{MaintenanceComplete, "maintenance is complete, the node is back in service"},
	{MaintenanceCancelled, "maintenance is cancelled"},
	{AwaitingApproval, "maintenance waits for approval"},
	{ApprovalReminder, "maintenance still waits for approval"},
	{Escalated, "the drain was escalated"},
	{PlanBegun, "the plan has begun"},
	{PlanCanaryWaits, "the canary is done, and the plan waits for approval"},
	{PlanPaused, "the plan is paused"},
	{PlanResumed, "the plan goes on"},
	{PlanStage, "the plan is in another stage"},
	{PlanDrained, "all nodes of the plan are drained, maintenance may begin"},
	{PlanEnded, "the plan has ended"},
	{NodeUnhealthy, "the node is unhealthy"},
	{RemediationBegun, "the node is being remediated"},
	{RemediationEscalated, "the next step of the remediation has begun"},
	{RemediationWaits, "the node has recovered, and somebody has to confirm it"},
	{RemediationFailed, "the remediation has not healed the node, and somebody has to look at it"},
	{RemediationEnded, "the node has recovered, its remediation is removed"},
	{HealthCheckDisabled, "nothing is remediated before somebody changes what is wrong"},
	{HealthCheckEnabled, "nodes are remediated again"},
	{HealthStorm, "too many nodes are unhealthy, and no more are remediated"},
	{HealthStormEnded, "enough nodes are healthy again"},
}

// States lists every state and notice, in the order in which they are declared.
func States() []State {
	all := make([]State, len(states))
	for i, s := range states {
		all[i] = s.state
	}
	return all
}

// Phrase is the state in words; an unknown state is its own phrase.
func (s State) Phrase() string {
	for _, known := range states {
		if known.state == s {
			return known.phrase
		}
	}
	return string(s)
}

// Ends says that nothing follows a state.
func Ends(s State) bool { return s == MaintenanceComplete || s == MaintenanceCancelled }

// Lasts reports whether a maintenance stays in a state until its next event, so that the state can be sent
// repeatedly. The ends last for ever, and a notice is of a moment: both are sent once.
func Lasts(s State) bool {
	switch s {
	case AwaitingApproval, ApprovalReminder, Escalated, PlanBegun, PlanCanaryWaits, PlanPaused, PlanResumed, PlanStage, PlanDrained, PlanEnded,
		NodeUnhealthy, RemediationBegun, RemediationEscalated, RemediationWaits, RemediationFailed, RemediationEnded,
		HealthCheckDisabled, HealthCheckEnabled, HealthStorm, HealthStormEnded:
		return false
	}
	return !Ends(s)
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
	// Plan is the name of the maintenance plan that it is about, where it is about one; then there is no Node.
	Plan string `json:"plan,omitempty"`
	// HealthCheck is the name of the health check that it is about, where it is about one; Node is one of its nodes, or empty.
	HealthCheck string `json:"healthCheck,omitempty"`
	// Requestor is who requested the maintenance, Owner who is responsible for the node.
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

// Subject is what the event is about, in words: a node, a plan, or a health check.
func (e Event) Subject() string {
	switch {
	case e.Plan != "":
		return "plan " + e.Plan
	case e.HealthCheck != "" && e.Node == "":
		return "health check " + e.HealthCheck
	default:
		return e.Node
	}
}
