package drainplan

import (
	"cmp"
	"slices"
	"strings"
)

// Party is a maintenance plan that drains its nodes together with others: none of them goes on to a next tier alone
// (KEP-4212, Pod Selection).
type Party struct {
	Name string
	// Tiers are its drain plan, Tier the one that it is at: Tiers.Len() when all of them are drained.
	Tiers Plan
	Tier  int
	// Nodes are the names of its nodes.
	Nodes []string
}

// Shared is a node as the plans that drain it have brought it so far.
type Shared struct {
	Name string
	// Targets are the pods that are to leave by now, in the form of KEP-4212's drainTargets. They never go back.
	Targets []Entry
	// At is the entry up to which they were raised, By the parties that were at it.
	At *Entry
	By []string
	// Drained is true when none of the pods of Targets is left.
	Drained bool
}

// Resolution is what follows from how far nodes are drained.
type Resolution struct {
	// Tiers are those that the parties are at now.
	Tiers []int
	// Nodes are all nodes, with their targets.
	Nodes []Shared
	// Raised are the indexes of nodes whose targets have changed: they are not drained any more.
	Raised []int
	l      *lockstep
}

// Messages say how the nodes stand now.
func (r Resolution) Messages() Messages { return r.l.messages() }

// Resolve decides for all parties of a cluster. Parties come in the order of their age, the oldest first.
//
// A node is drained to the least entry that one of its parties is at, one entry after the other. A party goes on to its next entry when all its nodes
// are drained to its present one, and all nodes of the parties with which it shares a node are drained to their present
// targets (KEP-4212, Pod Selection). Parties that may go on do so at the same time, so that the result does not depend on
// the order in which it became known that nodes are drained. Targets never go back: a party that comes later finds its
// nodes fast-forwarded.
//
// The party that is at the least entry of all is held up by none, so that no two parties can wait for each other.
func Resolve(parties []Party, nodes []Shared) Resolution {
	l := newLockstep(parties, nodes)
	for moved := true; moved; {
		moved = l.raise()
		moved = l.advance() || moved
	}
	return l.resolution()
}

// lockstep is the state of a resolution. Parties and nodes go by their indexes, entries by their places in order.
type lockstep struct {
	parties []Party
	nodes   []Shared
	raised  []bool
	// order has the entries of all parties, and those that nodes have come to. steps are the places of each party's tiers, at
	// those of the nodes, beforeAll where a node has come to none.
	order []Entry
	steps [][]int
	at    []int
	// of are the nodes of each party, on the parties of each node; what is not known as a node is left out.
	of, on [][]int
	// meets are the parties with which each party shares a node, itself among them.
	meets [][]int
	// targets are what each party has drained up to a place.
	targets map[upTo][]Entry
}

type upTo struct{ party, place int }

const beforeAll = -1

func newLockstep(parties []Party, nodes []Shared) *lockstep {
	l := &lockstep{
		parties: slices.Clone(parties), nodes: slices.Clone(nodes), raised: make([]bool, len(nodes)),
		steps: make([][]int, len(parties)), at: make([]int, len(nodes)),
		of: make([][]int, len(parties)), on: make([][]int, len(nodes)), meets: make([][]int, len(parties)),
		targets: map[upTo][]Entry{},
	}
	l.sort()
	place := make(map[string]int, len(nodes))
	for i, n := range nodes {
		place[n.Name] = i
	}
	held, all := make([]int, len(nodes)), 0
	for p, party := range parties {
		l.of[p] = make([]int, 0, len(party.Nodes))
		for _, name := range party.Nodes {
			if n, ok := place[name]; ok {
				l.of[p] = append(l.of[p], n)
				held[n]++
				all++
			}
		}
	}
	room := make([]int, all) // 50 parties of 15,000 nodes each would grow as many lists
	for n, count := range held {
		l.on[n], room = room[:0:count], room[count:]
	}
	for p, of := range l.of {
		for _, n := range of {
			l.on[n] = append(l.on[n], p)
		}
	}
	l.meet()
	return l
}

// sort puts the entries in order.
func (l *lockstep) sort() {
	for _, p := range l.parties {
		l.order = append(l.order, p.Tiers.Entries()...)
	}
	for _, n := range l.nodes {
		if n.At != nil {
			l.order = append(l.order, *n.At)
		}
	}
	slices.SortFunc(l.order, compareEntries)
	l.order = slices.Compact(l.order)
	for i, p := range l.parties {
		for _, e := range p.Tiers.Entries() {
			l.steps[i] = append(l.steps[i], l.place(e))
		}
	}
	for i, n := range l.nodes {
		if l.at[i] = beforeAll; n.At != nil {
			l.at[i] = l.place(*n.At)
		}
	}
}

func (l *lockstep) place(e Entry) int {
	i, _ := slices.BinarySearchFunc(l.order, e, compareEntries)
	return i
}

// meet finds the parties that share nodes.
func (l *lockstep) meet() {
	met := make([]bool, len(l.parties)*len(l.parties))
	for i, on := range l.on {
		if i > 0 && slices.Equal(on, l.on[i-1]) {
			continue // thousands of nodes may have the same parties
		}
		for _, p := range on {
			for _, q := range on {
				met[p*len(l.parties)+q] = true
			}
		}
	}
	for p := range l.parties {
		for q := range l.parties {
			if met[p*len(l.parties)+q] {
				l.meets[p] = append(l.meets[p], q)
			}
		}
	}
}

// present is the place that a party is at.
func (l *lockstep) present(p int) (int, bool) {
	if tier := l.parties[p].Tier; tier < len(l.steps[p]) {
		return l.steps[p][tier], true
	}
	return 0, false
}

// raise brings each node one entry nearer to the least entry of its parties, and reports whether it raised any.
func (l *lockstep) raise() (moved bool) {
	for i := range l.nodes {
		n := &l.nodes[i]
		if least, by := l.least(i); by != nil && l.at[i] < least && (n.At == nil || n.Drained) {
			l.at[i] = l.next(i)
			n.At, n.By, moved = &l.order[l.at[i]], l.names(by), true
		}
		if n.At == nil {
			continue
		}
		for _, p := range l.on[i] {
			if all, more := Union(n.Targets, l.upTo(p, l.at[i])); more {
				n.Targets, n.Drained = all, false
				l.raised[i] = true
			}
		}
	}
	return moved
}

// least is the first entry that one of a node's parties is at, and which are; none where all have passed their last.
func (l *lockstep) least(n int) (least int, by []int) {
	for _, p := range l.on[n] {
		at, ok := l.present(p)
		switch {
		case !ok:
		case by == nil || at < least:
			least, by = at, []int{p}
		case at == least:
			by = append(by, p)
		}
	}
	return least, by
}

// next is the entry of a node's parties that follows the one that the node has come to.
func (l *lockstep) next(n int) int {
	next := len(l.order)
	for _, p := range l.on[n] {
		if i, _ := slices.BinarySearch(l.steps[p], l.at[n]+1); i < len(l.steps[p]) {
			next = min(next, l.steps[p][i])
		}
	}
	return next
}

func (l *lockstep) upTo(p, place int) []Entry {
	targets, ok := l.targets[upTo{p, place}]
	if !ok {
		past, _ := slices.BinarySearch(l.steps[p], place+1)
		targets = l.parties[p].Tiers.Targets(past - 1)
		l.targets[upTo{p, place}] = targets
	}
	return targets
}

func (l *lockstep) names(parties []int) []string {
	names := make([]string, 0, len(parties))
	for _, p := range parties {
		names = append(names, l.parties[p].Name)
	}
	return names
}

// Union is what either of two targets selects, and whether that is more than the first does.
func Union(a, b []Entry) (all []Entry, more bool) {
	all = a
	for _, e := range b {
		switch i := slices.IndexFunc(all, func(o Entry) bool { return o.PodType == e.PodType && o.PodSelector == e.PodSelector }); {
		case i < 0:
			all, more = append(slices.Clip(all), e), true
		case all[i].PodPriority < e.PodPriority:
			if !more {
				all, more = slices.Clone(all), true
			}
			all[i].PodPriority = e.PodPriority
		}
	}
	if !more {
		return a, false
	}
	slices.SortFunc(all, func(a, b Entry) int {
		// The general one of a type comes first, as in Plan.Targets.
		return cmp.Or(cmp.Compare(rank(a.PodType), rank(b.PodType)), strings.Compare(a.PodSelector, b.PodSelector))
	})
	for i, e := range all {
		if e.PodSelector != "" {
			continue
		}
		for j := range all[i:] {
			if o := &all[i+j]; o.PodType == e.PodType {
				o.PodPriority = max(o.PodPriority, e.PodPriority)
			}
		}
	}
	return all, true
}

// advance moves all parties that may go on to their next entry, and reports whether there was one.
func (l *lockstep) advance() bool {
	drained := make([]bool, len(l.parties))
	for p := range l.parties {
		drained[p] = !slices.ContainsFunc(l.of[p], func(n int) bool { return !l.nodes[n].Drained })
	}
	var next []int
	for p := range l.parties {
		if l.reached(p) && !slices.ContainsFunc(l.meets[p], func(q int) bool { return !drained[q] }) {
			next = append(next, p)
		}
	}
	for _, p := range next {
		l.parties[p].Tier++
	}
	return len(next) > 0
}

// reached reports whether all nodes of a party, and there are some, have come to its present entry.
func (l *lockstep) reached(p int) bool {
	present, ok := l.present(p)
	return ok && len(l.of[p]) > 0 && !slices.ContainsFunc(l.of[p], func(n int) bool { return l.at[n] < present })
}

func (l *lockstep) resolution() Resolution {
	r := Resolution{Nodes: l.nodes, l: l}
	for _, p := range l.parties {
		r.Tiers = append(r.Tiers, p.Tier)
	}
	for i, raised := range l.raised {
		if raised {
			r.Raised = append(r.Raised, i)
		}
	}
	return r
}
