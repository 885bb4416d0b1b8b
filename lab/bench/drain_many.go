package main

import (
	"context"
	"fmt"
	"time"

	"drydock.dev/drydock/lab/world"
)

// drainManyPods drains thirty pods that take two seconds to end, without a budget: by Drydock and by kubectl. It
// compares how long that takes, and how many requests it costs.
func (b *bench) drainManyPods(ctx context.Context) []Figure {
	world.Say("drains of 30 pods that take 2 s to end, %d of each kind", b.sizes.manyRounds)
	s := &shuttle{bench: b, name: "many", pods: 30, slowToEnd: 2 * time.Second}
	defer func() { b.note(s.end(ctx)) }()
	s.launch(ctx)
	var drydockCost, kubectlCost cost
	times := s.rounds(ctx, b.sizes.manyRounds, []drainer{
		// All of a maintenance is counted, from the slot to the node's release.
		{"Drydock", b.counted(s.drydock, theWorker, &drydockCost)},
		{"kubectl", b.counted(s.byKubectl, theKubectl, &kubectlCost)},
	})
	drydock, kubectl := median(times[0]), median(times[1])
	byDrydock, byKubectl := median(drydockCost.requests), median(kubectlCost.requests)
	return []Figure{
		report("30 slow pods, Drydock, median", drydock, "s"),
		report("30 slow pods, kubectl, median", kubectl, "s"),
		atMost("30 slow pods, Drydock / kubectl", drydock/kubectl, "ratio", 1.1),
		report("30 slow pods, API requests of the whole maintenance", byDrydock, "requests"),
		report("30 slow pods, API requests of kubectl", byKubectl, "requests"),
		atMost("30 slow pods, API requests, Drydock / kubectl", byDrydock/byKubectl, "ratio", 1),
		report("- Kubernetes Events beside them, Drydock", median(drydockCost.events), "events"),
		report("- Kubernetes Events beside them, kubectl", median(kubectlCost.events), "events"),
	}
}

// cost is what each of several drains asked of the API server, watches apart.
type cost struct{ requests, events []float64 }

// counted adds what an agent's drains cost.
func (b *bench) counted(drain func(context.Context, string) time.Duration, agent string, c *cost) func(context.Context, string) time.Duration {
	return func(ctx context.Context, node string) time.Duration {
		mark := must(b.audit.mark())
		took := drain(ctx, node)
		requests, events := b.audit.requests(agent, mark)
		if requests == 0 {
			noError(fmt.Errorf("the audit log has no request of %s", agent))
		}
		c.requests, c.events = append(c.requests, float64(requests)), append(c.events, float64(events))
		return took
	}
}
