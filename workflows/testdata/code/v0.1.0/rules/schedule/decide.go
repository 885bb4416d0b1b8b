package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Decide chooses the requests that get a slot now and says of every other why it waits. It follows the scheduling
// algorithm of maintenance-operator, with groups and freezes besides, and differs in one point: it walks all
// candidates, so that one that does not fit never keeps a later one that does from going.
//
// The decision depends on the values in the input only, not on the order of its lists, and the input is left as it
// is. Limits are taken as valid (Limits.Validate) and with their defaults.
func Decide(in Input) Decision {
	ranked := rank(in)
	if code, reason := halted(in); code != "" {
		return refuseAll(ranked, code, reason)
	}
	r := newRound(in)
	r.decision.Refused = make([]Refusal, 0, len(ranked))
	for _, c := range ranked {
		r.consider(*c.Request)
	}
	return r.decision
}

// halted returns why nothing at all may be granted, or no code.
func halted(in Input) (Code, string) {
	switch {
	case len(in.Freezes) > 0:
		return Frozen, frozenReason(in.Freezes)
	case in.Observed == nil:
		return Unobserved, "the cluster has not been observed yet"
	case in.Observed.Revision != in.Revision:
		return Unobserved, "the cluster has not been observed since the limits changed"
	}
	return "", ""
}

func refuseAll(ranked []contender, code Code, reason string) Decision {
	d := Decision{Refused: make([]Refusal, 0, len(ranked))}
	for _, c := range ranked {
		d.Refused = append(d.Refused, Refusal{Request: *c.Request, Code: code, Reason: reason})
	}
	return d
}

// frozenReason names who froze and why, oldest first.
func frozenReason(freezes []Freeze) string {
	sorted := slices.SortedFunc(slices.Values(freezes), func(a, b Freeze) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.By, b.By), cmp.Compare(a.Reason, b.Reason))
	})
	var b strings.Builder
	b.WriteString("frozen")
	for i, f := range sorted {
		if i == maxNamed {
			fmt.Fprintf(&b, " and %d more", len(sorted)-maxNamed)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" by " + f.By)
		if f.Reason != "" {
			b.WriteString(" (" + f.Reason + ")")
		}
	}
	return b.String()
}

// round is the state of one decision.
type round struct {
	limits   Limits
	observed *Observation
	// holders are the grants by node, returned the nodes seen unavailable and given back since, unseen the granted
	// nodes of which nothing was observed.
	holders  map[string]Grant
	returned map[string]bool
	unseen   []string
	// best is the requestor of the best-ranked candidate of each node considered so far, held what each requestor holds.
	best map[string]string
	held map[string][]string
	// cluster and groups count against the limits. Groups are filled as candidates and holders name them.
	cluster gauge
	groups  map[string]gauge

	decision Decision
}

// newRound counts what is unavailable and in maintenance before the first grant (maintenance-operator, scheduling
// algorithm steps 1 and 2).
func newRound(in Input) *round {
	r := &round{
		limits:   in.Limits.WithDefaults(),
		observed: in.Observed,
		holders:  make(map[string]Grant, len(in.Granted)),
		returned: make(map[string]bool, len(in.Released)),
		best:     make(map[string]string, len(in.Pending)),
		groups:   make(map[string]gauge),
	}
	granted := slices.SortedFunc(slices.Values(in.Granted), func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Requestor, b.Requestor), cmp.Compare(a.RequestID, b.RequestID))
	})
	r.held = heldNodes(granted)
	// Slots are counted in nodes: should two maintenances hold one, it is the first that is named.
	granted = slices.CompactFunc(granted, func(a, b Grant) bool { return a.Node == b.Node })
	for _, g := range granted {
		r.holders[g.Node] = g
		if _, seen := r.observed.Facts[g.Node]; !seen {
			r.unseen = append(r.unseen, g.Node)
		}
	}
	r.cluster = newGauge("", r.limits.MaxParallel, r.limits.MaxUnavailable,
		GroupCount{Nodes: r.observed.Nodes, Unavailable: r.observed.Unavailable}, r.unseen)
	for _, node := range in.Released {
		r.giveBack(node)
	}
	for _, g := range granted {
		r.hold(g.Node)
	}
	return r
}

// group returns the gauge of a group key. A key of no group, which no observation of this revision has, has no
// limits.
func (r *round) group(key string) gauge {
	g, ok := r.groups[key]
	if !ok {
		group, _ := r.limits.Group(key)
		g = newGauge("group "+key+" ", group.MaxParallel, group.MaxUnavailable, r.observed.Groups[key], r.unseen)
		r.groups[key] = g
	}
	return g
}

// giveBack counts a released node that was seen unavailable as available again. If it is granted anew, hold then
// counts it like any other.
func (r *round) giveBack(node string) {
	facts := r.observed.Facts[node]
	if r.returned[node] || facts.Missing || !facts.Unavailable {
		return
	}
	r.returned[node] = true
	r.cluster.unavailable.used--
	for _, key := range facts.Groups {
		r.group(key).unavailable.used--
	}
}

// hold counts a granted node against the cluster and its groups.
func (r *round) hold(node string) {
	facts, seen := r.observed.Facts[node]
	if !seen {
		return // in every gauge from its start
	}
	cost := 1
	if r.isUnavailable(node, facts) {
		cost = 0
	}
	gauges := []gauge{r.cluster}
	for _, key := range facts.Groups {
		gauges = append(gauges, r.group(key))
	}
	for _, g := range gauges {
		if facts.Missing {
			g.parallel.hold(node, 1) // a node that is gone is not among those that can be unavailable
			continue
		}
		g.hold(node, cost)
	}
}

// isUnavailable says that the node is in the unavailable counts without a maintenance.
func (r *round) isUnavailable(node string, facts NodeFacts) bool {
	return facts.Unavailable && !r.returned[node]
}

// consider grants the request or refuses it. Requests come in rank order.
func (r *round) consider(req Request) {
	if holder, held := r.holders[req.Node]; held {
		r.refuse(req, NodeBusy, req.Node+" is in maintenance for "+holder.Requestor)
		return
	}
	if better, ok := r.best[req.Node]; ok {
		// Also where the better one was passed over: this one would need the same capacity.
		r.refuse(req, Outranked, "the request of "+better+" for "+req.Node+" goes first")
		return
	}
	facts, seen := r.observed.Facts[req.Node]
	if !seen {
		r.refuse(req, Unobserved, req.Node+" has not been observed yet")
		return
	}
	if facts.Missing {
		r.refuse(req, NodeMissing, missingReason(req.Node, facts.Suggestion))
		return
	}
	if reason := r.overHeld(req.Requestor); reason != "" {
		// Whoever ranks below may have the node: what binds is the requestor's, and no capacity that both would need.
		r.refuse(req, Quota, reason)
		return
	}
	r.best[req.Node] = req.Requestor
	if b := r.binding(facts, r.isUnavailable(req.Node, facts)); b != nil {
		r.refuse(req, b.code, b.reason())
		return
	}
	r.hold(req.Node)
	r.held[req.Requestor] = append(r.held[req.Requestor], req.Node)
	r.decision.Grants = append(r.decision.Grants, req)
}

// binding returns the first limit that keeps a candidate out: the cluster's, then those of its groups in order.
func (r *round) binding(facts NodeFacts, alreadyUnavailable bool) *bound {
	if b := r.cluster.binding(alreadyUnavailable); b != nil {
		return b
	}
	for _, key := range facts.Groups {
		if b := r.group(key).binding(alreadyUnavailable); b != nil {
			return b
		}
	}
	return nil
}

func (r *round) refuse(req Request, code Code, reason string) {
	r.decision.Refused = append(r.decision.Refused, Refusal{Request: req, Code: code, Reason: reason})
}

func missingReason(node, suggestion string) string {
	text := "there is no node " + node
	if suggestion != "" {
		text += "; did you mean " + suggestion + "?"
	}
	return text
}
