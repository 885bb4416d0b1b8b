package drainplan

import (
	"slices"
)

// Reached is the last entry of some plans up to which a node was brought that has these targets; nil if it was brought
// to none. It is for a node of which nothing but its targets is known.
func Reached(plans []Plan, targets []Entry) *Entry {
	if len(targets) == 0 {
		return nil
	}
	var all []Entry
	for _, p := range plans {
		all = append(all, p.Entries()...)
	}
	slices.SortFunc(all, compareEntries)
	var reached *Entry
	for i, e := range slices.Compact(all) {
		for _, p := range plans {
			past, _ := slices.BinarySearchFunc(p.tiers, e, func(t tier, e Entry) int { return compareEntries(t.Entry, e) })
			if past < p.Len() && p.Entry(past) == e {
				past++
			}
			if _, more := Union(targets, p.Targets(past-1)); more {
				return reached
			}
		}
		reached = &all[i]
	}
	return reached
}
