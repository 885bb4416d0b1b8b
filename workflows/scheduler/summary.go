package scheduler

import (
	"cmp"
	"slices"

	"drydock/api"
	"drydock/rules/schedule"
)

// summaryOf counts what the state lists.
func summaryOf(s *scheduler) api.Summary {
	in := s.decisionInput()
	sum := api.Summary{
		Usage: schedule.UsageOf(in), Rebuilding: !s.rebuilt, Freezes: len(s.controls.freezes), Strays: s.strays.counts(),
		Pending: pendingCounts(s.ledger.pending, in),
	}
	for _, f := range s.controls.freezes {
		if f.Running {
			sum.FreezesRunning++
		}
	}
	if seen := s.observer.latest; seen != nil {
		sum.Nodes, sum.ObservedAt = seen.Observation.Nodes, &seen.Observation.At
	}
	if len(s.ledger.pending) > 0 {
		oldest := slices.MinFunc(s.ledger.pending, func(a, b api.PendingRequest) int { return a.Created.Compare(b.Created) })
		sum.OldestPending = &oldest.Created
	}
	if t := s.decisions.trouble; t != nil {
		sum.TroubleSince = &t.Since
	}
	return sum
}

// pendingCounts counts requests by what they wait for and by the first group of their node.
func pendingCounts(pending []api.PendingRequest, in schedule.Input) []api.PendingCount {
	var counts []api.PendingCount
	at := map[api.PendingCount]int{}
	for _, p := range pending {
		kind := api.PendingCount{Code: p.Code, Kind: p.Kind}
		if groups := in.GroupsOf(p.Node); len(groups) > 0 {
			kind.Group = groups[0]
		}
		i, counted := at[kind]
		if !counted {
			i = len(counts)
			at[kind] = i
			counts = append(counts, kind)
		}
		counts[i].Count++
	}
	slices.SortFunc(counts, func(a, b api.PendingCount) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return counts
}

// counts are the stray marks by kind. Of those of others only the first are known one by one, and the rest are counted as
// foreign.
func (s *strays) counts() []api.StrayCount {
	counts := []api.StrayCount{
		{Kind: api.StrayForeign, Count: max(0, s.foreignAll-len(s.foreign))},
		{Kind: api.StrayMalformed}, {Kind: api.StrayUnknown}, {Kind: api.StrayOrphan},
	}
	for _, marks := range [][]api.StrayMark{s.ours, s.foreign} {
		for _, m := range marks {
			if i := slices.IndexFunc(counts, func(c api.StrayCount) bool { return c.Kind == m.Kind }); i >= 0 {
				counts[i].Count++
			}
		}
	}
	return counts
}
