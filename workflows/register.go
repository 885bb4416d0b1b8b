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
	Doctors    *activities.Doctors
	Checks     *activities.Checks
	Notices    *activities.Notices
}

// Register makes a worker able to run every workflow and every activity.
func Register(registry worker.Registry, a Activities) {
	RegisterWorkflows(registry)
	for _, methods := range []any{a.Nodes, a.Drains, a.Cluster, a.Executions, a.Preflights, a.Doctors, a.Checks, a.Notices} {
		registry.RegisterActivity(methods)
	}
	registry.RegisterActivity(a.Settings.Prepare)
}

// RegisterWorkflows makes a worker, or a replayer, able to run every workflow.
func RegisterWorkflows(registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}) {
	registry.RegisterWorkflowWithOptions(NodeMaintenance, workflow.RegisterOptions{Name: NodeMaintenanceType})
	registry.RegisterWorkflowWithOptions(Scheduler, workflow.RegisterOptions{Name: SchedulerType})
	registry.RegisterWorkflowWithOptions(Preflight, workflow.RegisterOptions{Name: PreflightType})
	registry.RegisterWorkflowWithOptions(Doctor, workflow.RegisterOptions{Name: DoctorType})
	registry.RegisterWorkflowWithOptions(Notification, workflow.RegisterOptions{Name: NotificationType})
	registry.RegisterWorkflowWithOptions(AuditRecord, workflow.RegisterOptions{Name: AuditRecordType})
}
