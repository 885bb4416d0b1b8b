// Package workflows registers every workflow and activity; each workflow is a package below.
package workflows

import (
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/activities/delivery"
	doctoractivity "drydock.dev/drydock/activities/doctor"
	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/activities/execution"
	healthactivity "drydock.dev/drydock/activities/health"
	lockstepactivity "drydock.dev/drydock/activities/lockstep"
	"drydock.dev/drydock/activities/node"
	planactivity "drydock.dev/drydock/activities/plan"
	policyactivity "drydock.dev/drydock/activities/policy"
	preflightactivity "drydock.dev/drydock/activities/preflight"
	profileactivity "drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/activities/settings"
	windowsactivity "drydock.dev/drydock/activities/windows"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/auditrecord"
	"drydock.dev/drydock/workflows/doctor"
	"drydock.dev/drydock/workflows/health"
	"drydock.dev/drydock/workflows/inbox"
	"drydock.dev/drydock/workflows/lockstep"
	"drydock.dev/drydock/workflows/maintenance"
	"drydock.dev/drydock/workflows/notification"
	"drydock.dev/drydock/workflows/permissions"
	"drydock.dev/drydock/workflows/plan"
	"drydock.dev/drydock/workflows/planrun"
	"drydock.dev/drydock/workflows/preflight"
	"drydock.dev/drydock/workflows/profile"
	"drydock.dev/drydock/workflows/profilereport"
	"drydock.dev/drydock/workflows/profiletransition"
	"drydock.dev/drydock/workflows/remediation"
	"drydock.dev/drydock/workflows/scheduler"
	"drydock.dev/drydock/workflows/windows"
)

// Activities are the dependencies of all activities of a worker.
type Activities struct {
	Nodes      *node.Activities
	Drains     *drain.Activities
	Cluster    *cluster.Activities
	Executions *execution.Activities
	Settings   *settings.Activities
	Preflights *preflightactivity.Activities
	Doctors    *doctoractivity.Activities
	Checks     *checks.Activities
	Deliveries *delivery.Activities
	Policies   *policyactivity.Activities
	Plans      *planactivity.Activities
	Windows    *windowsactivity.Activities
	Lockstep   *lockstepactivity.Activities
	Health     *healthactivity.Activities
	Profiles   *profileactivity.Activities
}

// Interceptors are what every worker and replayer of the workflows has to run with.
func Interceptors() []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{&inbox.Interceptor{}}
}

// Register makes a worker able to run every workflow and every activity.
func Register(registry worker.Registry, a Activities) {
	RegisterWorkflows(registry)
	RegisterActivities(registry, a)
}

// RegisterActivities makes a worker able to run every activity.
func RegisterActivities(registry worker.ActivityRegistry, a Activities) {
	for _, methods := range []any{a.Nodes, a.Drains, a.Cluster, a.Executions, a.Preflights, a.Doctors, a.Checks, a.Deliveries, a.Policies, a.Plans, a.Windows, a.Lockstep, a.Health, a.Profiles} {
		registry.RegisterActivity(methods)
	}
	registry.RegisterActivity(a.Settings.Prepare)
	registry.RegisterActivity(a.Settings.Run)
}

// RegisterWorkflows makes a worker, or a replayer, able to run every workflow.
func RegisterWorkflows(registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}) {
	registry.RegisterWorkflowWithOptions(maintenance.NodeMaintenance, workflow.RegisterOptions{Name: api.NodeMaintenanceType})
	registry.RegisterWorkflowWithOptions(scheduler.Scheduler, workflow.RegisterOptions{Name: api.SchedulerType})
	registry.RegisterWorkflowWithOptions(preflight.Preflight, workflow.RegisterOptions{Name: api.PreflightType})
	registry.RegisterWorkflowWithOptions(permissions.Permissions, workflow.RegisterOptions{Name: api.PermissionsType})
	registry.RegisterWorkflowWithOptions(doctor.Doctor, workflow.RegisterOptions{Name: api.DoctorType})
	registry.RegisterWorkflowWithOptions(notification.Notification, workflow.RegisterOptions{Name: api.NotificationType})
	registry.RegisterWorkflowWithOptions(plan.MaintenancePlan, workflow.RegisterOptions{Name: api.MaintenancePlanType})
	registry.RegisterWorkflowWithOptions(planrun.MaintenancePlanRun, workflow.RegisterOptions{Name: api.PlanRunType})
	registry.RegisterWorkflowWithOptions(auditrecord.AuditRecord, workflow.RegisterOptions{Name: api.AuditRecordType})
	registry.RegisterWorkflowWithOptions(lockstep.Lockstep, workflow.RegisterOptions{Name: api.LockstepType})
	registry.RegisterWorkflowWithOptions(health.Check, workflow.RegisterOptions{Name: api.HealthCheckType})
	registry.RegisterWorkflowWithOptions(remediation.NodeRemediation, workflow.RegisterOptions{Name: api.NodeRemediationType})
	registry.RegisterWorkflowWithOptions(profile.Profiles, workflow.RegisterOptions{Name: api.ProfilesType})
	registry.RegisterWorkflowWithOptions(profiletransition.ProfileTransition, workflow.RegisterOptions{Name: api.ProfileTransitionType})
	registry.RegisterWorkflowWithOptions(profilereport.ProfileReport, workflow.RegisterOptions{Name: api.ProfileReportType})
	registry.RegisterWorkflowWithOptions(windows.Windows, workflow.RegisterOptions{Name: api.WindowsType})
}
