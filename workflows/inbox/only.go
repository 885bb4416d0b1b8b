package inbox

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
)

// Only returns the cluster of a workflow of which each cluster has one, and an error where the run has another ID than that one.
func Only(ctx workflow.Context, what string, idOf func(cluster string) string) (cluster string, err error) {
	info := workflow.GetInfo(ctx)
	cluster = api.ClusterOf(info.TaskQueueName)
	if id := info.WorkflowExecution.ID; id != idOf(cluster) {
		return "", InvalidSpec(fmt.Errorf("workflow ID %.300q: that of %s on this task queue is %q", id, what, idOf(cluster)))
	}
	return cluster, nil
}
