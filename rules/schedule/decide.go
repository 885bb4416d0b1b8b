package schedule

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Decide chooses the requests that get a slot now and says of every other why it waits. It follows the scheduling
// algorithm of maintenance-operator, with groups and freezes besides, and differs in one point: it walks all
// candidates, so that one that does not fit never keeps a later one that does from going. A gang alone does: it is granted
// as a whole at the rank of its best member, and what the first that has to wait for maintenances needs is reserved.
//
// The decision depends on the values in the input only, not on the order of its lists, and the input is left as it
// is. Limits are taken as valid (Limits.Validate) and with their defaults.
func Decide(in Input) Decision {
	nodes, controlPlane := in.split()
	first, d := controlPlane.decideControlPlane(), decideNodes(nodes)
	d.Grants, d.Refused = append(first.Grants, d.Grants...), append(first.Refused, d.Refused...)
	return d
}

// decideNodes decides on the slots of nodes.
func decideNodes(in Input) Decision {
	ranked := rank(in)
	h := newHours(in)
	if code, reason := halted(in); code != "" {
		return h.report(refuseAll(ranked, func(c contender) Refusal {
			known := code == Unobserved && in.Seen[c.ID]
			switch {
			case known && c.gang != nil && c.gang.waitsForOthers():
				return Refusal{Request: *c.Request, Code: GangIncomplete, Reason: c.gang.incomplete(c.gang.nodes())}
			case known && !h.allow(*c.Request, nil):
				return h.closed(*c.Request)
			}
			return Refusal{Request: *c.Request, Code: code, Reason: reason}
		}))
	}
	r := newRound(in)
	r.hours, r.seen, r.ranked = h, in.Seen, ranked
	r.refusals = make([]Refusal, len(ranked))
	for i, c := range ranked {
		if c.gang == nil || c.gang.inPart {
			r.consider(i)
		} else if c.gang.ranks[0] == i {
			r.considerGang(c.gang)
		}
	}
	return h.report(r.decision())
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

func refuseAll(ranked []contender, why func(contender) Refusal) Decision {
	d := Decision{Refused: make([]Refusal, 0, len(ranked))}
	for _, c := range ranked {
		d.Refused = append(d.Refused, why(c))
	}
	return d
}

// frozen begins the reason of a refusal whose code is Frozen.
const frozen = "frozen"

// IsFrozen reports whether the reason of a refusal is that of the code Frozen.
func IsFrozen(reason string) bool { return strings.HasPrefix(reason, frozen+" by ") }

// heldFor is in the reason of a refusal whose code is NodeBusy, between the node and the requestor who has it.
const heldFor = " is in maintenance for "

// HolderIn is the requestor who has the node, of the reason of a refusal whose code is NodeBusy.
func HolderIn(reason string) (requestor string, isBusy bool) {
	_, requestor, isBusy = strings.Cut(reason, heldFor)
	return requestor, isBusy
}

// frozenReason names who froze and why, oldest first.
func frozenReason(freezes []Freeze) string {
	sorted := slices.SortedFunc(slices.Values(freezes), func(a, b Freeze) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.By, b.By), cmp.Compare(a.Reason, b.Reason))
	})
	var b strings.Builder
	b.WriteString(frozen)
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
	// holders are the grants by node, unseen the granted nodes of which nothing was observed.
	holders map[string]Grant
	nodes   nodeSets
	unseen  unseen
	// best is who goes first for each node considered so far, held what each requestor holds.
	best map[string]claim
	held map[string][]string
	// cluster and groups count against the limits. Groups are filled as candidates and holders name them.
	cluster gauge
	groups  map[string]gauge
	// remediations have a limit of their own.
	remediations remediations
	// hours knows the windows, seen the requests whose node is known to be there.
	hours *hours
	seen  map[string]bool

	// ranked are the requests, refusals the answers to them, which have no code for those that are granted.
	ranked   []contender
	refusals []Refusal
	kept     reservation
}

// nodeSets are nodes that are not as they were observed: those that were seen unavailable and given back since, and those that profiles take
// out of service beside the ones that maintenances hold.
type nodeSets struct{ returned, out map[string]bool }

// claim is what keeps those of lower rank from a node.
type claim struct {
	// by is the requestor of the best-ranked candidate, gang the gang that the node is reserved for, if any.
	by, gang string
	// granted: it got its slot. stuck: no end of a maintenance would let it.
	granted, stuck bool
}

// newRound counts what is unavailable and in maintenance before the first grant (maintenance-operator, scheduling
// algorithm steps 1 and 2).
func newRound(in Input) *round {
	r := &round{
		limits:   in.Limits.WithDefaults(),
		observed: in.Observed,
		holders:  make(map[string]Grant, len(in.Granted)),
		nodes:    nodeSets{returned: make(map[string]bool, len(in.Released)), out: map[string]bool{}},
		best:     make(map[string]claim, len(in.Pending)),
		groups:   make(map[string]gauge),
	}
	r.remediations = newRemediations(r.limits, in)
	maintenances, entering := byKind(in.Granted)
	granted := slices.SortedFunc(slices.Values(maintenances), func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), plannedFirst(a, b), cmp.Compare(a.Requestor, b.Requestor), cmp.Compare(a.RequestID, b.RequestID))
	})
	r.held = heldNodes(granted)
	// Slots are counted in nodes: should two maintenances hold one, it is the first that is named.
	granted = slices.CompactFunc(granted, func(a, b Grant) bool { return a.Node == b.Node })
	for _, g := range granted {
		r.holders[g.Node] = g
		if _, seen := r.observed.Facts[g.Node]; !seen {
			r.unseen.all = append(r.unseen.all, g.Node)
			if !g.Remediation {
				r.unseen.planned = append(r.unseen.planned, g.Node)
			}
		}
	}
	r.unseen.all = append(r.unseen.all, unseenOf(r, entering)...)
	r.cluster = newGauge("", r.limits.MaxParallel, r.limits.MaxUnavailable,
		GroupCount{Nodes: r.observed.Nodes, Unavailable: r.observed.Unavailable}, r.unseen)
	for _, node := range in.Released {
		r.giveBack(node)
	}
	for _, g := range granted {
		r.hold(g.Node, g.Remediation)
	}
	for _, node := range entering {
		takeOut(r, node)
	}
	r.cluster.unavailable.others = r.others()
	return r
}

// others are the nodes that are known to be unavailable without a maintenance, by name.
func (r *round) others() []UnavailableNode {
	named := slices.DeleteFunc(slices.Clone(r.observed.Others), func(n UnavailableNode) bool {
		_, held := r.holders[n.Node]
		return held || r.nodes.out[n.Node] || r.nodes.returned[n.Node]
	})
	slices.SortFunc(named, func(a, b UnavailableNode) int { return cmp.Compare(a.Node, b.Node) })
	return named
}

// Unavailable counts the nodes that are unavailable by what a decision goes by, those in maintenance among them, and names
// the others as far as they are known.
func Unavailable(in Input) (count int, others []UnavailableNode) {
	if in.Observed == nil {
		return 0, nil
	}
	in, _ = in.split()
	r := newRound(in)
	return r.cluster.unavailable.used, r.cluster.unavailable.others
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
	if r.nodes.returned[node] || facts.Missing || !facts.Unavailable {
		return
	}
	r.nodes.returned[node] = true
	r.cluster.unavailable.giveBack()
	for _, key := range facts.Groups {
		r.group(key).unavailable.giveBack()
	}
}

// hold counts a granted node against the cluster and its groups.
func (r *round) hold(node string, remediation bool) {
	if remediation {
		r.remediations.hold(node)
	}
	facts, seen := r.observed.Facts[node]
	if !seen {
		return // in every gauge from its start
	}
	cost := 1
	if r.isUnavailable(node, facts) {
		cost = 0
	}
	for g := range r.gauges(facts) {
		if !remediation {
			g.parallel.hold(node, 1)
		}
		if !facts.Missing && !r.nodes.out[node] { // a node that is gone is not among those that can be unavailable
			g.unavailable.hold(node, cost)
		}
	}
}

// isUnavailable reports whether the node is in the unavailable counts without a maintenance.
func (r *round) isUnavailable(node string, facts NodeFacts) bool {
	return facts.Unavailable && !r.nodes.returned[node] || r.nodes.out[node]
}

// decision collects the answers, each list in rank order.
func (r *round) decision() Decision {
	d := Decision{Refused: make([]Refusal, 0, len(r.refusals))}
	for i := range r.refusals {
		if r.refusals[i].Code == "" {
			d.Grants = append(d.Grants, *r.ranked[i].Request)
		} else {
			d.Refused = append(d.Refused, r.refusals[i])
		}
	}
	return d
}

// consider grants a request by itself or refuses it. Requests come in rank order.
func (r *round) consider(i int) {
	req := *r.ranked[i].Request
	switch {
	case req.Kind == KindProfile:
		enter(r, i)
		return
	case req.Remediation:
		r.remediate(i)
		return
	}
	// A reservation waits for the gangs that hold slots, and would for ever if the rest of one of them waited for it.
	reserved := r.ranked[i].gang == nil
	if away := r.away(req, reserved); away.Code != "" {
		r.refusals[i] = away
		return
	}
	if code, reason := r.overHeld(req.Requestor, 1, reserved); code != "" {
		// A request that ranks below may have the node: what binds is the requestor's, and no capacity that both would need.
		r.refuse(i, code, reason)
		return
	}
	facts := r.observed.Facts[req.Node]
	if !r.hours.allow(req, facts.Groups) {
		// Another request may have the node: a window of this one's own is closed for no other.
		r.refusals[i] = r.hours.closed(req)
		return
	}
	unavailable := r.isUnavailable(req.Node, facts)
	if b := r.binding(facts, unavailable, reserved); b != nil {
		code, reason := b.refusal(1, r.kept.gang)
		r.refuse(i, code, reason)
		r.best[req.Node] = claim{by: req.Requestor, stuck: !unavailable && r.isStuck(facts)}
		r.hours.wakeAtClose()
		return
	}
	r.grant(req)
}

// away is why a request can not be judged by limits: its node is in maintenance, another one's, or not known to be there.
func (r *round) away(req Request, reserved bool) Refusal {
	refusal := func(code Code, reason string) Refusal { return Refusal{Request: req, Code: code, Reason: reason} }
	if holder, held := r.holders[req.Node]; held {
		return refusal(NodeBusy, req.Node+heldFor+holder.Requestor)
	}
	switch better, ok := r.best[req.Node]; {
	case ok && better.gang == "":
		// Also where the better one was passed over: this one would need the same capacity.
		return refusal(Outranked, "the request of "+better.by+" for "+req.Node+" goes first")
	case ok && reserved:
		return refusal(Reserved, "gang "+better.gang+" goes first and needs "+req.Node)
	}
	facts, seen := r.observed.Facts[req.Node]
	switch {
	case !seen && r.seen[req.ID] && !r.hours.allow(req, nil):
		return r.hours.closed(req)
	case !seen:
		return refusal(Unobserved, req.Node+" has not been observed yet")
	case facts.Missing:
		return refusal(NodeMissing, missingReason(req.Node, facts.Suggestion))
	}
	return Refusal{}
}

// grant gives a request its slot: that is what its answer says where it has no code.
func (r *round) grant(req Request) {
	r.best[req.Node] = claim{by: req.Requestor, granted: true}
	r.hold(req.Node, req.Remediation)
	if !req.Remediation {
		r.held[req.Requestor] = append(r.held[req.Requestor], req.Node)
	}
}

// gauges are those that count a node: the cluster's, then those of its groups in order.
func (r *round) gauges(facts NodeFacts) iter.Seq[gauge] {
	return func(yield func(gauge) bool) {
		if !yield(r.cluster) {
			return
		}
		for _, key := range facts.Groups {
			if !yield(r.group(key)) {
				return
			}
		}
	}
}

// binding returns the first limit that keeps a candidate out.
func (r *round) binding(facts NodeFacts, alreadyUnavailable, reserved bool) *bound {
	for g := range r.gauges(facts) {
		if b := g.binding(alreadyUnavailable, reserved); b != nil {
			return b
		}
	}
	return nil
}

// isStuck reports whether an available node could not go even once all maintenances have ended.
func (r *round) isStuck(facts NodeFacts) bool {
	for g := range r.gauges(facts) {
		if g.parallel.limit < 1 || g.unavailable.standing >= g.unavailable.limit {
			return true
		}
	}
	return false
}

func (r *round) refuse(i int, code Code, reason string) {
	r.refusals[i] = Refusal{Request: *r.ranked[i].Request, Code: code, Reason: reason}
}

func missingReason(node, suggestion string) string {
	text := "there is no node " + node
	if suggestion != "" {
		text += "; did you mean " + suggestion + "?"
	}
	return text
}
