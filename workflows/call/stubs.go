package call

import (
	"drydock/activities/checks"
	"drydock/activities/cluster"
	"drydock/activities/delivery"
	"drydock/activities/doctor"
	"drydock/activities/drain"
	"drydock/activities/execution"
	"drydock/activities/health"
	"drydock/activities/lockstep"
	"drydock/activities/node"
	"drydock/activities/plan"
	"drydock/activities/policy"
	"drydock/activities/preflight"
	"drydock/activities/profile"
	"drydock/activities/settings"
	"drydock/activities/windows"
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
