package schedule

// remediations are the slots of maintenances that health checks have started, beside those of all others.
type remediations struct {
	*bound
	// nodes are those that hold one.
	nodes map[string]bool
}

func newRemediations(limits Limits, in Input) remediations {
	return remediations{
		bound: newBound("remediations", Remediations, limits.Remediations, in.Observed.Nodes), nodes: map[string]bool{},
	}
}

func (m remediations) hold(node string) {
	m.nodes[node] = true
	m.bound.hold(node, 1)
}

// plannedFirst has a node that two maintenances hold count as one that is planned.
func plannedFirst(a, b Grant) int {
	switch {
	case a.Remediation == b.Remediation:
		return 0
	case b.Remediation:
		return -1
	default:
		return 1
	}
}

// remediate grants a remediation or refuses it. None of what others have to go by concerns it but its node's being free, the
// limit of remediations, and that no more nodes may become unavailable than the limits say. It comes before all others, so
// that nothing is reserved yet.
func (r *round) remediate(i int) {
	req := *r.ranked[i].Request
	if away := r.away(req, false); away.Code != "" {
		r.refusals[i] = away
		return
	}
	facts := r.observed.Facts[req.Node]
	unavailable := r.isUnavailable(req.Node, facts)
	b := r.bindingRemediation(facts, unavailable)
	if b == nil {
		r.grant(req)
		return
	}
	r.refuse(i, b.code, b.reason())
	// Whatever is planned for the node would keep it from being repaired.
	r.best[req.Node] = claim{by: req.Requestor, stuck: r.remediations.limit < 1 || !unavailable && r.standsFull(facts)}
}

// bindingRemediation is the first limit that keeps a remediation out, nil if none does.
func (r *round) bindingRemediation(facts NodeFacts, alreadyUnavailable bool) *bound {
	if r.remediations.full(false) {
		return r.remediations.bound
	}
	for g := range r.gauges(facts) {
		if !alreadyUnavailable && g.unavailable.full(false) {
			return g.unavailable
		}
	}
	return nil
}

// standsFull reports whether so many nodes are unavailable without a maintenance that no end of one makes room.
func (r *round) standsFull(facts NodeFacts) bool {
	for g := range r.gauges(facts) {
		if g.unavailable.standing >= g.unavailable.limit {
			return true
		}
	}
	return false
}
