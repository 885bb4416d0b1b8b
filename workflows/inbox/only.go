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

// Carried reads with unpack what a run has handed to the next. What anybody else has started the workflow with is not read, but noted.
func Carried(ctx workflow.Context, packed []byte, unpack func([]byte) error, note func(what, why string)) error {
	switch {
	case len(packed) == 0:
		return nil
	case !IsContinued(ctx):
		note("ignored what it was started with", "that is only for a run to hand to the next")
		return nil
	}
	if err := unpack(packed); err != nil {
		return fmt.Errorf("carried state: %w", err)
	}
	return nil
}
