package schedule

import "slices"

// byKind separates the maintenances from the nodes that profiles take into maintenance, which are sorted.
func byKind(granted []Grant) (maintenances []Grant, entering []string) {
	for _, g := range granted {
		if g.Kind == KindProfile {
			entering = append(entering, g.Node)
		} else {
			maintenances = append(maintenances, g)
		}
	}
	slices.Sort(entering)
	return maintenances, slices.Compact(entering)
}

// unseenOf are those of the nodes of which nothing was observed, and which no maintenance holds.
func unseenOf(r *round, nodes []string) (unseen []string) {
	for _, node := range nodes {
		_, held := r.holders[node]
		if _, seen := r.observed.Facts[node]; !seen && !held {
			unseen = append(unseen, node)
		}
	}
	return unseen
}

// takeOut counts a node that a profile takes out of service, once, and not where a maintenance holds it.
func takeOut(r *round, node string) {
	facts, seen := r.observed.Facts[node]
	if _, held := r.holders[node]; !seen || held || facts.Missing || r.nodes.out[node] || r.best[node].granted {
		return
	}
	cost := 1
	if r.isUnavailable(node, facts) {
		cost = 0
	}
	for g := range r.gauges(facts) {
		g.unavailable.hold(node, cost)
	}
	r.nodes.out[node] = true
}

// enter lets a profile take a node into maintenance, or refuses it. A node that is out of service already takes nothing more, no matter who has
// taken it.
func enter(r *round, i int) {
	req := *r.ranked[i].Request
	facts, seen := r.observed.Facts[req.Node]
	switch {
	case !seen && r.seen[req.ID] && !r.hours.allow(req, nil):
		r.refusals[i] = r.hours.closed(req)
		return
	case !seen:
		r.refuse(i, Unobserved, req.Node+" has not been observed yet")
		return
	case facts.Missing:
		r.refuse(i, NodeMissing, missingReason(req.Node, facts.Suggestion))
		return
	case !r.hours.allow(req, facts.Groups):
		r.refusals[i] = r.hours.closed(req)
		return
	}
	_, held := r.holders[req.Node]
	if !held && !r.isUnavailable(req.Node, facts) && !r.best[req.Node].granted {
		for g := range r.gauges(facts) {
			if g.unavailable.full(true) {
				code, reason := g.unavailable.refusal(1, r.kept.gang)
				r.refuse(i, code, reason)
				r.hours.wakeAtClose()
				return
			}
		}
	}
	takeOut(r, req.Node)
}
