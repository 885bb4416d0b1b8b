package call

import (
	"drydock/workflows/testdata/code/v0.1.0/activities/checks"
	"drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock/workflows/testdata/code/v0.1.0/activities/delivery"
	"drydock/workflows/testdata/code/v0.1.0/activities/drain"
	"drydock/workflows/testdata/code/v0.1.0/activities/execution"
	"drydock/workflows/testdata/code/v0.1.0/activities/node"
	"drydock/workflows/testdata/code/v0.1.0/activities/policy"
	"drydock/workflows/testdata/code/v0.1.0/activities/preflight"
	"drydock/workflows/testdata/code/v0.1.0/activities/settings"
)

var Nodes *node.Activities

var Drains *drain.Activities

var Cluster *cluster.Activities

var Executions *execution.Activities

var Settings *settings.Activities

var Preflights *preflight.Activities

var Checks *checks.Activities

var Deliveries *delivery.Activities

var Policies *policy.Activities
