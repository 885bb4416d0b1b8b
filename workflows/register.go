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
	Preflights *activities.Preflights
}

// Register makes a worker able to run every workflow and every activity.
func Register(registry worker.Registry, a Activities) {
	registry.RegisterWorkflowWithOptions(NodeMaintenance, workflow.RegisterOptions{Name: NodeMaintenanceType})
	registry.RegisterWorkflowWithOptions(Scheduler, workflow.RegisterOptions{Name: SchedulerType})
	registry.RegisterWorkflowWithOptions(Preflight, workflow.RegisterOptions{Name: PreflightType})
	for _, methods := range []any{a.Nodes, a.Drains, a.Cluster, a.Executions, a.Preflights} {
		registry.RegisterActivity(methods)
	}
	registry.RegisterActivity(a.Settings.Prepare)
}
