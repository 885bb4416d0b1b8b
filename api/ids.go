package api

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
)

const (
	maintenancePrefix  = "node-maintenance"
	schedulerID        = "drydock-scheduler"
	preflightPrefix    = "preflight"
	permissionsPrefix  = "permissions"
	doctorID           = "drydock-doctor"
	notificationPrefix = "notification"
	auditPrefix        = "audit-record"
	planPrefix         = "maintenance-plan"
	planRunPrefix      = "maintenance-plan-run"
	windowsPrefix      = "windows"

	nexusOperationPrefix = "nexus-operation"
	lockstepID           = "drydock-plans"
)

// TaskQueue is the task queue of a cluster; an empty cluster has no prefix.
func TaskQueue(cluster, name string) string { return inCluster(cluster, name) }

// Lanes are the task queues, beside its own, that a worker takes activities from which may be thousands and last for
// weeks: those of one never keep those of another, nor releases, from a slot.
var Lanes = []Lane{LaneDrains, LanePreflights, LaneMessages}

// Lane is one of them.
type Lane string

// The lanes: LaneDrains empties nodes, LanePreflights waits until nothing would stop a drain, LaneMessages notifies
// channels.
const (
	LaneDrains     Lane = "drains"
	LanePreflights Lane = "preflights"
	LaneMessages   Lane = "messages"
)

// LaneBridge is the one that workers take nothing from: the bridge does, which shows workflows in the Kubernetes objects that asked for
// them.
const LaneBridge Lane = "bridge"

// ReconcileObject is the activity of the bridge that has it look at an object (spec.Object) whose workflow has changed. It returns when
// the object shows the change, and a second after it began at the earliest: a workflow calls it again only then.
const ReconcileObject = "ReconcileObject"

// Queue is the lane beside a worker's task queue.
func (l Lane) Queue(taskQueue string) string { return taskQueue + "-" + string(l) }

// ClusterOf is the cluster whose task queue this is, empty if none is named.
func ClusterOf(taskQueue string) string {
	cluster, _, found := strings.Cut(taskQueue, "/")
	if !found {
		return ""
	}
	return cluster
}

// MaintenanceID is the workflow ID of the maintenance that requestor asks for node.
func MaintenanceID(cluster, node, requestor string) string {
	return inCluster(cluster, maintenancePrefix+"/"+node+"/"+requestor)
}

// MaintenanceIDPrefix is how the workflow IDs of a cluster's maintenances begin, and those of nothing else.
func MaintenanceIDPrefix(cluster string) string { return inCluster(cluster, maintenancePrefix) + "/" }

// ParseMaintenanceID is the inverse of MaintenanceID; it refuses IDs of anything else.
func ParseMaintenanceID(id string) (cluster, node, requestor string, err error) {
	parts := strings.Split(id, "/")
	if len(parts) == 4 {
		cluster, parts = parts[0], parts[1:]
	}
	if len(parts) != 3 || parts[0] != maintenancePrefix || spec.NodeName(parts[1]) != nil || spec.RequestorName(parts[2]) != nil {
		return "", "", "", fmt.Errorf("workflow ID %q is not of the form [<cluster>/]%s/<node>/<requestor>", id, maintenancePrefix)
	}
	return cluster, parts[1], parts[2], nil
}

// HolderID is the workflow ID of who asks for a slot of a node. It follows from what the request says anyway: the scheduler signals nobody
// whom a request could name freely.
func HolderID(cluster string, kind schedule.HolderKind, node, requestor string) string {
	switch kind {
	case schedule.KindControlPlane:
		return RemediationID(cluster, strings.TrimPrefix(requestor, remediationRequestor), node)
	case schedule.KindProfile:
		return ProfileTransitionID(cluster, strings.TrimPrefix(requestor, ProfileRequestorPrefix), node)
	default:
		return MaintenanceID(cluster, node, requestor)
	}
}

// ParseHolderID finds the cluster and the node of the ID of a workflow that may hold a slot; it refuses IDs of anything else.
func ParseHolderID(id string) (cluster, node string, err error) {
	if cluster, _, node, err = ParseRemediationID(id); err == nil {
		return cluster, node, nil
	}
	if cluster, _, node, err = ParseProfileTransitionID(id); err == nil {
		return cluster, node, nil
	}
	cluster, node, _, err = ParseMaintenanceID(id)
	return cluster, node, err
}

// PlanID is the workflow ID of a maintenance plan.
func PlanID(cluster, name string) string { return inCluster(cluster, planPrefix+"/"+name) }

// ParsePlanID is the inverse of PlanID; it refuses IDs of anything else.
func ParsePlanID(id string) (cluster, name string, err error) {
	parts := strings.Split(id, "/")
	if len(parts) == 3 {
		cluster, parts = parts[0], parts[1:]
	}
	if len(parts) != 2 || parts[0] != planPrefix || plan.CheckName(parts[1]) != nil {
		return "", "", fmt.Errorf("workflow ID %.300q is not of the form [<cluster>/]%s/<name>", id, planPrefix)
	}
	return cluster, parts[1], nil
}

// PlanRecordID is the workflow ID of what keeps the audit record of one run of a plan.
func PlanRecordID(cluster, name, runID string) string {
	return inCluster(cluster, strings.Join([]string{auditPrefix, "plan", name, runID}, "/"))
}

// RemediationRecordID is the workflow ID of what keeps the audit record of one run of a remediation.
func RemediationRecordID(cluster, check, node, runID string) string {
	return inCluster(cluster, strings.Join([]string{auditPrefix, "remediation", check, node, runID}, "/"))
}

// PlanRunID is the workflow ID of a run of a recurring plan, to which its schedule adds the time.
func PlanRunID(cluster, name string) string { return inCluster(cluster, planRunPrefix+"/"+name) }

// NexusOperationID is the workflow ID of the NexusOperation that maintains a node for a requestor, or a plan's nodes with the node empty and the
// plan's name as the requestor.
func NexusOperationID(cluster, node, requestor string) string {
	return inCluster(cluster, nexusOperationPrefix+"/"+node+"/"+requestor)
}

// ScheduleID is the ID of the Temporal Schedule of a recurring plan.
func ScheduleID(cluster, name string) string { return inCluster(cluster, planPrefix+"/"+name) }

// SchedulerID is the workflow ID of a cluster's one scheduler.
func SchedulerID(cluster string) string { return inCluster(cluster, schedulerID) }

// LockstepID is the workflow ID of a cluster's one Lockstep.
func LockstepID(cluster string) string { return inCluster(cluster, lockstepID) }

// PreflightID is the workflow ID that the command line gives a preflight of a node; occasion distinguishes one from the
// next. A preflight started otherwise may have any ID.
func PreflightID(cluster, node, occasion string) string {
	return inCluster(cluster, preflightPrefix+"/"+node+"/"+occasion)
}

// PermissionsID is the workflow ID that the command line gives a check of permissions; occasion distinguishes one from the next.
// One that is started otherwise may have any ID.
func PermissionsID(cluster, occasion string) string {
	return inCluster(cluster, permissionsPrefix+"/"+occasion)
}

// WindowsID is the workflow ID that the command line gives a query for a cluster's windows; occasion distinguishes one
// from the next.
func WindowsID(cluster, occasion string) string {
	return inCluster(cluster, windowsPrefix+"/"+occasion)
}

// DoctorID is the workflow ID that the command line gives a cluster's doctor, so that there is one at a time.
func DoctorID(cluster string) string { return inCluster(cluster, doctorID) }

func inCluster(cluster, name string) string {
	if cluster == "" {
		return name
	}
	return cluster + "/" + name
}

// FurtherID is where a workflow is started whose ID something else has taken: the n-th ID that is tried, from 1.
func FurtherID(id string, n int) string {
	if n == 1 {
		return id
	}
	return fmt.Sprintf("%s/%d", id, n)
}

// NotificationID is the workflow ID of the workflow that notifies a channel of one run of a maintenance.
func NotificationID(cluster, channel, node, requestor, runID string) string {
	return inCluster(cluster, strings.Join([]string{notificationPrefix, channel, node, requestor, runID}, "/"))
}

// CollectorID is the workflow ID of the workflow that notifies a channel of many maintenances.
func CollectorID(cluster, channel string) string {
	return inCluster(cluster, notificationPrefix+"/"+channel)
}

// AuditRecordID is the workflow ID of what keeps the audit record of one run of a maintenance.
func AuditRecordID(cluster, node, requestor, runID string) string {
	return inCluster(cluster, strings.Join([]string{auditPrefix, node, requestor, runID}, "/"))
}
