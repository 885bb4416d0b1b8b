package api

import ()

// ErrorHookFailed is the type of the error of a hook that failed for good: another try would end the same way.
const ErrorHookFailed = "HookFailed"

// Types of the errors that workflows tell apart.
const (
	// ErrorNodeGone: the node does not exist (any more).
	ErrorNodeGone = "NodeGone"
	// ErrorNodeReplaced: another node has the name of the one that was held.
	ErrorNodeReplaced = "NodeReplaced"
	// ErrorNotHolder: the node does not carry the maintenance's mark, so the activity must not touch it.
	ErrorNotHolder = "NotHolder"
	// ErrorSlotNotHeld: the scheduler does not know that the maintenance holds its node's slot.
	ErrorSlotNotHeld = "SlotNotHeld"
	// ErrorHolderAlive: the holder whose mark was to be taken off as an orphan's runs.
	ErrorHolderAlive = "HolderAlive"
	// ErrorMissingPermission: the worker's Kubernetes account may not do this; no retry heals that.
	ErrorMissingPermission = "MissingPermission"
	// ErrorNoScheduler: the scheduler does not run, and nobody starts it.
	ErrorNoScheduler = "NoScheduler"
	// ErrorWorkerStopping: the activity gave up its worker, and goes on elsewhere at once.
	ErrorWorkerStopping = "WorkerStopping"
)

// Types of the errors a maintenance ends with.
const (
	// ErrorInvalidSpec: the input is wrong; the message names every field that is.
	ErrorInvalidSpec = "InvalidSpec"
	// ErrorConflict: the same requestor already runs a different maintenance of the node.
	ErrorConflict = "Conflict"
	// ErrorNodeNotFound: there never was a node of that name.
	ErrorNodeNotFound = "NodeNotFound"
	// ErrorMaintenanceFailed: the maintenance ended Failed for another reason.
	ErrorMaintenanceFailed = "MaintenanceFailed"
)

// ErrorPolicyRefused is the type of the error of a maintenance that the worker's policy refuses; the message names the
// rule, or the quota.
const ErrorPolicyRefused = "PolicyRefused"

// ErrorPreflightFailed is the type of the error of a maintenance that was to fail where something would stop its drain.
const ErrorPreflightFailed = "PreflightFailed"

// ErrorNotDelivered is the type of the error of a Notification that gave up on messages.
const ErrorNotDelivered = "NotDelivered"

// ErrorLimitsChanged is the type of the error of a set-limits whose IfRevision is out of date.
const ErrorLimitsChanged = "LimitsChanged"
