package call

import (
	"reflect"
	"runtime"
	"strings"

	"drydock.dev/drydock/api"
)

// Watch is an activity that returns when something changes, and the type of the workflows that call it. It may be carried out
// twice at once: it reads, or writes what may be written twice.
type Watch struct {
	Workflow string
	Activity any
}

// Watches are all of them, those that a cluster has one of first. Workers begin those of a dead worker anew in this order; an
// activity that is missing here is begun anew after its heartbeat timeout. What changes a node, such as a drain, does not belong here.
func Watches() []Watch {
	return []Watch{
		{api.SchedulerType, Cluster.WatchCluster},
		{api.HealthCheckType, Health.WatchHealth},
		{api.ProfilesType, Profiles.EvaluateProfiles},
		{api.LockstepType, Lockstep.WatchShared},
		{api.NodeRemediationType, Health.WatchRemediation},
		{api.NodeRemediationType, Plans.AwaitEnds},
		{api.MaintenancePlanType, Plans.AwaitPlanNodes},
		{api.MaintenancePlanType, Plans.AwaitEnds},
		{api.PlanRunType, Plans.AwaitEnds},
	}
}

// ActivityType is the name under which the activity is registered: its method's.
func (w Watch) ActivityType() string {
	name := strings.TrimSuffix(runtime.FuncForPC(reflect.ValueOf(w.Activity).Pointer()).Name(), "-fm")
	return name[strings.LastIndex(name, ".")+1:]
}
