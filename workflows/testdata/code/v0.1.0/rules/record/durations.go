package record

import (
	"slices"
	"time"
)

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Observe keeps account of what is in the way: what a look at the node found is added to what was known, and what it no
// longer found gets its Until. Of more than MaxBlockers those go first that were in the way for the shortest time and no
// longer are; dropped counts them.
func Observe(known, found []Blocker, at time.Time) (all []Blocker, dropped int) {
	open := map[string]int{}
	for i, b := range known {
		if b.Until.IsZero() {
			open[b.Pod] = i
		}
	}
	all = slices.Clone(known)
	for _, b := range found {
		i, before := open[b.Pod]
		if !before {
			all = append(all, b)
			continue
		}
		delete(open, b.Pod)
		since := all[i].Since
		all[i] = b
		all[i].Since = earliest(since, b.Since)
	}
	for _, i := range open {
		all[i].Until = at
	}
	for len(all) > MaxBlockers {
		all = slices.Delete(all, leastOf(all), leastOf(all)+1)
		dropped++
	}
	return all, dropped
}

// leastOf is the blocker that says least: the shortest of those that are over, or else the newest.
func leastOf(all []Blocker) int {
	least := len(all) - 1
	for i, b := range all {
		over, shortest := !b.Until.IsZero(), all[least]
		if over && (shortest.Until.IsZero() || b.Until.Sub(b.Since) < shortest.Until.Sub(shortest.Since)) {
			least = i
		}
	}
	return least
}
