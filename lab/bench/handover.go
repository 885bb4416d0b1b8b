package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

const (
	fleet = 100
	slots = 8
)

// handOver rolls over a fleet of empty nodes, with a requestor that is done at once. One watch client sees both ends
// of a hand-over: a node made schedulable again, and the next one cordoned.
func (b *bench) handOver(ctx context.Context) []Figure {
	world.Say("slot hand-over: %d empty nodes, maxParallel %d", fleet, slots)
	seen, took, err := b.goesOver(ctx, fleet, func(ctx context.Context) error { return b.startAll(ctx, fleet) })
	if err != nil {
		noError(errors.Join(err, unfinished(b.Temporal)))
	}
	gaps := must(seen.handOvers(slots))
	perSecond := fleet / took.Seconds()

	world.Say("the same number of bare workflows, %d at a time", slots)
	bare := b.bareRate(ctx)
	noError(distribution("Hand-over of a slot from node to node", gaps).draw("handover"))
	return []Figure{
		atMost("slot hand-over, median", ms(gaps[len(gaps)/2]), "ms", 150),
		atMost("slot hand-over, p95", ms(gaps[len(gaps)*95/100]), "ms", 300),
		report("maintenances of empty nodes", perSecond, "nodes/s"),
		report("bare workflows", bare, "workflows/s"),
		atLeast("maintenances / bare workflows", perSecond/bare, "ratio", 0.5),
	}
}

// goesOver starts the maintenances of so many nodes, and returns what was seen of them and how long they took until all were released.
func (b *bench) goesOver(ctx context.Context, nodes int, start func(context.Context) error) (*sightings, time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := b.watchNodes(ctx)
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if err := start(ctx); err != nil {
		return nil, 0, err
	}
	err = seen.untilReleased(ctx, nodes)
	return seen, time.Since(began), err
}

func (b *bench) startAll(ctx context.Context, nodes int) error {
	for i := range nodes {
		if err := b.start(ctx, world.NodeName(i), "bench", ""); err != nil {
			return err
		}
	}
	return nil
}

// start starts a maintenance with further fields of its input, each with a comma before it.
func (b *bench) start(ctx context.Context, node, requestor, fields string) error {
	return world.Begin(ctx, b.Temporal.Client, api.MaintenanceID("", node, requestor), api.NodeMaintenanceType,
		fmt.Sprintf(`{"node":%q,"requestor":%q%s}`, node, requestor, fields))
}

// unfinished names the maintenances that did not end, and what they wait for.
func unfinished(t *devstack.Temporal) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var problems []error
	for i := range fleet {
		id := api.MaintenanceID("", world.NodeName(i), "bench")
		status, err := world.Ask[api.Status](ctx, t.Client, id, api.QueryStatus)
		if err != nil || !status.Phase.Ended() {
			problems = append(problems, fmt.Errorf("%s: %s, waiting for %s %w", id, status.Phase, status.WaitingFor, errors.Join(err, ctx.Err())))
		}
	}
	return errors.Join(problems...)
}

// sightings is what the watch client saw.
type sightings struct {
	cordons, releases []time.Time
	changed           chan struct{}
	failed            chan error
}

// watchNodes notes when nodes are cordoned and released, and plays the requestor: it is done as soon as a node is
// Ready.
func (b *bench) watchNodes(ctx context.Context) (*sightings, error) {
	s := &sightings{changed: make(chan struct{}), failed: make(chan error, 1)}
	cordoned, done := map[string]bool{}, map[string]bool{}
	see := func(_ watch.EventType, node *corev1.Node) {
		now := time.Now()
		switch {
		case node.Spec.Unschedulable && !cordoned[node.Name]:
			cordoned[node.Name] = true
			s.cordons = append(s.cordons, now)
		case !node.Spec.Unschedulable && cordoned[node.Name]:
			cordoned[node.Name] = false
			s.releases = append(s.releases, now)
			s.changed <- struct{}{}
		}
		if node.Labels[api.PhaseLabel] == string(api.Ready) && !done[node.Name] {
			done[node.Name] = true
			go func() {
				id := api.MaintenanceID("", node.Name, "bench")
				if err := b.Temporal.Client.SignalWorkflow(ctx, id, "", api.MsgDone, nil); err != nil {
					s.failed <- fmt.Errorf("signalling %s: %w", id, err)
				}
			}()
		}
	}
	return s, witness.Nodes(ctx, b.Cluster.Client, see, func(err error) { s.failed <- err })
}

func (s *sightings) untilReleased(ctx context.Context, n int) error {
	for released := 0; released < n; released++ {
		select {
		case <-s.changed:
		case err := <-s.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%d of %d nodes came back: %w", released, n, ctx.Err())
		}
	}
	return nil
}

// handOvers pairs each release with the cordon that took its slot: the slots being full, the k-th release makes room
// for the k-th cordon after the first ones. The times between are sorted.
func (s *sightings) handOvers(slots int) (gaps []time.Duration, err error) {
	for k := 0; k+slots < len(s.cordons) && k < len(s.releases); k++ {
		gaps = append(gaps, s.cordons[k+slots].Sub(s.releases[k]))
	}
	if len(gaps) == 0 {
		err = errors.New("no hand-over was seen")
	}
	slices.Sort(gaps)
	return gaps, err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
