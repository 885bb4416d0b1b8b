package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/lab/world"
)

// measureHealthMemory is what a worker needs for checks of a large cluster, some of whose nodes are ill.
func (b *bench) measureHealthMemory(ctx context.Context) (figures []Figure, err error) {
	nodes := b.sizes.memoryNodes
	world.Say("health: a cluster of %d nodes, which takes some minutes", nodes)
	if err := b.enlarge(ctx, nodes, 0); err != nil {
		return nil, err
	}
	worker, err := b.startWorker(ctx, "worker", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, worker.Stop(time.Minute)) }()
	h, err := wardOf(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := h.shards(ctx, nodes); err != nil {
		return nil, err
	}
	idle, _, err := world.Resident(worker.PID())
	if err != nil {
		return nil, err
	}
	since, err := h.breaks(ctx, 0, healthIll, healthSpread)
	if err != nil {
		return nil, err
	}
	if err := h.objects.until(ctx, healthIll); err != nil {
		return nil, err
	}
	var ill []string
	for node := range since {
		ill = append(ill, node)
	}
	if err := errors.Join(h.mends(ctx, ill), h.objects.until(ctx, 0)); err != nil {
		return nil, err
	}
	_, peak, err := world.Resident(worker.PID())
	return []Figure{
		report(fmt.Sprintf("worker's resident memory, %d checks of %d nodes", healthChecks, nodes), idle, "MB"),
		atMost(fmt.Sprintf("worker's peak resident memory, %d of them remediated", healthIll), peak, "MB", 200),
	}, err
}
