package metrics

import "github.com/prometheus/client_golang/prometheus"

var stateDescs []*prometheus.Desc

// desc is one metric of the state.
func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	stateDescs = append(stateDescs, d)
	return d
}

// The metrics of the state: every worker shows the same, but for what holders do.
var (
	descMaintenances = desc("maintenances", "Maintenances that run, by phase and by the first group of the configuration that their node is in.", "phase", "group")
	descPending      = desc("pending_requests", "Maintenances, and remediations of control-plane nodes, that wait for a slot, by what keeps them from it.", "reason")
	descOldest       = desc("pending_oldest_seconds", "For how long the maintenance has waited for a slot that has waited longest.")

	descSlots            = desc("slots_used", "Slots that maintenances hold.")
	descSlotsLimit       = desc("slots_limit", "Slots that there may be at a time (maxParallel), +Inf where they are not limited.")
	descRepairSlots      = desc("remediation_slots_used", "Slots that maintenances of health checks hold, beside those of all others.")
	descRepairSlotsLimit = desc("remediation_slots_limit", "Slots that there may be of those at a time (remediations), +Inf where they are not limited.")
	descControlPlane     = desc("control_plane_remediations", "Control-plane nodes that have the slot to be remediated: one at a time.")

	descGroupSlots      = desc("group_slots_used", "Slots that maintenances of a group's nodes hold.", "group")
	descGroupSlotsLimit = desc("group_slots_limit", "Slots that a group may have at a time, all its parts together, +Inf where they are not limited.", "group")

	descNodes            = desc("nodes", "Nodes of the cluster, as the scheduler saw them last: it looks while maintenances wait or run.")
	descUnavailable      = desc("nodes_unavailable", "Nodes that are out of service for whatever reason, as the scheduler saw them last.")
	descUnavailableLimit = desc("nodes_unavailable_limit", "Nodes that may be out of service for a further one to go (maxUnavailable), +Inf where that is not limited.")

	descPlans        = desc("plans", "Maintenance plans that run, by phase.", "phase")
	descChecks       = desc("health_checks", "Health checks that run.")
	descRemediations = desc("health_remediations", "Remediations of nodes that health checks have begun and that go on.")
	descStrays       = desc("stray_marks", "Marks on nodes that are no running maintenance's, by kind.", "kind")
	descFreezes      = desc("freezes", "Freezes in force: of grants alone, or of running maintenances too.", "scope")
	descRebuilding   = desc("scheduler_rebuilding", "1 while the scheduler finds out who holds a slot, and grants none.")
	descTrouble      = desc("scheduler_trouble_seconds", "For how long the scheduler has failed to find out what it has to know before it grants; 0 where it does not.")

	descSuccess = desc("state_read_success", "1 where the scheduler and Temporal's lists could be asked when that was tried last.")
	descAge     = desc("state_age_seconds", "How old the counts of the scheduler and of Temporal's lists are.")
	descTook    = desc("state_read_seconds", "How long it took to ask for them.")
)
