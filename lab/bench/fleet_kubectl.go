package main

import (
	"context"
	"fmt"
	"time"

	"drydock.dev/drydock/lab/world"
)

const (
	// ownedNodes are drained of ownedPods each, which belong to one controller; kubectlAtOnce of them at a time by kubectl.
	ownedNodes    = 100
	ownedPods     = 15
	kubectlAtOnce = 16
)

// drainOwned drains nodes whose pods all belong to one controller: by Drydock, all at once, and by kubectl.
func (b *bench) drainOwned(ctx context.Context) []Figure {
	f := &massDrainer{bench: b, nodes: min(ownedNodes, b.sizes.fleetNodes), owned: true}
	pods := f.nodes * ownedPods
	world.Say("owned: %d nodes with %d pods each of one controller", f.nodes, ownedPods)
	drydock := named("by Drydock", func() fleetDrain { return f.drainAll(ctx, pods, "owned", unlimited()) })
	kubectl := named("by kubectl", func() time.Duration { return f.byKubectl(ctx, pods) })
	shown := plot{
		fmt.Sprintf("Emptying %d nodes with %d pods of one controller", f.nodes, pods), "s", []string{"Drydock", fmt.Sprintf("kubectl drain, %d at a time", kubectlAtOnce)},
		[]series{{"", []float64{drydock.sinceGrant.Seconds(), kubectl.Seconds()}}},
	}
	noError(shown.draw("owned"))
	return []Figure{
		report("one controller's pods, Drydock, first grant to last pod gone", drydock.sinceGrant.Seconds(), "s"),
		report(fmt.Sprintf("one controller's pods, kubectl drain, %d at a time", kubectlAtOnce), kubectl.Seconds(), "s"),
		atMost("one controller's pods, Drydock / kubectl", drydock.sinceGrant.Seconds()/kubectl.Seconds(), "ratio", 0.25),
	}
}

// byKubectl drains all nodes with kubectl, and makes them schedulable again.
func (b *massDrainer) byKubectl(ctx context.Context, pods int) time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := b.fill(ctx, pods)
	s := &shuttle{bench: b.bench}
	began := time.Now()
	noError(inParallel(ctx, b.nodes, kubectlAtOnce, func(ctx context.Context, i int) error {
		_, err := s.kubectl(ctx, world.NodeName(i))
		return err
	}))
	gone := must(seen.until(ctx, "the pods to be gone", noneThere))
	noError(inParallel(ctx, b.nodes, requestsAtOnce, func(ctx context.Context, i int) error {
		return s.cordon(ctx, world.NodeName(i), false)
	}))
	return gone.Sub(began)
}
