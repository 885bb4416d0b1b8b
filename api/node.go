package api

// Keys on a node under maintenance.
const (
	HoldersAnnotation = "drydock.dev/holders"
	PhaseLabel        = "drydock.dev/phase"
)

// WorkflowLabel is on the Jobs that Drydock runs, and on their pods.
const WorkflowLabel = "drydock.dev/workflow-id"
