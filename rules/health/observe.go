package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
)

const (
	// MaxNodes bounds the nodes that a check remembers, first those under remediation, then those that were ill first. Of the
	// rest only the counts are known, so that thresholds hold; the watch reports those nodes again when there is room.
	MaxNodes = 5000
	// maxPast bounds the nodes that are remembered only because they were remediated.
	maxPast = 1000
	// maxShort bounds, as JSON and in bytes, texts about single nodes.
	maxShort = 256
)

// Observe takes in what was seen. Observations come one after the other, the first with a selector and conditions being Full.
func (s *State) Observe(o Observation) {
	seen := &s.Seen
	if o.Full {
		seen.Dropped = false
	}
	s.merge(o)
	seen.At = o.At
	seen.Known = !o.More && (seen.Known || seen.Parts || o.Full)
	seen.Parts = o.More
	seen.Groups = groups(o.Groups)
	seen.Overlap, seen.Upgrading = o.Overlap, bounds.Cut(o.Upgrading, bounds.Text)
	seen.Disabled, seen.DisabledReason = bounds.Cut(o.Disabled, bounds.Text), bounds.Cut(o.DisabledReason, maxShort)
}

// Forget has nothing decided about nodes before everything was seen anew.
func (s *State) Forget() { s.Seen.Known, s.Seen.Parts = false, false }

// groups are counts in the order of their groups, each once and bounded.
func groups(given []GroupCount) []GroupCount {
	var kept []GroupCount
	for _, g := range given {
		if g.Nodes >= 0 && g.Matching >= 0 && g.Matching <= g.Nodes && len(g.Group) <= maxShort {
			kept = append(kept, g)
		}
	}
	slices.SortStableFunc(kept, func(a, b GroupCount) int { return strings.Compare(a.Group, b.Group) })
	kept = slices.CompactFunc(kept, func(a, b GroupCount) bool { return a.Group == b.Group })
	return slices.Clip(kept[:min(len(kept), MaxNodes+1)])
}

// merge takes in the nodes of an observation.
func (s *State) merge(o Observation) {
	nodes := make([]Node, 0, len(s.Nodes)+len(o.Nodes))
	at := make(map[string]int, len(s.Nodes)+len(o.Nodes))
	for _, n := range s.Nodes {
		if o.Full {
			n.Unseen = true
		}
		at[n.Name] = len(nodes)
		nodes = append(nodes, n)
	}
	for _, f := range o.Nodes {
		f, ok := bounded(f)
		if !ok {
			continue
		}
		i, known := at[f.Name]
		if !known {
			i = len(nodes)
			at[f.Name], nodes = i, append(nodes, Node{})
		}
		if before := nodes[i]; before.UID != "" && f.UID != "" && before.UID != f.UID {
			nodes[i].Past, nodes[i].Announced, nodes[i].ConfirmedBy, nodes[i].WellSince = nil, Announced{Steps: before.Announced.Steps}, "", time.Time{}
		}
		f.countFrom(nodes[i].Facts, o.At)
		if nodes[i].Remediation != nil {
			f.ControlPlane = f.ControlPlane || nodes[i].ControlPlane // of a node that was deleted nobody knows any more
		}
		nodes[i].Facts, nodes[i].Unseen = f, false
	}
	if !o.More && (o.Full || s.Seen.Parts) {
		for i := range nodes {
			nodes[i].settle()
		}
	}
	s.Nodes, s.Seen.Dropped = kept(nodes, s.Seen.Dropped)
}

// settle is what a full observation says of a node that it does not name: it has no unhealthy condition. One under remediation it
// names, whatever it has, unless the watch has begun before the remediation: then the node is waited for.
func (n *Node) settle() {
	if n.Unseen && n.Remediation == nil {
		n.Unseen, n.Matches = false, nil
	}
}

// countFrom fills in since when the node is ill by what says no time: since it was first seen so, which is now or before.
func (f *Facts) countFrom(before Facts, now time.Time) {
	for i := range f.Matches {
		m := &f.Matches[i]
		if !m.Since.IsZero() {
			continue
		}
		m.Since = now
		for _, earlier := range before.Matches {
			if before.UID == f.UID && earlier.Index == m.Index && !earlier.Since.IsZero() {
				m.Since = earlier.Since
			}
		}
	}
}

// bounded cuts what was seen of a node; ok reports whether it is one.
func bounded(f Facts) (_ Facts, ok bool) {
	f.UID, f.Group = bounds.Cut(f.UID, maxShort), bounds.Cut(f.Group, maxShort)
	f.Exclude, f.Upgrading = bounds.Cut(f.Exclude, maxShort), bounds.Cut(f.Upgrading, maxShort)
	f.UnderMaintenance = bounds.Cut(f.UnderMaintenance, bounds.Text)
	f.Matches = slices.Clone(f.Matches[:min(len(f.Matches), maxConditions)])
	slices.SortFunc(f.Matches, func(a, b Match) int { return cmp.Or(a.Index-b.Index, a.Since.Compare(b.Since)) })
	if f.Left {
		f.Matches = nil
	}
	return f, spec.NodeName(f.Name) == nil
}

// kept are the nodes that are remembered, by name.
func kept(nodes []Node, dropped bool) (Nodes, bool) {
	if len(nodes) > MaxNodes {
		slices.SortFunc(nodes, func(a, b Node) int {
			return cmp.Or(a.rank()-b.rank(), a.oldest().Compare(b.oldest()), strings.Compare(a.Name, b.Name))
		})
		nodes, dropped = slices.Clip(nodes[:MaxNodes]), true
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, dropped
}

// rank is the order in which nodes are remembered.
func (n Node) rank() int {
	switch {
	case n.Remediation != nil:
		return 0
	case len(n.Matches) > 0:
		return 1
	default:
		return 2
	}
}

// oldest is since when a node has the condition that it has longest.
func (n Node) oldest() time.Time {
	var oldest time.Time
	for _, m := range n.Matches {
		if oldest.IsZero() || m.Since.Before(oldest) {
			oldest = m.Since
		}
	}
	return oldest
}

// find is the place of a node among those remembered.
func (s State) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.Nodes, name, func(n Node, name string) int { return strings.Compare(n.Name, name) })
}

// Node is what is remembered of a node; false is nothing.
func (s State) Node(name string) (Node, bool) {
	i, found := s.find(name)
	if !found {
		return Node{}, false
	}
	return s.Nodes[i], true
}

// Remediating reports whether a remediation runs: what it follows from may not change.
func (s State) Remediating() bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Remediation != nil })
}
