package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

var stateDescs []*prometheus.Desc

// desc is one metric of the state.
func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	stateDescs = append(stateDescs, d)
	return d
}

// The metrics of the state: every worker shows the same, but for what holders do. What they say is in docs/reference/metrics.md, too.
var (
	descMaintenances = desc("maintenances", "Maintenances that run, by phase and by the first group of the configuration that their node is in. From Scheduled to "+
		"Releasing only the worker knows that watches the cluster for the scheduler, ten seconds late at most; the others tell 0.", "phase", "group")
	descPending = desc("pending_requests", "Requests of maintenances, and of remediations of control-plane nodes, that wait for a slot, by what keeps them from it: "+
		joined(schedule.Codes)+".", "reason")
	descOldest = desc("pending_oldest_seconds", "For how long the request has waited for a slot that has waited longest.")

	descSlots            = desc("slots_used", "Slots that maintenances hold.")
	descSlotsLimit       = desc("slots_limit", "Slots that there may be at a time (maxParallel, in nodes), +Inf if they are not limited"+whileUncounted)
	descRepairSlots      = desc("remediation_slots_used", "Slots that maintenances of health checks hold, beside those of all others.")
	descRepairSlotsLimit = desc("remediation_slots_limit", "Slots that there may be of those at a time (remediations, in nodes), +Inf if they are not limited"+whileUncounted)
	descControlPlane     = desc("control_plane_remediations", "Control-plane nodes that have the slot to be remediated: one at a time.")

	descGroupSlots      = desc("group_slots_used", "Slots that maintenances of a group's nodes hold; here a node counts in every group that it is in.", "group")
	descGroupSlotsLimit = desc("group_slots_limit", "Slots that a group may have at a time (its maxParallel, of one with groupBy all its parts together), +Inf if they are "+
		"not limited.", "group")

	descNodes            = desc("nodes", "Nodes of the cluster, as the scheduler saw them last: it looks while maintenances wait or run.")
	descUnavailable      = desc("nodes_unavailable", "Nodes that are unschedulable or not Ready for whatever reason, as the scheduler saw them last.")
	descUnavailableLimit = desc("nodes_unavailable_limit", "Nodes that may be out of service for a further one to go (maxUnavailable, in nodes), +Inf if that is not limited.")

	descPlans        = desc("plans", "Maintenance plans that run, by phase: "+joined([]api.PlanPhase{api.PlanRunning, api.PlanPaused})+".", "phase")
	descChecks       = desc("health_checks", "Health checks that run.")
	descRemediations = desc("health_remediations", "Remediations of nodes that health checks have begun and that go on.")
	descStrays       = desc("stray_marks", "Marks on nodes that are no running maintenance's, by kind: "+
		joined([]api.StrayKind{api.StrayOrphan, api.StrayUnknown, api.StrayMalformed, api.StrayForeign})+", the last of which are another Drydock's.", "kind")
	descFreezes    = desc("freezes", "Freezes in force: of grants alone, or of running maintenances too.", "scope")
	descRebuilding = desc("scheduler_rebuilding", "1 while the scheduler finds out who holds a slot, and grants none.")
	descTrouble    = desc("scheduler_trouble_seconds", "For how long the scheduler has failed to find out what it has to know before it grants; 0 where it does not.")

	descSuccess = desc("state_read_success", "1 where the scheduler and Temporal's lists could be asked when that was tried last.")
	descAge     = desc("state_age_seconds", "How old the counts of the scheduler and of Temporal's lists are.")
	descTook    = desc("state_read_seconds", "How long it took to ask for them.")
)

// whileUncounted ends the help of a limit that may be a percentage.
const whileUncounted = ", absent while it is a percentage of nodes that were not counted yet."

// joined are the values that a label may have.
func joined[V ~string](values []V) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = string(value)
	}
	return strings.Join(words, ", ")
}
