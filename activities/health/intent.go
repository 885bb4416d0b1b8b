package health

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/sdk/activity"

	"drydock/activities/caller"
	"drydock/activities/execution"
	"drydock/api"
)

// SendHealthIntent tells the health watch what a check wants to know, and starts it where it does not run.
func (a *Activities) SendHealthIntent(ctx context.Context, intent api.HealthIntent) error {
	id := api.HealthWatchID(api.ClusterOf(activity.GetInfo(ctx).TaskQueue))
	if err := caller.SignalWithStart(ctx, a.Temporal, id, api.SignalHealthIntent, intent); err != nil {
		return fmt.Errorf("telling %s what check %s wants to know: %w", id, intent.Name, err)
	}
	return nil
}

// FindChecksInput names the task queue of a cluster, and checks of it; without names all that run are found.
type FindChecksInput struct {
	TaskQueue string           `json:"taskQueue"`
	Names     api.List[string] `json:"names,omitempty"`
}

// RunningCheck is a check that runs, with the first run of its chain.
type RunningCheck struct {
	Name  string `json:"name"`
	RunID string `json:"runId"`
}

// FindChecks tells which checks run.
func (a *Activities) FindChecks(ctx context.Context, in FindChecksInput) (api.List[RunningCheck], error) {
	cluster := api.ClusterOf(in.TaskQueue)
	names := slices.Clone(in.Names)
	if len(names) == 0 {
		all, err := execution.ListRunning(ctx, a.Temporal, a.Namespace, execution.InventoryInput{WorkflowType: api.HealthCheckType, TaskQueue: in.TaskQueue})
		if err != nil {
			return nil, err
		}
		for _, run := range all {
			if of, name, err := api.ParseHealthCheckID(run.WorkflowID); err == nil && of == cluster {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	found := api.List[RunningCheck]{}
	for _, name := range slices.Compact(names) {
		first, err := execution.Running(ctx, a.Temporal, api.HealthCheckID(cluster, name))
		if err != nil {
			return nil, err
		}
		if first != "" {
			found = append(found, RunningCheck{Name: name, RunID: first})
		}
	}
	return found, nil
}
