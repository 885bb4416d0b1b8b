package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/drainplan"
)

const (
	// togetherPods are on each node, in togetherTiers tiers.
	togetherPods, togetherTiers = 10, 3
	// togetherRounds are the drains of each kind.
	togetherRounds = 3
)

// tiersOf is a drain plan of so many tiers, each of the pods of its label.
func tiersOf(tiers int) (json.RawMessage, error) {
	var entries []drainplan.Entry
	for i := range tiers {
		entries = append(entries, drainplan.Entry{PodType: drainplan.Default, PodPriority: int32(i + 1), PodSelector: fmt.Sprintf("%s=%d", tierLabel, i)})
	}
	return json.Marshal(map[string]any{"tiers": entries, "include": []string{}})
}

// planTogether compares nodes that one plan drains tier by tier in lockstep with the same nodes that are drained all at once by
// maintenances of their own with the same tiers, which wait for nobody: from the first start to the last pod gone.
func (b *bench) planTogether(ctx context.Context) []Figure {
	f := &massDrainer{bench: b, nodes: b.sizes.togetherNodes, tiers: togetherTiers}
	tiers := must(tiersOf(togetherTiers))
	var alone, planned []float64
	for round := range togetherRounds {
		name := fmt.Sprintf("round-%d", round+1)
		world.Say("%d nodes with %d pods each in %d tiers, %s: by maintenances of their own", f.nodes, togetherPods, togetherTiers, name)
		took := f.timed(ctx, "by maintenances of their own", func(ctx context.Context) error {
			return inParallel(ctx, f.nodes, slots, func(ctx context.Context, i int) error {
				return b.start(ctx, world.NodeName(i), name, fmt.Sprintf(`,"drain":{"force":true,"plan":%s}`, tiers))
			})
		}, func(ctx context.Context) error { return b.finish(ctx, f.nodes, name) })
		alone = append(alone, took.Seconds())
		world.Say("%.2f s; now by a plan", took.Seconds())
		took = f.timed(ctx, "by a plan", func(ctx context.Context) error { return b.startTogether(ctx, name, f.nodes, tiers) },
			func(ctx context.Context) error { return b.complete(ctx, name) })
		planned = append(planned, took.Seconds())
		world.Say("%.2f s", took.Seconds())
	}
	what := fmt.Sprintf("%d nodes × %d pods in %d tiers", f.nodes, togetherPods, togetherTiers)
	return []Figure{
		report(what+", by maintenances of their own, median", median(alone), "s"),
		report(what+", in lockstep by a plan, median", median(planned), "s"),
		atMost(what+", in lockstep / on their own", median(planned)/median(alone), "ratio", 1.3),
	}
}

// timed fills the nodes, has them drained, and returns how long that took until the last pod was gone. It ends when the nodes
// are given back.
func (b *massDrainer) timed(ctx context.Context, what string, start, finish func(context.Context) error) time.Duration {
	return named(what, func() time.Duration {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		pods := b.fill(watching, b.nodes*togetherPods)
		ready := readyNodes(watching, b.Cluster)
		began := time.Now()
		noError(start(ctx))
		gone := must(pods.until(ctx, "the pods to be gone", noneThere))
		must(ready.until(ctx, "the nodes to be Ready", func(_, wished int) bool { return wished == b.nodes }))
		noError(finish(ctx))
		return gone.Sub(began)
	})
}

func (b *bench) startTogether(ctx context.Context, name string, nodes int, tiers json.RawMessage) error {
	list, err := nodeList(nodes)
	if err != nil {
		return err
	}
	return world.Begin(ctx, b.Temporal.Client, api.PlanID("", name), api.MaintenancePlanType, fmt.Sprintf(
		`{"nodes":%s,"strategy":{"type":"allAtOnce"},"stage":"Drain","drainPlan":%s,"maintenance":{"drain":{"force":true}}}`, list, tiers))
}

// complete has a plan give its nodes back, and waits for its end.
func (b *bench) complete(ctx context.Context, name string) error {
	id := api.PlanID("", name)
	if err := b.Temporal.Client.SignalWorkflow(ctx, id, "", api.MsgSetStage, api.SetStage{Stage: api.StageComplete}); err != nil {
		return err
	}
	return b.Temporal.Client.GetWorkflow(ctx, id, "").Get(ctx, nil)
}
