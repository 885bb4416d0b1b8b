package schedule

import (
	"cmp"
	"slices"
)

// contender is a pending request with what its rank depends on. The two counts are those at the start of the
// round, so that a grant does not reorder the requests behind it.
type contender struct {
	*Request
	inProgress bool
	pending    int
}

// rank returns the pending requests, best first (maintenance-operator, scheduling algorithm step 5, with the
// priority before it). The order is total, so that it does not depend on the order of in.Pending.
func rank(in Input) []contender {
	inProgress := make(map[string]bool)
	for _, g := range in.Granted {
		inProgress[g.Requestor] = true
	}
	pending := make(map[string]int)
	for i := range in.Pending {
		pending[in.Pending[i].Requestor]++
	}
	ranked := make([]contender, len(in.Pending))
	for i := range in.Pending {
		r := &in.Pending[i]
		ranked[i] = contender{Request: r, inProgress: inProgress[r.Requestor], pending: pending[r.Requestor]}
	}
	slices.SortFunc(ranked, contender.compare)
	return ranked
}

// compare is negative if c goes before d.
func (c contender) compare(d contender) int {
	if order := cmp.Compare(d.Priority, c.Priority); order != 0 {
		return order
	}
	if c.inProgress != d.inProgress {
		if c.inProgress {
			return -1
		}
		return 1
	}
	if order := cmp.Compare(c.pending, d.pending); order != 0 {
		return order
	}
	if order := c.Created.Compare(d.Created); order != 0 {
		return order
	}
	return cmp.Or(
		cmp.Compare(c.Node, d.Node),
		cmp.Compare(c.Requestor, d.Requestor),
		cmp.Compare(c.ID, d.ID),
	)
}
