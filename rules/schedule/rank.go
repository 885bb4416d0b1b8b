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
	// gang is nil for a request by itself.
	gang *gang
}

// rank returns the pending requests, best first (maintenance-operator, scheduling algorithm step 5, with the
// priority before it). The order is total, so that it does not depend on the order of in.Pending. A gang counts as one
// request of its requestor: one that asks for many nodes at once would otherwise come after whoever asks for few. Remediations
// are no requestor's share: among them only priority and age count.
func rank(in Input) []contender {
	gangs := gangsOf(in)
	inProgress := make(map[string]bool)
	for _, g := range in.Granted {
		inProgress[g.Requestor] = inProgress[g.Requestor] || !g.Remediation
	}
	pending := make(map[string]int)
	for i := range in.Pending {
		r := &in.Pending[i]
		if r.Remediation {
			continue
		}
		if g := gangs.of(r); g == nil || g.inPart || g.countsFor(r.Requestor) {
			pending[r.Requestor]++
		}
	}
	ranked := make([]contender, len(in.Pending))
	for i := range in.Pending {
		r := &in.Pending[i]
		if ranked[i].Request = r; r.Remediation {
			continue
		}
		ranked[i] = contender{Request: r, inProgress: inProgress[r.Requestor], pending: pending[r.Requestor], gang: gangs.of(r)}
	}
	slices.SortFunc(ranked, contender.compare)
	for i, c := range ranked {
		if c.gang != nil {
			c.gang.ranks = append(c.gang.ranks, i)
		}
	}
	return ranked
}

// compare is negative if c goes before d. Nothing that is planned delays a repair.
func (c contender) compare(d contender) int {
	if c.Remediation != d.Remediation {
		if c.Remediation {
			return -1
		}
		return 1
	}
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
