package api

import ()

// Workflow types.
const (
	NodeMaintenanceType = "NodeMaintenance"
	SchedulerType       = "Scheduler"
	PreflightType       = "Preflight"
	DoctorType          = "Doctor"
	NotificationType    = "Notification"
	AuditRecordType     = "AuditRecord"
)

// Messages to a maintenance, each as a signal and as an update of the same name, and its query.
const (
	MsgDone    = "done"
	MsgFailed  = "failed"
	MsgRetry   = "retry"
	MsgCancel  = "cancel"
	MsgExtend  = "extend"
	MsgStarted = "started"
	MsgDrained = "drained"
	MsgJoin    = "join"
	MsgLeave   = "leave"

	MsgEscalate = "escalate"
	MsgSkipPod  = "skip-pod"
	MsgRetryNow = "retry-now"

	MsgApprove          = "approve"
	MsgDeny             = "deny"
	MsgValidated        = "validated"
	MsgValidationFailed = "validation-failed"
	MsgHookDone         = "hook-done"
	MsgSkipHook         = "skip-hook"

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

	UpdateSetLimits = "set-limits"
	UpdateFreeze    = "freeze"
	UpdateThaw      = "thaw"

	QueryState = "state"
	// QuerySlotHeld asks whether a request holds its slot.
	QuerySlotHeld = "slot-held"
)
