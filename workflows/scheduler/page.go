package scheduler

import (
	"cmp"
	"slices"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// pageSize, maxPageSize and maxPageText bound a page of the state query, which has to fit into one payload.
const (
	pageSize    = 100
	maxPageSize = 2000
	maxPageText = 768 << 10
)

// page is all of what is bounded, and a page of the pending requests.
func (s *scheduler) page(asked api.StateRequest) api.State {
	if asked.Limit <= 0 {
		asked.Limit = pageSize
	}
	pending := s.Pending
	limit := min(asked.Limit, maxPageSize)
	begin := min(max(asked.Offset, 0), len(pending))
	end := begin
	for size := 0; end < len(pending) && end-begin < limit && size < maxPageText; end++ {
		size += len(asJSON(pending[end]))
	}
	state := api.State{
		Limits: s.Limits, Revision: s.Revision, Freezes: s.Freezes,
		Rebuilding: !s.Rebuilt, PreviousRun: s.PreviousRun, Holders: s.Holders,
		PendingAll: len(pending), Pending: pending[begin:end], Decisions: s.Decisions, Trouble: s.decisions.trouble,
	}
	state.Strays, state.StraysAll = s.strays.list()
	if h := s.Horizon; h != nil {
		state.Windows = &api.WindowsKnown{At: h.At, Zones: h.Zones, Digest: h.Digest, Since: h.Since}
	}
	if end < len(pending) {
		state.NextOffset = end
	}
	if s.Observed != nil {
		seen := s.Observed.Observation
		state.Nodes, state.ObservedAt = seen.Nodes, &seen.At
		state.Unavailable, state.UnavailableOthers = schedule.Unavailable(s.decisionInput())
	}
	return state
}

// summary counts what the state lists.
func (s *scheduler) summary() (api.Summary, error) {
	in := s.decisionInput()
	sum := api.Summary{
		Usage: schedule.UsageOf(in), Rebuilding: !s.Rebuilt, Freezes: len(s.Freezes), Strays: s.strays.counts(),
		Pending: pendingCounts(s.Pending, in), FreezesRunning: len(s.controls.notice().Reasons),
	}
	if seen := s.Observed; seen != nil {
		sum.Nodes, sum.ObservedAt = seen.Observation.Nodes, &seen.Observation.At
	}
	if len(s.Pending) > 0 {
		oldest := slices.MinFunc(s.Pending, func(a, b api.PendingRequest) int { return a.Created.Compare(b.Created) })
		sum.OldestPending = &oldest.Created
	}
	if t := s.decisions.trouble; t != nil {
		sum.TroubleSince = &t.Since
	}
	return sum, nil
}

// pendingCounts counts requests by what they wait for, by kind, and by the first group of their node.
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
