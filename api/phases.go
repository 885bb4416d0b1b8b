package api

// Phases are all phases, in the order in which a maintenance goes through them, and its ends.
var Phases = []Phase{
	AwaitingApproval, Pending, Scheduled, Cordoning, Cordoned, WaitingForPods, Draining, Ready, RequestorFailed, Validating, Releasing,
	Completed, Failed, Cancelled, NodeGone,
}
