package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/lab/world"
)

// measureHealthMemory is what a worker needs for checks of a large cluster, some of whose nodes are ill.
func (b *bench) measureHealthMemory(ctx context.Context) []Figure {
	nodes := b.sizes.memoryNodes
	world.Say("health: a cluster of %d nodes, which takes some minutes", nodes)
	b.enlarge(ctx, nodes, 0)
	worker := must(b.startWorker(ctx, "worker", ""))
	defer func() { b.note(worker.Stop(time.Minute)) }()
	h := wardOf(ctx, b)
	h.shards(ctx, nodes)
	idle, _ := resident(worker)
	since := must(h.breaks(ctx, 0, healthIll, healthSpread))
	noError(h.objects.until(ctx, healthIll))
	var ill []string
	for node := range since {
		ill = append(ill, node)
	}
	noError(errors.Join(h.mends(ctx, ill), h.objects.until(ctx, 0)))
	_, peak := resident(worker)
	return []Figure{
		report(fmt.Sprintf("worker's resident memory, %d checks of %d nodes", healthChecks, nodes), idle, "MB"),
		atMost(fmt.Sprintf("worker's peak resident memory, %d of them remediated", healthIll), peak, "MB", 200),
	}
}
