package schedule

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The model decides from the full list of nodes, counting afresh for every candidate. It shares no code with the
// package but the plain types, so that a mistake in the counts of a round shows.

// simNode is a node of the simulated cluster.
type simNode struct {
	name   string
	labels map[string]string
	// failed is not Ready, cordoned unschedulable.
	failed, cordoned bool
}

func (n simNode) unavailable() bool { return n.failed || n.cordoned }

// model is what is known when a decision is made. Nodes are as they were observed.
type model struct {
	limits   Limits
	frozen   bool
	current  bool // the observation is of these limits
	nodes    []simNode
	known    map[string]bool // nodes with facts
	granted  map[string]string
	released map[string]bool
	// gangsHeld are the gangs of which a part holds slots.
	gangsHeld map[string]bool
	kept      kept
	// repairs are those of granted that are for remediations.
	repairs map[string]bool
}

// modelClaim is what is known of the request that goes first for a node: whether it keeps it for its gang, and whether it
// waits for something else than maintenances.
type modelClaim struct{ reserved, stuck bool }

// allowed resolves a limit; ok is false if there is none.
func allowed(a Amount, total int) (limit int, ok bool) {
	text := a.String()
	if text == "" || text == "unlimited" {
		return 0, false
	}
	number, isPercent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		panic(err)
	}
	if isPercent {
		return int(math.Ceil(n * float64(total) / 100)), true
	}
	return int(n), true
}

// inGroupOf says that a node is in the group, and the same part of it as the subject. Selectors of the model are
// a single key=value.
func inGroupOf(g Group, subject, node simNode) bool {
	if key, value, ok := strings.Cut(g.NodeSelector, "="); ok && node.labels[key] != value {
		return false
	}
	for _, key := range g.GroupBy {
		if node.labels[key] != subject.labels[key] {
			return false
		}
	}
	return true
}

func (m model) node(name string) (simNode, bool) {
	i := slices.IndexFunc(m.nodes, func(n simNode) bool { return n.name == name })
	if i < 0 {
		return simNode{}, false
	}
	return m.nodes[i], true
}

// down says that the node is unavailable without counting maintenances: as observed, unless it was given back.
func (m model) down(n simNode) bool {
	_, granted := m.granted[n.name]
	returned := m.released[n.name] && m.known[n.name] && !granted
	return n.unavailable() && !returned
}

// unseen counts the granted nodes without facts, each of which counts everywhere; a repair as no maintenance that is
// planned.
func (m model) unseen() (all, planned int) {
	for name := range m.granted {
		if m.known[name] {
			continue
		}
		all++
		if !m.repairs[name] {
			planned++
		}
	}
	return all, planned
}

// planned counts the maintenances that are.
func (m model) planned() int {
	n := 0
	for name := range m.granted {
		if !m.repairs[name] {
			n++
		}
	}
	return n
}

// usage counts the members that are unavailable and those in maintenance.
func (m model) usage(member func(simNode) bool) (total, unavailable, parallel int) {
	for _, n := range m.nodes {
		if !member(n) {
			continue
		}
		total++
		_, granted := m.granted[n.name]
		granted = granted && m.known[n.name]
		if granted && !m.repairs[n.name] {
			parallel++
		}
		if granted || m.down(n) {
			unavailable++
		}
	}
	all, planned := m.unseen()
	return total, unavailable + all, parallel + planned
}

// repairObstacle is the first limit that keeps a node from being repaired now.
func (m model) repairObstacle(subject simNode) Code {
	most := m.limits.Remediations
	if most == (Amount{}) {
		most = Percent(10)
	}
	if limit, ok := allowed(most, len(m.nodes)); ok && len(m.granted)-m.planned()+1 > limit {
		return Remediations
	}
	if m.down(subject) {
		return ""
	}
	for _, s := range m.scopes([]string{subject.name}) {
		if code := m.over(s, 0, 1); code != "" {
			return code
		}
	}
	return ""
}

// repairStuck says that no end of a maintenance lets a node be repaired.
func (m model) repairStuck(r Request) bool {
	most := m.limits.Remediations.String()
	return most == "0" || most == "0%" || len(m.nodes) == 0 || m.costs(r.Node) && !m.fitsLater([]Request{r})
}

// obstacle is the first limit that keeps the node from going now, empty if none does.
func (m model) obstacle(subject simNode) Code {
	total, unavailable, _ := m.usage(func(simNode) bool { return true })
	maxParallel := m.limits.MaxParallel
	if maxParallel == (Amount{}) {
		maxParallel = Count(1)
	}
	if limit, ok := allowed(maxParallel, total); ok && m.planned()+1 > limit {
		return MaxParallel
	}
	free := m.down(subject)
	if limit, ok := allowed(m.limits.MaxUnavailable, total); ok && !free && unavailable+1 > limit {
		return MaxUnavailable
	}
	for _, g := range m.limits.Groups {
		if !inGroupOf(g, subject, subject) {
			continue
		}
		total, unavailable, parallel := m.usage(func(n simNode) bool { return inGroupOf(g, subject, n) })
		if limit, ok := allowed(g.MaxParallel, total); ok && parallel+1 > limit {
			return GroupMaxParallel
		}
		if limit, ok := allowed(g.MaxUnavailable, total); ok && !free && unavailable+1 > limit {
			return GroupMaxUnavailable
		}
	}
	return ""
}

// holds counts the nodes that a requestor holds.
func (m model) holds(requestor string) int {
	n := 0
	for name, by := range m.granted {
		if by == requestor && !m.repairs[name] {
			n++
		}
	}
	return n
}

func (m model) heldQuota(requestor string) *int {
	most := m.limits.Quotas.HeldPerRequestor
	if own, ok := m.limits.Quotas.Requestors[requestor]; ok && own.Held != nil {
		most = own.Held
	}
	return most
}

// quota reports whether a requestor may not hold so many more.
func (m model) quota(requestor string, more int, reserved bool) Code {
	most := m.heldQuota(requestor)
	switch {
	case most == nil:
		return ""
	case m.holds(requestor)+more > *most:
		return Quota
	case reserved && m.holds(requestor)+more+m.kept.quota[requestor] > *most:
		return Reserved
	}
	return ""
}

// ranked sorts by one criterion after the other, the least important first.
func (m model) ranked(pending []Request) []Request {
	var inProgress []string
	for node, by := range m.granted {
		if !m.repairs[node] {
			inProgress = append(inProgress, by)
		}
	}
	count := m.requestsOf(pending)
	// A repair is nobody's share.
	asks := func(r Request) int {
		if r.Remediation {
			return 0
		}
		return count[r.Requestor]
	}
	progresses := func(r Request) bool { return !r.Remediation && slices.Contains(inProgress, r.Requestor) }
	sorted := slices.Clone(pending)
	for _, before := range []func(a, b Request) bool{
		func(a, b Request) bool { return a.ID < b.ID },
		func(a, b Request) bool { return a.Requestor < b.Requestor },
		func(a, b Request) bool { return a.Node < b.Node },
		func(a, b Request) bool { return a.Created.Before(b.Created) },
		func(a, b Request) bool { return asks(a) < asks(b) },
		func(a, b Request) bool { return progresses(a) && !progresses(b) },
		func(a, b Request) bool { return a.Priority > b.Priority },
		func(a, b Request) bool { return a.Remediation && !b.Remediation },
	} {
		slices.SortStableFunc(sorted, func(a, b Request) int {
			switch {
			case before(a, b):
				return -1
			case before(b, a):
				return 1
			}
			return 0
		})
	}
	return sorted
}

// away is why a request cannot be judged by limits.
func (m model) away(r Request, before map[string]string, claimed map[string]modelClaim, reserved bool) Code {
	_, exists := m.node(r.Node)
	_, busy := before[r.Node]
	claim, taken := claimed[r.Node]
	switch {
	case busy:
		return NodeBusy
	case taken && !claim.reserved:
		return Outranked
	case taken && reserved:
		return Reserved
	case !m.known[r.Node]:
		return Unobserved
	case !exists:
		return NodeMissing
	}
	return ""
}

// decide returns the code of each request by ID, empty for those that are granted.
func (m model) decide(pending []Request) map[string]Code {
	m.granted, m.repairs = maps.Clone(m.granted), maps.Clone(m.repairs)
	before := maps.Clone(m.granted)
	codes := map[string]Code{}
	claimed := map[string]modelClaim{}
	ranked := m.ranked(pending)
	for _, r := range ranked {
		node, _ := m.node(r.Node)
		mates, size := m.mates(ranked, r)
		if _, decided := codes[r.ID]; decided {
			continue
		}
		reserved := r.Gang == nil || !m.inPart(r.Gang.Name)
		switch away := m.away(r, before, claimed, reserved); {
		case m.frozen:
			codes[r.ID] = Frozen
		case !m.current:
			codes[r.ID] = Unobserved
		case mates != nil:
			m.decideGang(mates, size, codes, before, claimed)
		case away != "":
			codes[r.ID] = away
		case r.Remediation:
			codes[r.ID] = m.repairObstacle(node)
			claimed[r.Node] = modelClaim{stuck: codes[r.ID] != "" && m.repairStuck(r)}
			if codes[r.ID] == "" {
				m.granted[r.Node], m.repairs[r.Node] = r.Requestor, true
			}
		case m.quota(r.Requestor, 1, reserved) != "":
			codes[r.ID] = m.quota(r.Requestor, 1, reserved)
		default:
			codes[r.ID] = m.single(node, reserved)
			claimed[r.Node] = modelClaim{stuck: codes[r.ID] != "" && m.stuck(r)}
			if codes[r.ID] == "" {
				m.granted[r.Node] = r.Requestor
			}
		}
	}
	return codes
}

// single is the first limit that keeps a node from going by itself, or Reserved.
func (m model) single(node simNode, reserved bool) Code {
	if !reserved {
		return m.obstacle(node)
	}
	free := m.costs(node.name)
	for _, s := range m.scopes([]string{node.name}) {
		slots, costing := 1, 0
		if free {
			costing = 1
		}
		if code := m.withKept().over(s, slots, costing); code != "" {
			if m.overOf(s, code, slots, costing) {
				return code
			}
			return Reserved
		}
	}
	return ""
}
