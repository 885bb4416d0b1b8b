package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/schedule/scheduletest"
)

// decideRounds are measured for each size.
const decideRounds = 41

// decide is how long one decision of the scheduler takes, where some limits bind and others do not.
func (b *bench) decide(context.Context) []Figure {
	var figures []Figure
	var times, medians []float64
	var labels []string
	sizes := []int{1000, 5000, 15000}
	for _, nodes := range sizes {
		in := must(scheduletest.Cluster(nodes, schedule.Limits{MaxParallel: schedule.Percent(20), MaxUnavailable: schedule.Percent(10)}))
		took := decisions(in)
		// The least, too: other processes only ever make it longer.
		times = append(times, ms(slices.Min(took)))
		medians, labels = append(medians, ms(median(took))), append(labels, fmt.Sprint(nodes))
		name := fmt.Sprintf("decision, %d nodes and %d candidates, median", nodes, len(in.Pending))
		if nodes == sizes[len(sizes)-1] {
			figures = append(figures, atMost(name, ms(median(took)), "ms", 20))
			continue
		}
		figures = append(figures, report(name, ms(median(took)), "ms"))
	}
	shown := plot{"One decision of the scheduler, of so many nodes, a third of them waiting", "ms", labels, []series{{"median", medians}}}
	noError(shown.draw("decide"))
	in := must(scheduletest.Cluster(3*sizes[len(sizes)-1], schedule.Limits{MaxParallel: schedule.Percent(20), MaxUnavailable: schedule.Percent(10)}))
	in = scheduletest.InGangs(in, 20)
	figures = append(figures, report(fmt.Sprintf("decision, %d candidates in gangs of 20, median", len(in.Pending)), ms(median(decisions(in))), "ms"))
	// n log n is 3.4 for three times as many, and n squared is 9.
	return append(figures, atMost("- 15000 / 5000 nodes, of the shortest", times[2]/times[1], "ratio", 5))
}

const (
	lockstepPlans = 50
	lockstepNodes = 5000
)

// lockstep is how long one decision for all plans in lockstep takes: each has its entry beside the standard ones, and half
// of the nodes.
func (b *bench) lockstep(context.Context) []Figure {
	nodes := make([]drainplan.Shared, lockstepNodes)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("worker-%04d", i)
	}
	parties := make([]drainplan.Party, lockstepPlans)
	for p := range parties {
		tiers := must(drainplan.New([]drainplan.Entry{{PodType: drainplan.Default, PodPriority: int32(1000 * p)}}, drainplan.Types()))
		parties[p] = drainplan.Party{Name: fmt.Sprintf("plan-%d", p), Tiers: tiers}
		for i := range nodes {
			// Neighbouring nodes have different plans.
			if (i*7919+p*104729)%1009%2 == 0 {
				parties[p].Nodes = append(parties[p].Nodes, nodes[i].Name)
			}
		}
	}
	var took []time.Duration
	for {
		began := time.Now()
		r := drainplan.Resolve(parties, nodes)
		took = append(took, time.Since(began))
		if len(r.Raised) == 0 {
			break
		}
		for p := range parties {
			parties[p].Tier = r.Tiers[p]
		}
		for i := range r.Nodes {
			r.Nodes[i].Drained = true
		}
		nodes = r.Nodes
	}
	name := fmt.Sprintf("lockstep of %d plans over %d nodes, a decision, median of %d", lockstepPlans, lockstepNodes, len(took))
	return []Figure{
		atMost(name, ms(median(took)), "ms", 50),
		report("- the longest", ms(slices.Max(took)), "ms"),
	}
}

// decisions are how long the same decision takes, again and again.
func decisions(in schedule.Input) (took []time.Duration) {
	for range decideRounds {
		began := time.Now()
		schedule.Decide(in)
		took = append(took, time.Since(began))
	}
	return took
}
