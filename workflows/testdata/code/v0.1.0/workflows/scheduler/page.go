package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
)

// pageSize, maxPageSize and maxPageText bound a page of the state query, which has to fit into one payload.
const (
	pageSize    = 100
	maxPageSize = 2000
	maxPageText = 768 << 10
)

// page answers the query: all of what is bounded, and a page of the rest.
func (s *scheduler) page(asked api.StateRequest) api.State {
	if asked.Limit <= 0 {
		asked.Limit = pageSize
	}
	pending := s.ledger.pending
	limit := min(asked.Limit, maxPageSize)
	begin := min(max(asked.Offset, 0), len(pending))
	end := begin
	for size := 0; end < len(pending) && end-begin < limit && size < maxPageText; end++ {
		size += len(asJSON(pending[end]))
	}
	state := api.State{
		Limits: s.controls.limits, Revision: s.controls.revision, Freezes: s.controls.freezes,
		Rebuilding: !s.rebuilt, PreviousRun: s.previousRun, Holders: s.ledger.holders,
		PendingAll: len(pending), Pending: pending[begin:end], Decisions: s.decisions.entries,
	}
	state.Strays, state.StraysAll = s.strays.told()
	state.Trouble = s.decisions.trouble
	if end < len(pending) {
		state.NextOffset = end
	}
	if s.observer.latest != nil {
		seen := s.observer.latest.Observation
		state.Nodes, state.Unavailable, state.ObservedAt = seen.Nodes, seen.Unavailable, &seen.At
	}
	return state
}
