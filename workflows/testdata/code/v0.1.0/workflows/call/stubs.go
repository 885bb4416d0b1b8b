package call

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/checks"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/delivery"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/drain"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/execution"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/node"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/policy"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/preflight"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/settings"
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
