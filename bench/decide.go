package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"drydock/rules/schedule"
	"drydock/rules/schedule/scheduletest"
)

// decideRounds are measured for each size.
const decideRounds = 41

// decide is how long one decision of the scheduler takes, where some limits bind and others do not.
func (b *bench) decide(context.Context) ([]Figure, error) {
	var figures []Figure
	var times []float64
	sizes := []int{1000, 5000, 15000}
	for _, nodes := range sizes {
		in, err := scheduletest.Cluster(nodes, schedule.Limits{MaxParallel: schedule.Percent(20), MaxUnavailable: schedule.Percent(10)})
		if err != nil {
			return nil, err
		}
		var took []time.Duration
		for range decideRounds {
			began := time.Now()
			schedule.Decide(in)
			took = append(took, time.Since(began))
		}
		// The least, too: other processes only ever make it longer.
		times = append(times, ms(slices.Min(took)))
		name := fmt.Sprintf("decision, %d nodes and %d candidates, median", nodes, len(in.Pending))
		if nodes == sizes[len(sizes)-1] {
			figures = append(figures, atMost(name, ms(median(took)), "ms", 20))
			continue
		}
		figures = append(figures, report(name, ms(median(took)), "ms"))
	}
	// n log n is 3.4 for three times as many, and n squared is 9.
	return append(figures, atMost("- 15000 / 5000 nodes, of the shortest", times[2]/times[1], "ratio", 5)), nil
}
