package api

// EventReason is the reason of a Kubernetes Event on a node.
type EventReason string

// NodeEvent is an Event that Drydock records on nodes.
type NodeEvent struct {
	Reason EventReason
	// Meaning is when it is recorded.
	Meaning string
}

// NodeEvents are the Events on nodes of maintenances, of the doctor and of profiles: docs/reference/maintenance.md lists them. Health checks have
// reasons of their own, and channels of kind kubernetes the states and notices.
var NodeEvents []NodeEvent

func nodeEvent(reason EventReason, meaning string) EventReason {
	NodeEvents = append(NodeEvents, NodeEvent{reason, meaning})
	return reason
}

// The Events of maintenances.
var (
	EventStarted            = nodeEvent("MaintenanceStarted", "the node is marked and cordoned")
	EventCordoned           = nodeEvent("MaintenanceCordoned", "plans share the maintenance: the node is cordoned, and not drained yet")
	EventDraining           = nodeEvent("MaintenanceDraining", "plans share the maintenance: the node is drained as far as they have come")
	EventReady              = nodeEvent("MaintenanceReady", "the node is ready for its requestor")
	EventRequestorFailed    = nodeEvent("MaintenanceRequestorFailed", "the requestor failed: the node stays out of service until somebody decides")
	EventValidating         = nodeEvent("MaintenanceValidating", "the node is validated before it returns to production")
	EventIncomplete         = nodeEvent("MaintenanceIncomplete", "the validation or a hook failed: the node stays out of service until somebody decides")
	EventCompleted          = nodeEvent("MaintenanceCompleted", "the maintenance has ended, and the node is back")
	EventCancelled          = nodeEvent("MaintenanceCancelled", "the maintenance was cancelled or denied, and the node is given back")
	EventFailed             = nodeEvent("MaintenanceFailed", "the maintenance has failed, and the node is given back")
	EventNodeGone           = nodeEvent("MaintenanceNodeGone", "the maintenance has ended because its node was deleted")
	EventEscalated          = nodeEvent("MaintenanceEscalated", "a rung of the escalation was taken")
	EventSLAExpired         = nodeEvent("SLAExpired", "the node was not empty in the time that was agreed")
	EventGivenBack          = nodeEvent("GivenBack", "the node did not empty, and is back in service until the next attempt")
	EventSlotLost           = nodeEvent("SlotLost", "the scheduler knows of no slot of the maintenance, which asks again")
	EventReset              = nodeEvent("MaintenanceReset", "the workflow was reset, and holds the node anew")
	EventCordonRestored     = nodeEvent("CordonRestored", "somebody made the node schedulable, and it is cordoned again")
	EventCordonContested    = nodeEvent("CordonContested", "somebody makes the node schedulable again and again, and it is cordoned no more")
	EventMarkRestored       = nodeEvent("MarkRestored", "somebody took the mark off the node, and it is marked again")
	EventMarkDiffers        = nodeEvent("MarkDiffers", "the mark says something else than the maintenance's history: what differs is left as it is")
	EventReplacementAdopted = nodeEvent("ReplacementAdopted", "a node of this name was created anew, and is held as the one before")
	EventPodArrived         = nodeEvent("PodArrived", "a pod came to the node while it was held")
	EventStillAnswers       = nodeEvent("StillAnswers", "the node answers though its work has proven that it is off: it is not tainted as out of service")
	EventOutOfServiceOver   = nodeEvent("OutOfServiceExpired", "the time is over in which the pods and volumes of a node that is off were to be gone")
	EventCameBack           = nodeEvent("CameBack", "a node that is tainted as out of service answers again")
	EventReclaimed          = nodeEvent("MaintenanceReclaimed", "the workflow does not run any more: its node is released")
	EventOrphaned           = nodeEvent("MaintenanceOrphaned", "the workflow does not run any more: its node is left as it is")
	EventRestored           = nodeEvent("MaintenanceRestored", "Temporal does not know that the maintenance has given the node back, as after its restore to an older state: somebody has to decide")
)

// The Events of the doctor, and of profiles: those of maintenance-controller.
var (
	EventHealed         = nodeEvent("HealedByDoctor", "`drydock doctor --fix` has changed something on the node")
	EventProfileChanged = nodeEvent("ChangedMaintenanceState", "a [profile](#profiles) has taken the node to another state")
	EventProfileFailed  = nodeEvent("ChangeMaintenanceStateFailed", "a transition of a profile, or a check of one, has failed")
)

// EventOfPhase is the Event by which a maintenance shows that it is in a phase.
func EventOfPhase(phase Phase) EventReason { return EventReason("Maintenance" + string(phase)) }
