package schedule

import "fmt"

// member is a request of a gang, the best-ranked for its node.
type member struct {
	*Request
	// at is its place among the requests.
	at    int
	facts NodeFacts
	// obstacle is what keeps it from going whatever the limits say; no code where nothing does.
	obstacle Refusal
}

// considerGang grants all members of a gang or refuses them, at the rank of the best.
func (r *round) considerGang(g *gang) {
	members := r.membersOf(g)
	if len(members) < g.size {
		r.refuseGang(members, Refusal{Code: GangIncomplete, Reason: g.incomplete(len(members))})
		return
	}
	n := r.needOf(members)
	if why := n.tooLarge(g, r.limits); why != "" {
		r.refuseGang(members, Refusal{Code: GangTooLarge, Reason: why})
		return
	}
	wait := r.firstObstacle(g, members)
	if wait.Code == "" {
		wait.Code, wait.Reason = n.binding(g, r)
	}
	if wait.Code == "" {
		for _, m := range members {
			r.grant(*m.Request)
		}
		return
	}
	if r.mayReserve(members, n) {
		r.reserve(g, members, n)
		wait.Reason += "; what it needs is kept free for it"
	}
	r.refuseGang(members, wait)
	if !wait.Code.IsWindow() {
		r.wakeAtClose(members)
	}
}

// membersOf returns the members of a gang, one for each node, and refuses the requests that can be none.
func (r *round) membersOf(g *gang) []member {
	members := make([]member, 0, len(g.ranks))
	first := make(map[string]string, len(g.ranks))
	for _, i := range g.ranks {
		req := r.ranked[i].Request
		if by, twice := first[req.Node]; twice {
			r.refuse(i, Outranked, "the request of "+by+" for "+req.Node+" goes first")
			continue
		}
		m := member{Request: req, at: i, facts: r.observed.Facts[req.Node], obstacle: r.away(*req, true)}
		if m.obstacle.Code == NodeMissing {
			r.refusals[i] = m.obstacle
			continue
		}
		if m.obstacle.Code != Unobserved && !m.obstacle.Code.IsWindow() && !r.hours.allow(*req, m.facts.Groups) {
			m.obstacle = r.hours.closed(*req)
		}
		first[req.Node] = req.Requestor
		members = append(members, m)
	}
	return members
}

// refuseGang refuses all members for the same reason. A member that has an obstacle of its own is refused for that while its gang waits
// for one, and in any case where its node was not observed.
func (r *round) refuseGang(members []member, why Refusal) {
	wholeGang := why.Code == GangIncomplete || why.Code == GangTooLarge
	for _, m := range members {
		if own := m.obstacle; own.Code == Unobserved || own.Code != "" && !wholeGang && !(why.Code.IsWindow() && !own.Code.IsWindow()) {
			r.refusals[m.at] = own
			continue
		}
		r.refusals[m.at] = Refusal{Request: *m.Request, Code: why.Code, Reason: why.Reason, Until: why.Until}
	}
}

// firstObstacle is why members keep their gang from going: closed windows before all else, since until they open nothing
// else matters; then nodes that were not observed.
func (r *round) firstObstacle(g *gang, members []member) Refusal {
	class := func(c Code) int {
		switch {
		case c.IsWindow():
			return 0
		case c == Unobserved:
			return 1
		default:
			return 2
		}
	}
	var first Refusal
	obstacles := 0
	for _, m := range members {
		if m.obstacle.Code == "" {
			continue
		}
		obstacles++
		if first.Code == "" || class(m.obstacle.Code) < class(first.Code) {
			first = m.obstacle
		}
	}
	if obstacles == 0 {
		return Refusal{}
	}
	why := Refusal{Code: GangWaits, Reason: fmt.Sprintf("gang %s waits: %s", g.name, first.Reason), Until: first.Until}
	if class(first.Code) < 2 {
		why.Code = first.Code
	}
	switch obstacles {
	case 1:
	case 2:
		why.Reason += "; 1 more of its nodes cannot go now"
	default:
		why.Reason += fmt.Sprintf("; %d more of its nodes cannot go now", obstacles-1)
	}
	return why
}

// wakeAtClose has the decision made again when a window of the members closes.
func (r *round) wakeAtClose(members []member) {
	for _, m := range members {
		if r.hours.allow(*m.Request, m.facts.Groups) {
			r.hours.wakeAtClose()
		}
	}
}

// reservation is what the first gang that has to wait for maintenances needs. What it needs of limits stands there.
type reservation struct {
	// gang is its name, empty if nothing is reserved.
	gang string
	// quota are the nodes by requestor.
	quota map[string]int
}

// mayReserve reports whether a gang that does not go now waits for maintenances to end, and is the first that does. One that waits for a
// window, for a node to be repaired, or for a request that does, would hold others up for nothing.
func (r *round) mayReserve(members []member, n *need) bool {
	if r.kept.gang != "" || !n.fitsLater() {
		return false
	}
	for _, m := range members {
		switch code := m.obstacle.Code; {
		case code.IsWindow(), code == Unobserved, code == Outranked && r.best[m.Node].stuck:
			return false
		}
	}
	return true
}

// reserve keeps from all of lower rank what a gang needs. A node in maintenance is counted already, and its slot falls to
// the gang.
func (r *round) reserve(g *gang, members []member, n *need) {
	r.kept = reservation{gang: g.name, quota: n.quota}
	for _, part := range n.parts {
		part.gauge.parallel.reserved, part.gauge.unavailable.reserved = part.now.slots, part.now.unavailable
	}
	for _, m := range members {
		if _, taken := r.best[m.Node]; !taken {
			r.best[m.Node] = claim{by: m.Requestor, gang: g.name}
		}
	}
}
