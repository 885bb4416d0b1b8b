package schedule

import (
	"maps"
	"slices"
)

// kept is what the model keeps free for a gang: its nodes are counted as if they were in maintenance.
type kept struct {
	gang  string
	nodes map[string]bool
	quota map[string]int
	// unseen are those of nodes that are being repaired and of which nothing is known: of what groups have, nothing is
	// kept for them.
	unseen int
}

// inPart says that a gang holds slots already.
func (m model) inPart(gang string) bool { return m.gangsHeld[gang] }

// mates are the requests of a request's gang, nil if it goes by itself.
func (m model) mates(pending []Request, r Request) (mates []Request, size int) {
	if r.Gang == nil || r.Remediation || m.inPart(r.Gang.Name) {
		return nil, 0
	}
	nodes := map[string]bool{}
	for _, p := range pending {
		if p.Gang != nil && !p.Remediation && p.Gang.Name == r.Gang.Name {
			mates = append(mates, p)
			size = max(size, p.Gang.Size)
			nodes[p.Node] = true
		}
	}
	if size < 2 && len(nodes) < 2 {
		return nil, 0
	}
	return mates, size
}

// requestsOf counts the requests of each requestor, a gang's as one.
func (m model) requestsOf(pending []Request) map[string]int {
	count := map[string]int{}
	seen := map[string]bool{}
	for _, r := range pending {
		if r.Remediation {
			continue
		}
		if mates, _ := m.mates(pending, r); mates != nil {
			if seen[r.Requestor+"/"+r.Gang.Name] {
				continue
			}
			seen[r.Requestor+"/"+r.Gang.Name] = true
		}
		count[r.Requestor]++
	}
	return count
}

// scope is the cluster or a part of a group, with its limits.
type scope struct {
	member                   func(simNode) bool
	parallel, unavailable    Amount
	codeParallel, codeUnavai Code
}

// scopes are those that count some nodes, each once: the cluster, then groups in the order in which the nodes name them.
func (m model) scopes(names []string) []scope {
	maxParallel := m.limits.MaxParallel
	if maxParallel == (Amount{}) {
		maxParallel = Count(1)
	}
	all := []scope{{func(simNode) bool { return true }, maxParallel, m.limits.MaxUnavailable, MaxParallel, MaxUnavailable}}
	var subjects []simNode
	for _, name := range names {
		subject, ok := m.node(name)
		if !ok || !m.known[name] {
			continue
		}
		for _, g := range m.limits.Groups {
			same := func(n simNode) bool { return inGroupOf(g, n, n) && inGroupOf(g, subject, n) }
			if inGroupOf(g, subject, subject) && !slices.ContainsFunc(subjects, func(n simNode) bool { return same(n) }) {
				all = append(all, scope{same, g.MaxParallel, g.MaxUnavailable, GroupMaxParallel, GroupMaxUnavailable})
			}
		}
		subjects = append(subjects, subject)
	}
	return all
}

// costs says that a node becomes unavailable by a maintenance. One of which nothing is known is taken to.
func (m model) costs(name string) bool {
	n, ok := m.node(name)
	return !ok || !m.known[name] || !n.unavailable() || m.released[name]
}

// counted are the names that a scope counts. The cluster counts nodes of which nothing is known.
func (m model) counted(s scope, names []string, only func(string) bool) int {
	total := 0
	for _, name := range names {
		n, ok := m.node(name)
		inScope := ok && m.known[name] && s.member(n) || (!ok || !m.known[name]) && s.codeParallel == MaxParallel
		if inScope && only(name) {
			total++
		}
	}
	return total
}

func everyNode(string) bool { return true }

// size is how many nodes a scope has.
func (m model) size(s scope) (total int) {
	for _, n := range m.nodes {
		if s.member(n) {
			total++
		}
	}
	return total
}

// over reports whether a scope has no room for so many slots and unavailable nodes more.
func (m model) over(s scope, slots, costing int) Code {
	total, unavailable, parallel := m.usage(s.member)
	if s.codeParallel == MaxParallel {
		parallel = m.planned() + m.kept.unseen
	}
	if limit, ok := allowed(s.parallel, total); ok && slots > 0 && parallel+slots > limit {
		return s.codeParallel
	}
	if limit, ok := allowed(s.unavailable, total); ok && costing > 0 && unavailable+costing > limit {
		return s.codeUnavai
	}
	return ""
}

// withKept counts what is kept as in maintenance.
func (m model) withKept() model {
	m.granted, m.repairs = maps.Clone(m.granted), maps.Clone(m.repairs)
	for name := range m.kept.nodes {
		if m.repairs[name] && !m.known[name] {
			m.kept.unseen++
			continue
		}
		m.granted[name] = ""
		delete(m.repairs, name)
	}
	return m
}

// tooLarge says that some limit is smaller than what nodes need by themselves.
func (m model) tooLarge(members []Request) bool {
	names := nodesOf(members)
	for _, s := range m.scopes(names) {
		if limit, ok := allowed(s.parallel, m.size(s)); ok && m.counted(s, names, everyNode) > limit {
			return true
		}
		costing := m.counted(s, names, m.costs)
		if limit, ok := allowed(s.unavailable, m.size(s)); ok && costing > 0 && costing > limit {
			return true
		}
	}
	for requestor, n := range m.requestors(members) {
		if most := m.heldQuota(requestor); most != nil && n > *most {
			return true
		}
	}
	return false
}

func (m model) requestors(members []Request) map[string]int {
	count := map[string]int{}
	for _, r := range members {
		count[r.Requestor]++
	}
	return count
}

func nodesOf(members []Request) []string {
	var names []string
	for _, r := range members {
		names = append(names, r.Node)
	}
	return names
}

// fitsLater: once nothing is in maintenance, with what is down otherwise.
func (m model) fitsLater(members []Request) bool {
	names := nodesOf(members)
	later := func(name string) bool { _, busy := m.granted[name]; return busy || m.costs(name) }
	for _, s := range m.scopes(names) {
		standing := 0
		for _, n := range m.nodes {
			_, granted := m.granted[n.name]
			if s.member(n) && !(granted && m.known[n.name]) && m.down(n) {
				standing++
			}
		}
		costing := m.counted(s, names, later)
		if limit, ok := allowed(s.unavailable, m.size(s)); ok && m.counted(s, names, m.costs) > 0 && standing+costing > limit {
			return false
		}
	}
	return true
}

// room is the first limit that has none for the members, empty if all have.
func (m model) room(members []Request) Code {
	var free []string
	for _, name := range nodesOf(members) {
		if _, busy := m.granted[name]; !busy {
			free = append(free, name)
		}
	}
	reserved := m.withKept()
	for _, s := range m.scopes(nodesOf(members)) {
		slots, costing := m.counted(s, free, everyNode), m.counted(s, free, m.costs)
		if code := reserved.over(s, slots, costing); code != "" {
			// Which of the two limits of a scope binds may differ; that which does with what is kept is told.
			if m.overOf(s, code, slots, costing) {
				return code
			}
			return Reserved
		}
	}
	for _, r := range members {
		n := m.requestors(members)[r.Requestor]
		if code := m.quota(r.Requestor, n, true); code != "" {
			return code
		}
	}
	return ""
}

// overOf reports whether the limit of a code has no room either without what is kept.
func (m model) overOf(s scope, code Code, slots, costing int) bool {
	if code == s.codeParallel {
		return m.over(s, slots, 0) != ""
	}
	return m.over(s, 0, costing) != ""
}

// stuck says that a node that costs could not go with nothing in maintenance.
func (m model) stuck(r Request) bool {
	return m.costs(r.Node) && (m.tooLargeAlone(r) || !m.fitsLater([]Request{r}))
}

func (m model) tooLargeAlone(r Request) bool {
	for _, s := range m.scopes([]string{r.Node}) {
		if limit, ok := allowed(s.parallel, m.size(s)); ok && limit < 1 {
			return true
		}
	}
	return false
}

// decideGang answers all requests of a gang. Claimed are the nodes for which another request goes first.
func (m *model) decideGang(mates []Request, size int, codes map[string]Code, before map[string]string, claimed map[string]modelClaim) {
	var members []Request
	obstacles := map[string]Code{}
	for _, r := range mates {
		if slices.Contains(nodesOf(members), r.Node) {
			codes[r.ID] = Outranked
			continue
		}
		code := m.away(r, before, claimed, true)
		if codes[r.ID] = code; code == NodeMissing {
			continue
		}
		members = append(members, r)
		if code != "" {
			obstacles[r.ID] = code
		}
	}
	all := func(code Code, own bool) {
		for _, r := range members {
			if o := obstacles[r.ID]; o == Unobserved || own && o != "" {
				codes[r.ID] = o
			} else {
				codes[r.ID] = code
			}
		}
	}
	unobserved := slices.Contains(slices.Collect(maps.Values(obstacles)), Unobserved)
	room := m.room(members)
	switch {
	case len(members) < size:
		all(GangIncomplete, false)
		return
	case m.tooLarge(members):
		all(GangTooLarge, false)
		return
	case unobserved:
		all(Unobserved, true)
		return
	case len(obstacles) > 0:
		all(GangWaits, true)
	case room != "":
		all(room, true)
	default:
		for _, r := range members {
			m.granted[r.Node] = r.Requestor
			claimed[r.Node] = modelClaim{}
		}
		return
	}
	if m.kept.gang != "" || !m.fitsLater(members) {
		return
	}
	for _, r := range members {
		if obstacles[r.ID] == Outranked && claimed[r.Node].stuck {
			return
		}
	}
	m.kept = kept{gang: members[0].Gang.Name, nodes: map[string]bool{}, quota: m.requestors(members)}
	for _, r := range members {
		if _, busy := m.granted[r.Node]; !busy || m.repairs[r.Node] {
			m.kept.nodes[r.Node] = true
		}
		if _, taken := claimed[r.Node]; !taken {
			claimed[r.Node] = modelClaim{reserved: true}
		}
	}
}
