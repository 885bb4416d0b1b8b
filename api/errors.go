package api

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
	// ErrorMarkUnconfirmed: the history of the holder whose mark was to be taken off as an orphan's does not say that it holds the node.
	ErrorMarkUnconfirmed = "MarkUnconfirmed"
	// ErrorJobsRun: what a maintenance that has ended left on its node still runs, so the node must not be released.
	ErrorJobsRun = "JobsRun"
	// ErrorMissingPermission: the worker's Kubernetes account may not do this; no retry heals that.
	ErrorMissingPermission = "MissingPermission"
	// ErrorNoScheduler: the scheduler does not run, and nobody starts it.
	ErrorNoScheduler = "NoScheduler"
	// ErrorWorkerStopping: the activity gave up its worker, and goes on elsewhere at once.
	ErrorWorkerStopping = "WorkerStopping"
	// ErrorRestored: the node records a release that Temporal's history lacks, so Temporal was restored from a backup.
	ErrorRestored = "Restored"
	// ErrorForeignCaller: what called the activity is no workflow of the worker's that may.
	ErrorForeignCaller = "ForeignCaller"
)

// ErrorUndeliverable is the type of the error of a message that cannot be delivered before somebody changes the
// configuration or the receiver.
const ErrorUndeliverable = "Undeliverable"

// Types of the errors a maintenance ends with.
const (
	// ErrorInvalidSpec: the input is wrong; the message names every field that is.
	ErrorInvalidSpec = "InvalidSpec"
	// ErrorConflict: the same requestor already runs a different maintenance of the node.
	ErrorConflict = "Conflict"
	// ErrorNodeNotFound: there never was a node of that name.
	ErrorNodeNotFound = "NodeNotFound"
	// ErrorNotDrained: the escalation's rung "fail" was taken, and the node is back in service.
	ErrorNotDrained = "NotDrained"
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

// Types of the errors of updates that are rejected although nothing is wrong with their message; their texts say why.
const (
	// ErrorNothingToDo: what the message asks for has happened already.
	ErrorNothingToDo = "NothingToDo"
	// ErrorReceived: a message with its ID was received before, and what became of that one counts.
	ErrorReceived = "Received"
)

// ErrorNotAMaintenance is the type of the error of what is to tell, or to record, what happened to a maintenance, and
// refers to something that is none of this worker's, or that nothing is known of any more.
const ErrorNotAMaintenance = "NotAMaintenance"

// ErrorOtherWindows is the type of the error of a worker whose windows are not the wanted ones: another worker has them.
const ErrorOtherWindows = "OtherWindows"
