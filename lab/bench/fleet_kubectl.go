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
func (b *bench) drainOwned(ctx context.Context) ([]Figure, error) {
	f := &massDrainer{bench: b, nodes: min(ownedNodes, b.sizes.fleetNodes), owned: true}
	pods := f.nodes * ownedPods
	world.Say("owned: %d nodes with %d pods each of one controller", f.nodes, ownedPods)
	drydock, err := f.drainAll(ctx, pods, "owned", unlimited())
	if err != nil {
		return nil, fmt.Errorf("by Drydock: %w", err)
	}
	kubectl, err := f.byKubectl(ctx, pods)
	if err != nil {
		return nil, fmt.Errorf("by kubectl: %w", err)
	}
	shown := plot{
		fmt.Sprintf("Emptying %d nodes with %d pods of one controller", f.nodes, pods), "s", []string{"Drydock", fmt.Sprintf("kubectl drain, %d at a time", kubectlAtOnce)},
		[]series{{"", []float64{drydock.sinceGrant.Seconds(), kubectl.Seconds()}}},
	}
	if err := shown.draw("owned"); err != nil {
		return nil, err
	}
	return []Figure{
		report("one controller's pods, Drydock, first grant to last pod gone", drydock.sinceGrant.Seconds(), "s"),
		report(fmt.Sprintf("one controller's pods, kubectl drain, %d at a time", kubectlAtOnce), kubectl.Seconds(), "s"),
		atMost("one controller's pods, Drydock / kubectl", drydock.sinceGrant.Seconds()/kubectl.Seconds(), "ratio", 0.25),
	}, nil
}

// byKubectl drains all nodes with kubectl, and makes them schedulable again.
func (b *massDrainer) byKubectl(ctx context.Context, pods int) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := b.fill(ctx, pods)
	if err != nil {
		return 0, err
	}
	s := &shuttle{bench: b.bench}
	began := time.Now()
	if err := inParallel(ctx, b.nodes, kubectlAtOnce, func(ctx context.Context, i int) error {
		_, err := s.kubectl(ctx, world.NodeName(i))
		return err
	}); err != nil {
		return 0, err
	}
	gone, err := seen.until(ctx, "the pods to be gone", noneThere)
	if err != nil {
		return 0, err
	}
	return gone.Sub(began), inParallel(ctx, b.nodes, requestsAtOnce, func(ctx context.Context, i int) error {
		return s.cordon(ctx, world.NodeName(i), false)
	})
}
