package lockstep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
)

// CheckInput are plans that may run.
type CheckInput struct {
	Plans []api.HeldPlan `json:"plans"`
}

// CheckPlans returns those of the plans that run.
func (a *Activities) CheckPlans(ctx context.Context, in CheckInput) ([]api.HeldPlan, error) {
	cluster, _ := here(ctx)
	running := []api.HeldPlan{}
	for _, p := range in.Plans {
		first, err := execution.Running(ctx, a.Temporal, api.PlanID(cluster, p.Name))
		if err != nil {
			return nil, err
		}
		if first == p.RunID {
			running = append(running, p)
		}
	}
	return running, nil
}

// QueueInput names the task queue of a cluster.
type QueueInput struct {
	TaskQueue string `json:"taskQueue"`
}

// Running is what runs that the lockstep has to know.
type Running struct {
	// Nodes are those with a maintenance that plans share.
	Nodes api.List[string] `json:"nodes,omitempty"`
	// Plans are those of strategy allAtOnce.
	Plans []api.HeldPlan `json:"plans,omitempty"`
}

// FindShared finds, by visibility, the maintenances that plans share and the plans that may share them.
func (a *Activities) FindShared(ctx context.Context, in QueueInput) (Running, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	var running Running
	nodes, err := a.sharedNodes(ctx, in)
	if err != nil {
		return running, err
	}
	for _, n := range nodes {
		running.Nodes = append(running.Nodes, n.Node)
	}
	plans, err := execution.ListRunning(ctx, a.Temporal, a.Namespace, execution.InventoryInput{WorkflowType: api.MaintenancePlanType, TaskQueue: in.TaskQueue})
	if err != nil {
		return running, err
	}
	for _, run := range plans {
		one, err := a.goesInLockstep(ctx, run.WorkflowID)
		if err != nil {
			return running, err
		}
		if one.Name != "" {
			running.Plans = append(running.Plans, one)
		}
	}
	return running, nil
}

// sharedNodes are those with a maintenance that runs and that plans share, in the order of their names. The runs are the
// present ones.
func (a *Activities) sharedNodes(ctx context.Context, in QueueInput) ([]api.HeldNode, error) {
	all, err := execution.ListRunning(ctx, a.Temporal, a.Namespace, execution.InventoryInput{WorkflowType: api.NodeMaintenanceType, TaskQueue: in.TaskQueue})
	if err != nil {
		return nil, err
	}
	var shared []api.HeldNode
	for _, run := range all {
		cluster, node, requestor, err := api.ParseMaintenanceID(run.WorkflowID)
		if err == nil && requestor == api.PlansRequestor && cluster == api.ClusterOf(in.TaskQueue) {
			shared = append(shared, api.HeldNode{Node: node, RunID: run.RunID})
		}
	}
	slices.SortFunc(shared, func(a, b api.HeldNode) int { return strings.Compare(a.Node, b.Node) })
	return slices.CompactFunc(shared, func(a, b api.HeldNode) bool { return a.Node == b.Node }), nil
}

// goesInLockstep is a plan, if it runs and its strategy is allAtOnce. A plan that cannot answer counts as one that does: nodes
// that it may want are not given back.
func (a *Activities) goesInLockstep(ctx context.Context, id string) (one api.HeldPlan, err error) {
	_, name, err := api.ParsePlanID(id)
	if err != nil {
		return one, nil //nolint:nilerr // whatever this is, it is no plan's workflow ID
	}
	first, err := execution.Running(ctx, a.Temporal, id)
	if err != nil || first == "" {
		return one, err
	}
	var status api.PlanStatus
	answer, err := a.Temporal.QueryWorkflow(ctx, id, "", api.QueryStatus)
	if err == nil {
		err = answer.Get(&status)
	}
	switch {
	case err != nil && execution.CannotAnswer(err) && lasts(ctx, err):
	case err != nil:
		return one, fmt.Errorf("asking plan %s for its strategy: %w", name, err)
	case status.Plan.Strategy.Type != plan.AllAtOnce:
		return one, nil
	}
	return api.HeldPlan{Name: name, RunID: first}, nil
}

const (
	// lookEvery is the interval between checks.
	lookEvery = 20 * time.Second
	// maxSeen bounds the ends that one check reports: the next one reports the rest.
	maxSeen = 500
)

// Seen is what has ended of what the lockstep counts on.
type Seen struct {
	Maintenances []Result       `json:"maintenances,omitempty"`
	Plans        []api.HeldPlan `json:"plans,omitempty"`
}

// WatchShared returns when a maintenance or a plan has ended that the calling workflow counts on, which it queries before each check.
// Maintenances and plans that end signal that themselves, unless they are terminated.
func (a *Activities) WatchShared(ctx context.Context, in QueueInput) (Seen, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	for pause := firstLook(activity.GetInfo(ctx).Attempt); ; pause = lookEvery {
		select {
		case <-ctx.Done():
			return Seen{}, context.Cause(ctx)
		case <-time.After(pause):
		}
		seen, err := a.look(ctx, in)
		if len(seen.Maintenances)+len(seen.Plans) > 0 {
			return seen, nil
		}
		if err != nil {
			activity.GetLogger(ctx).Warn("looking at the maintenances of plans", "error", err)
		}
	}
}

// firstLook is how long a watch waits before it looks. The lockstep has just found out what it counts on when it begins one; an attempt
// that follows another looks at once, because the worker of that one may have been dead for long.
func firstLook(attempt int32) time.Duration {
	if attempt > 1 {
		return 0
	}
	return lookEvery
}

// look compares what the workflow counts on with what runs. Visibility lags: those that it does not list are described one by
// one.
func (a *Activities) look(ctx context.Context, in QueueInput) (Seen, error) {
	held, err := a.held(ctx)
	if err != nil {
		return Seen{}, err
	}
	shared, err := a.sharedNodes(ctx, in)
	if err != nil {
		return Seen{}, err
	}
	var missing []Request
	for _, n := range held.Nodes {
		if _, known := slices.BinarySearchFunc(shared, n.Node, func(s api.HeldNode, name string) int { return strings.Compare(s.Node, name) }); !known {
			missing = append(missing, Request{Node: n.Node, RunID: n.RunID})
		}
	}
	results, err := each(ctx, missing[:min(len(missing), maxSeen)], func(ctx context.Context, r Request) (Result, error) {
		first, err := execution.Running(ctx, a.Temporal, api.MaintenanceID(api.ClusterOf(in.TaskQueue), r.Node, api.PlansRequestor))
		if err != nil || first != "" && (r.RunID == "" || first == r.RunID) {
			return Result{}, err
		}
		return a.endOf(ctx, r.Node, r.RunID)
	})
	seen := Seen{Maintenances: slices.DeleteFunc(results, func(r Result) bool { return !r.Ended })}
	running, checkErr := a.CheckPlans(ctx, CheckInput{Plans: held.Plans})
	if checkErr == nil {
		seen.Plans = slices.DeleteFunc(held.Plans, func(p api.HeldPlan) bool { return slices.Contains(running, p) })
	}
	return seen, errors.Join(err, checkErr)
}

// held asks the calling workflow what it counts on.
func (a *Activities) held(ctx context.Context) (all api.LockstepHeld, err error) {
	id := activity.GetInfo(ctx).WorkflowExecution.ID
	for offset := 0; ; {
		answer, err := a.Temporal.QueryWorkflow(ctx, id, "", api.QueryHeld, api.HeldRequest{Offset: offset})
		var page api.LockstepHeld
		if err == nil {
			err = answer.Get(&page)
		}
		var nobody *serviceerror.NotFound
		if errors.As(err, &nobody) {
			return all, nil
		}
		if err != nil {
			return all, fmt.Errorf("asking the lockstep what it counts on: %w", err)
		}
		all.Nodes, all.Plans = append(all.Nodes, page.Nodes...), append(all.Plans, page.Plans...)
		if offset = page.NextOffset; offset == 0 {
			return all, nil
		}
	}
}
