package call

import (
	"drydock/activities"
)

// Stubs of the activities, to name them in ExecuteActivity; their dependencies are the worker's business.
var (
	Nodes      *activities.Nodes
	Drains     *activities.Drains
	Cluster    *activities.Cluster
	Executions *activities.Executions
	Settings   *activities.Settings
	Preflights *activities.Preflights
	Doctors    *activities.Doctors
	Checks     *activities.Checks
	Deliveries *activities.Notices
)
