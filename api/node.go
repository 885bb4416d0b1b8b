package api

// Keys on a node under maintenance.
const (
	HoldersAnnotation = "drydock.dev/holders"
	PhaseLabel        = "drydock.dev/phase"
)
