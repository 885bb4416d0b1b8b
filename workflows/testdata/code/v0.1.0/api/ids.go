package api

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"fmt"
	"strings"
)

const (
	maintenancePrefix  = "node-maintenance"
	schedulerID        = "drydock-scheduler"
	preflightPrefix    = "preflight"
	doctorID           = "drydock-doctor"
	notificationPrefix = "notification"
	auditPrefix        = "audit-record"
)

// Lane is one of them.
type Lane string

// The lanes: LaneDrains empties nodes, LanePreflights waits until nothing would stop a drain, LaneMessages tells channels.
const (
	LaneDrains     Lane = "drains"
	LanePreflights Lane = "preflights"
	LaneMessages   Lane = "messages"
)

// Queue is the lane beside a worker's task queue.
func (l Lane) Queue(taskQueue string) string { return taskQueue + "-" + string(l) }

// ClusterOf is the cluster whose task queue this is, empty where none is named.
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

// SchedulerID is the workflow ID of a cluster's one scheduler.
func SchedulerID(cluster string) string { return inCluster(cluster, schedulerID) }

func inCluster(cluster, name string) string {
	if cluster == "" {
		return name
	}
	return cluster + "/" + name
}

// NotificationID is the workflow ID of what tells a channel of one run of a maintenance.
func NotificationID(cluster, channel, node, requestor, runID string) string {
	return inCluster(cluster, strings.Join([]string{notificationPrefix, channel, node, requestor, runID}, "/"))
}

// CollectorID is the workflow ID of what tells a channel of many maintenances.
func CollectorID(cluster, channel string) string {
	return inCluster(cluster, notificationPrefix+"/"+channel)
}

// AuditRecordID is the workflow ID of what keeps the audit record of one run of a maintenance.
func AuditRecordID(cluster, node, requestor, runID string) string {
	return inCluster(cluster, strings.Join([]string{auditPrefix, node, requestor, runID}, "/"))
}
