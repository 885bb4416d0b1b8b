// Package preflight looks at what a drain would meet. It changes nothing in the cluster.
package preflight

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	policyv1 "k8s.io/api/policy/v1"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/reporting"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
)

// Budgets reads budgets.
type Budgets interface {
	// BudgetsIn are the budgets of some namespaces.
	BudgetsIn(ctx context.Context, namespaces map[string]bool) ([]*policyv1.PodDisruptionBudget, error)
}

// Activities look at what a drain would meet. They change nothing in the cluster.
type Activities struct {
	Client   kube.Interface
	Temporal client.Client
	Budgets  Budgets
	// Capacity is shared by all preflights of the worker.
	Capacity *k8s.CapacityReader
	// JobNamespaces are those of the Jobs of checks, hooks and works, whose pods no drain evicts.
	JobNamespaces []string
	// LeaseNamespace is where the leases of nodes are; empty is medik8s' own.
	LeaseNamespace string

	// first and last bound the pause between two looks of AwaitPreflight; zero values are 15 s and 1 min.
	first, last time.Duration
}

const (
	firstPause   = 15 * time.Second
	longestPause = time.Minute
)

// Input asks what a drain of a node would meet.
type Input struct {
	Node  string     `json:"node"`
	Drain spec.Drain `json:"drain"`
	// WaitsForPods: the maintenance waits for pods before its drain.
	WaitsForPods bool `json:"waitsForPods,omitempty"`
	// Together are other nodes that go at the same time, and so have no room for pods.
	Together []string `json:"together,omitempty"`
	// BlockedSignal is the signal by which the workflow wants to hear what AwaitPreflight waits for.
	BlockedSignal string `json:"blockedSignal,omitempty"`
}

// About implements caller.Input.
func (in Input) About() caller.Subject { return caller.Subject{Node: in.Node} }

// CheckPreflight looks once. What the worker's account may not look at is a finding of the report, not an error.
func (p *Activities) CheckPreflight(ctx context.Context, in Input) (preflight.Report, error) {
	facts, err := p.facts(ctx, in)
	if err != nil {
		return preflight.Report{}, failure.Translate(ctx, p.Client, err)
	}
	return preflight.Decide(in.Drain, facts)
}

// AwaitPreflight looks again and again until nothing would stop the drain, or there is no such node. It returns what it
// saw last. Errors: WorkerStopping.
func (p *Activities) AwaitPreflight(ctx context.Context, in Input) (preflight.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heartbeats := heartbeat.Start(ctx)
	defer heartbeats.Stop()
	report := reporting.Reporter{Temporal: p.Temporal, Signal: in.BlockedSignal, Heartbeats: heartbeats}
	since := map[string]time.Time{}
	pause, longest := orDefault(p.first, firstPause), orDefault(p.last, longestPause)
	for {
		seen, err := p.checkUntilStopped(ctx, in)
		if err != nil || seen.ProblemCount() == 0 || seen.Has(preflight.NodeMissing) {
			return seen, err
		}
		progress := waitsFor(seen, since)
		report.Report(ctx, progress)
		if err := p.pause(ctx, pause, func() { report.Report(ctx, progress) }); err != nil {
			return preflight.Report{}, err
		}
		pause = min(2*pause, longest)
	}
}

func orDefault(d, usual time.Duration) time.Duration {
	if d == 0 {
		return usual
	}
	return d
}

// checkUntilStopped is CheckPreflight that ends with its worker: in a large cluster a look may take long.
func (p *Activities) checkUntilStopped(ctx context.Context, in Input) (preflight.Report, error) {
	type result struct {
		report preflight.Report
		err    error
	}
	looked := make(chan result, 1)
	go func() {
		r, err := p.CheckPreflight(ctx, in)
		looked <- result{r, err}
	}()
	select {
	case r := <-looked:
		return r.report, r.err
	case <-ctx.Done():
		return preflight.Report{}, ctx.Err()
	case <-activity.GetWorkerStopChannel(ctx):
		return preflight.Report{}, failure.WorkerStopping()
	}
}

// pause waits, and shows meanwhile that the activity lives.
func (p *Activities) pause(ctx context.Context, d time.Duration, show func()) error {
	again := time.NewTimer(d)
	defer again.Stop()
	beat := time.NewTicker(heartbeat.Every)
	defer beat.Stop()
	for {
		select {
		case <-again.C:
			return nil
		case <-beat.C:
			show()
		case <-ctx.Done():
			return ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return failure.WorkerStopping()
		}
	}
}

// waitsFor is a report in the form in which drains tell their workflows what blocks them. since remembers when each
// problem was first seen.
func waitsFor(report preflight.Report, since map[string]time.Time) api.DrainProgress {
	progress := api.DrainProgress{At: report.At}
	present := map[string]bool{}
	for _, problem := range report.Problems {
		key := string(problem.Code) + " " + problem.Object
		present[key] = true
		if _, known := since[key]; !known {
			since[key] = report.At
		}
		if len(progress.Blockers) < reporting.MaxBlockers {
			progress.Blockers = append(progress.Blockers, api.Blocker{
				Pod: problem.Object, Reason: string(problem.Code), Message: problem.Message, Since: since[key],
			})
		}
	}
	for key := range since {
		if !present[key] {
			delete(since, key)
		}
	}
	progress.MoreBlockers = report.ProblemCount() - len(progress.Blockers)
	return progress
}
