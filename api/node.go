package api

// Keys on a node under maintenance.
const (
	HoldersAnnotation = "drydock.dev/holders"
	// GivenBackAnnotation records the last maintenances that gave the node back.
	GivenBackAnnotation = "drydock.dev/given-back"
	// ConditionsAnnotation says which maintenances show lifecycle conditions in the node's status, and which.
	ConditionsAnnotation = "drydock.dev/conditions"
	PhaseLabel           = "drydock.dev/phase"
)

// WorkflowLabel is on the Jobs that Drydock runs, and on their pods.
const WorkflowLabel = "drydock.dev/workflow-id"
