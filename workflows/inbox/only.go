package inbox

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
)

// Only returns the cluster of a workflow of which each has one, called what. It refuses to run under any other ID.
func Only(ctx workflow.Context, what string, idOf func(cluster string) string) (cluster string, err error) {
	info := workflow.GetInfo(ctx)
	cluster = api.ClusterOf(info.TaskQueueName)
	if id := info.WorkflowExecution.ID; id != idOf(cluster) {
		return "", InvalidSpec(fmt.Errorf("workflow ID %.300q: that of %s on this task queue is %q", id, what, idOf(cluster)))
	}
	return cluster, nil
}
