package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock/activities"
)

// Activities are the dependencies of all activities of a worker.
type Activities struct {
	Nodes      *activities.Nodes
	Drains     *activities.Drains
	Cluster    *activities.Cluster
	Executions *activities.Executions
	Settings   *activities.Settings
}

// Register makes a worker able to run every workflow and every activity.
func Register(registry worker.Registry, a Activities) {
	registry.RegisterWorkflowWithOptions(NodeMaintenance, workflow.RegisterOptions{Name: NodeMaintenanceType})
	registry.RegisterWorkflowWithOptions(Scheduler, workflow.RegisterOptions{Name: SchedulerType})
	for _, methods := range []any{a.Nodes, a.Drains, a.Cluster, a.Executions} {
		registry.RegisterActivity(methods)
	}
	registry.RegisterActivity(a.Settings.Prepare)
}
