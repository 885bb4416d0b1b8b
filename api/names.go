// Package api is the contract: every workflow type, ID, message, payload, query, search attribute and key on a node. It
// holds no behaviour, so that anybody may import it.
package api

// Workflow types.
const (
	NodeMaintenanceType = "NodeMaintenance"
	SchedulerType       = "Scheduler"
	PreflightType       = "Preflight"
	DoctorType          = "Doctor"
	NotificationType    = "Notification"
	AuditRecordType     = "AuditRecord"
	MaintenancePlanType = "MaintenancePlan"
	// PlanRunType is what a schedule starts: one run of a recurring plan.
	PlanRunType = "MaintenancePlanRun"
	WindowsType = "Windows"
	// PermissionsType reports what the worker's account lacks for something that is about to be started.
	PermissionsType = "Permissions"
	// LockstepType decides for all plans of strategy allAtOnce in a cluster how far each node is drained.
	LockstepType = "Lockstep"
	// NexusOperationType maintains nodes for a caller by Nexus whose own operation works on them.
	NexusOperationType = "NexusOperation"
)

// Queries of a maintenance.
const (
	QueryStatus = "status"
	// QuerySlot is the little that a scheduler which begins anew asks of all maintenances.
	QuerySlot = "slot"
)

// Signals from the scheduler and from the drain to a maintenance.
const (
	SignalSlotGranted  = "slot-granted"
	SignalSlotPending  = "slot-pending"
	SignalSlotRefused  = "slot-refused"
	SignalNodeChanged  = "node-changed"
	SignalHold         = "hold"
	SignalDrainBlocked = "drain-blocked"
)

// SignalOwn begins the name of a signal by which a worker finds out who the server takes it for. Nobody reads it.
const SignalOwn = "own-principal"

// Signals to a Notification: SignalEvent says up to which Moment there is something to read, SignalCollect which event of
// which maintenance is to be collected.
const (
	SignalEvent   = "event"
	SignalCollect = "collect"
)

// Signals, updates and queries of the scheduler.
const (
	SignalSlotRequest = "slot-request"
	SignalSlotRelease = "slot-release"
	// SignalWindowsChanged comes from a worker whose windows are not those that the scheduler knows.
	SignalWindowsChanged = "windows-changed"

	UpdateSetLimits = "set-limits"
	UpdateFreeze    = "freeze"
	UpdateThaw      = "thaw"

	QueryState = "state"
	// QuerySummary asks for counts of what QueryState lists.
	QuerySummary = "summary"
	// QuerySlotsHeld asks which of some requests hold their slots.
	QuerySlotsHeld = "slots-held"
)

// DefaultTaskQueue is the task queue where the configuration names none.
const DefaultTaskQueue = "drydock"
