package heldnode

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock/k8s"
)

// GivenBack is what a node is to keep of a release by the calling activity: for which maintenance, of a Temporal namespace by its ID.
func GivenBack(ctx context.Context, maintenance, namespace string) *k8s.GivenBack {
	info := activity.GetInfo(ctx)
	return &k8s.GivenBack{
		WorkflowID: maintenance, Namespace: namespace, At: time.Now().UTC().Truncate(time.Second),
		By: info.WorkflowExecution.ID, Run: info.WorkflowExecution.RunID, Activity: info.ActivityID,
	}
}
