package health

import "time"

// Input is what a decision is made of.
type Input struct {
	Spec  Spec
	State State
	Now   time.Time
	// Waiting are the nodes whose remediation was decided on and has not begun yet.
	Waiting []string
}

// Decision is what is to be done. State is what the next one is made of: it holds what is ordered and begun here, so that
// deciding again at once has nothing new to say.
type Decision struct {
	State State
	// Begin are the nodes whose remediation is to begin now, the one that was ill first coming first.
	Begin []Begin
	// Withdrawn are those of Waiting that do not begin after all.
	Withdrawn []string
	// Orders are new for remediations that run. Each is to be repeated until a Progress has its Revision.
	Orders []Order
	// Anew: there were more nodes than are remembered, and there is room now: everything is to be seen anew.
	Anew bool
	// Events are to be announced, bounded.
	Events []Event
	// Wake is the first instant at which Decide may say something else by itself; zero is none. A timer that fires before it
	// only has to be set again.
	Wake time.Time
}

// Begin is a remediation that begins.
type Begin struct {
	Node         string
	UID          string
	ControlPlane bool
	// Step is the index of the step to begin with: not the first one where the node flaps.
	Step int
	// Since is since when the node is ill, by its conditions.
	Since time.Time
	Why   string
}

// Order is what a remediation is to do from now on. The latest revision counts.
type Order struct {
	Node     string `json:"node"`
	Revision int    `json:"revision"`
	// Step is the index of the step that should be at work. Steps before it stay as they are.
	Step int `json:"step"`
	// TimedOut are the indexes of steps whose objects are to be marked as timed out.
	TimedOut []int `json:"timedOut,omitempty"`
	// Old has the remediation objects marked that are older than 48 h.
	Old bool `json:"old,omitempty"`
	// Healthy ends the remediation: its objects are removed or its maintenance ended, the lease is given back, and the node's
	// confirmation taken off. It is never withdrawn.
	Healthy bool   `json:"healthy,omitempty"`
	Why     string `json:"why,omitempty"`
}

// Event is announced to people, once. Reason is one of the reasons; Node is empty if it is the check's.
type Event struct {
	Reason  string `json:"reason"`
	Node    string `json:"node,omitempty"`
	Text    string `json:"text"`
	Warning bool   `json:"warning,omitempty"`
}

// The reasons of events, as medik8s has them, and at the end those that it has none for.
const (
	EventEnabled              = "Enabled"
	EventDisabled             = "Disabled"
	EventDetectedUnhealthy    = "DetectedUnhealthy"
	EventRemediationCreated   = "RemediationCreated"
	EventRemediationRemoved   = "RemediationRemoved"
	EventRemediationSkipped   = "RemediationSkipped"
	EventNoTemplateLeft       = "NoTemplateLeft"
	EventInvalidNodeLabel     = "InvalidNodeLabel"
	EventStormStarted         = "StormRecoveryStarted"
	EventStormCooldownStarted = "StormRecoveryCooldownStarted"
	EventStormEnded           = "StormRecoveryEnded"

	EventRemediationEscalated = "RemediationEscalated"
	EventRemediationFailed    = "RemediationFailed"
	EventOldRemediation       = "OldRemediation"
	EventConfirmationNeeded   = "ConfirmationNeeded"
	EventOverlap              = "OverlappingHealthCheck"
)

// EventReasons are all of them.
var EventReasons = []string{
	EventEnabled, EventDisabled, EventDetectedUnhealthy, EventRemediationCreated, EventRemediationRemoved, EventRemediationSkipped,
	EventNoTemplateLeft, EventInvalidNodeLabel, EventStormStarted, EventStormCooldownStarted, EventStormEnded,
	EventRemediationEscalated, EventRemediationFailed, EventOldRemediation, EventConfirmationNeeded, EventOverlap,
}

// The reasons of the condition Disabled, as medik8s has them.
const (
	DisabledMachineHealthCheck = "ConflictingMachineHealthCheckDetected"
	DisabledTemplateNotFound   = "RemediationTemplateNotFound"
	DisabledTemplateInvalid    = "RemediationTemplateInvalid"
	// NotDisabled is the reason of the condition while it is False.
	NotDisabled = "NodeHealthCheckEnabled"
)
