package health

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"drydock/activities/caller"
	"drydock/activities/execution"
	"drydock/activities/failure"
	"drydock/activities/heartbeat"
	"drydock/api"
	"drydock/rules/bounds"
)

const (
	// atOnce bounds the requests under way.
	atOnce = 16
	// believeAfter is the attempt from which on an error is that of one workflow: it must not keep the others waiting.
	believeAfter = 4
	// maxDescribed bounds the workflows that one look is about.
	maxDescribed = 2000
)

// lookAtRuns finds out which checks and remediations do not run, though nobody said that they end: twice in a row, because one that
// has just been ordered may not have begun yet.
func (l lookout) lookAtRuns(ctx context.Context, r *around, in WatchInput) error {
	cluster := api.ClusterOf(activity.GetInfo(ctx).TaskQueue)
	expected := map[string]string{} // the first run by workflow ID; empty is any
	for _, check := range in.Checks {
		expected[api.HealthCheckID(cluster, check.Name)] = check.RunID
		for _, node := range check.Intent.Remediating {
			expected[api.RemediationID(cluster, check.Name, node)] = ""
		}
	}
	for _, told := range in.Ended {
		delete(expected, told)
	}
	ids := slices.Sorted(maps.Keys(expected))
	var mu sync.Mutex
	missing := map[string]int{}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, id := range ids[:min(len(ids), maxDescribed)] {
		group.Go(func() error {
			first, err := execution.Running(ctx, l.Temporal, id)
			if err != nil || first != "" && (expected[id] == "" || first == expected[id]) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			missing[id] = r.missing[id] + 1
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.missing = missing
	ended := map[string]bool{}
	for id, times := range missing {
		if times >= 2 {
			ended[id] = true
		}
	}
	if !maps.Equal(ended, r.latest().ended) {
		r.set(func(s *surroundings) { s.ended = ended })
	}
	return nil
}

// endedOf are those of a watch's checks and remediations that have ended and were not told of.
func endedOf(cluster string, ended map[string]bool, in WatchInput) (checks []string, remediations []EndedRemediation) {
	if len(ended) == 0 {
		return nil, nil
	}
	is := func(id string) bool { return ended[id] && !slices.Contains(in.Ended, id) }
	for _, check := range in.Checks {
		if is(api.HealthCheckID(cluster, check.Name)) {
			checks = append(checks, check.Name)
		}
		for _, node := range check.Intent.Remediating {
			if is(api.RemediationID(cluster, check.Name, node)) {
				remediations = append(remediations, EndedRemediation{Check: check.Name, Node: node})
			}
		}
	}
	return checks, remediations[:min(len(remediations), maxTold)]
}

// TellChecks tells checks what concerns them, and returns who could not be told.
func (a *Activities) TellChecks(ctx context.Context, in TellInput) (ToldChecks, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	cluster := api.ClusterOf(activity.GetInfo(ctx).TaskQueue)
	var mu sync.Mutex
	var told ToldChecks
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, one := range in.News {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := caller.Signal(ctx, a.Temporal, api.HealthCheckID(cluster, one.Check), "", api.SignalHealthNews, one.News)
			var nobody *serviceerror.NotFound
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.As(err, &nobody):
				told.Ended = append(told.Ended, one.Check)
			case err != nil && ctx.Err() == nil && activity.GetInfo(ctx).Attempt >= believeAfter:
				told.Missed = append(told.Missed, MissedCheck{Check: one.Check, Why: bounds.Cut(err.Error(), bounds.Text)})
			case err != nil:
				return fmt.Errorf("telling health check %s: %w", one.Check, err)
			}
			return nil
		})
	}
	err := group.Wait()
	slices.Sort(told.Ended)
	slices.SortFunc(told.Missed, func(a, b MissedCheck) int { return strings.Compare(a.Check, b.Check) })
	return told, err
}

// StockRemediations finds the remediations of a check that run. Visibility lags: those that it does not know yet are found by the
// leases of their nodes, which each takes before it does anything.
func (a *Activities) StockRemediations(ctx context.Context, in StockInput) (Stock, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	cluster := api.ClusterOf(in.TaskQueue)
	all, err := execution.ListRunning(ctx, a.Temporal, a.Namespace, execution.InventoryInput{WorkflowType: api.NodeRemediationType, TaskQueue: in.TaskQueue})
	if err != nil {
		return Stock{}, err
	}
	nodes := map[string]bool{}
	for _, run := range all {
		if of, check, node, err := api.ParseRemediationID(run.WorkflowID); err == nil && of == cluster && check == in.Check {
			nodes[node] = true
		}
	}
	leased, err := a.leases().HeldBy(ctx, LeaseHolder(in.Check))
	if err != nil {
		return Stock{}, failure.Translate(ctx, a.Objects.Kube(), err)
	}
	for _, node := range leased {
		nodes[node] = true
	}
	names := slices.Sorted(maps.Keys(nodes))
	found := make([]FoundRemediation, len(names))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, node := range names {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			first, err := execution.Running(ctx, a.Temporal, api.RemediationID(cluster, in.Check, node))
			found[i] = FoundRemediation{Node: node, RunID: first}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Stock{}, err
	}
	return Stock{Remediations: slices.DeleteFunc(found, func(f FoundRemediation) bool { return f.RunID == "" })}, nil
}
