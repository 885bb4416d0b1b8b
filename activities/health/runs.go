package health

import (
	"context"
	"maps"
	"slices"
	"sync"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/api"
)

const (
	// atOnce bounds the requests under way.
	atOnce = 16
	// maxDescribed bounds the workflows that one look is about.
	maxDescribed = 2000
)

// endedOf are the nodes whose remediations have ended.
func (a *Activities) endedOf(ctx context.Context, in WatchInput) (ended []string, err error) {
	cluster := api.ClusterOf(activity.GetInfo(ctx).TaskQueue)
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, one := range in.Runs[:min(len(in.Runs), maxDescribed)] {
		group.Go(func() error {
			first, err := execution.Running(ctx, a.Temporal, api.RemediationID(cluster, in.Check, one.Node))
			if err != nil || first == one.RunID {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, one.Node)
			return nil
		})
	}
	err = group.Wait()
	slices.Sort(ended)
	return ended, err
}

// FindRemediations finds the remediations of a check that run. Visibility lags: those that it does not know yet are found by the
// leases of their nodes, which each takes before it does anything.
func (a *Activities) FindRemediations(ctx context.Context, in RemediationsInput) (FoundRemediations, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	cluster := api.ClusterOf(in.TaskQueue)
	all, err := execution.ListRunning(ctx, a.Temporal, a.Namespace, execution.InventoryInput{WorkflowType: api.NodeRemediationType, TaskQueue: in.TaskQueue})
	if err != nil {
		return FoundRemediations{}, err
	}
	nodes := map[string]bool{}
	for _, run := range all {
		if of, check, node, err := api.ParseRemediationID(run.WorkflowID); err == nil && of == cluster && check == in.Check {
			nodes[node] = true
		}
	}
	leased, err := a.leases().HeldBy(ctx, LeaseHolder(in.Check))
	if err != nil {
		return FoundRemediations{}, failure.Translate(ctx, a.Objects.Kube(), err)
	}
	for _, node := range leased {
		nodes[node] = true
	}
	names := slices.Sorted(maps.Keys(nodes))
	found := make([]RunningRemediation, len(names))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, node := range names {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			first, err := execution.Running(ctx, a.Temporal, api.RemediationID(cluster, in.Check, node))
			found[i] = RunningRemediation{Node: node, RunID: first}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return FoundRemediations{}, err
	}
	return FoundRemediations{Remediations: slices.DeleteFunc(found, func(f RunningRemediation) bool { return f.RunID == "" })}, nil
}
