package call

import (
	"drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/activities/doctor"
	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/activities/lockstep"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/activities/windows"
)

// Stubs of the activities, to name them in ExecuteActivity; their dependencies are the worker's business.
var (
	Nodes      *node.Activities
	Drains     *drain.Activities
	Cluster    *cluster.Activities
	Executions *execution.Activities
	Settings   *settings.Activities
	Preflights *preflight.Activities
	Doctors    *doctor.Activities
	Checks     *checks.Activities
	Deliveries *delivery.Activities
	Policies   *policy.Activities
	Plans      *plan.Activities
	Windows    *windows.Activities
	Lockstep   *lockstep.Activities
	Health     *health.Activities
	Profiles   *profile.Activities
)
