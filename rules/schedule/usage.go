package schedule

import (
	"maps"
	"slices"
)

// Usage is how much of the limits is used.
type Usage struct {
	Slots Use `json:"slots"`
	// Unavailable are the nodes that are out of service, for whatever reason.
	Unavailable Use `json:"unavailable"`
	// Remediations are those of health checks, which Slots does not count.
	Remediations Use `json:"remediations"`
	// ControlPlane are the control-plane nodes that are remediated.
	ControlPlane Use `json:"controlPlane"`
	// Groups are in the order of Limits.Groups.
	Groups []GroupUsage `json:"groups,omitempty"`
}

// Use is how much of a limit is used. Limit is absent if there is none, and where it is a percentage of nodes that
// were not counted yet; Unlimited distinguishes the two.
type Use struct {
	Used      int  `json:"used"`
	Limit     *int `json:"limit,omitempty"`
	Unlimited bool `json:"unlimited,omitempty"`
}

// GroupUsage is how much of a group's slots is used. Those of a group with GroupBy are all its parts' together.
type GroupUsage struct {
	Name  string `json:"name"`
	Slots Use    `json:"slots"`
}

// UsageOf counts what is used of the limits by what a decision goes by.
func UsageOf(in Input) Usage {
	in, controlPlane := in.split()
	limits := in.Limits.WithDefaults()
	seen := in.Observed
	if seen == nil {
		seen = &Observation{}
	}
	u := Usage{Slots: use(limits.MaxParallel, seen.Nodes), Unavailable: use(limits.MaxUnavailable, seen.Nodes), Remediations: use(limits.Remediations, seen.Nodes)}
	u.Unavailable.Used, _ = Unavailable(in)
	u.ControlPlane = Use{Used: len(controlPlane.controlPlaneNodes()), Limit: new(maxControlPlane)}
	held := heldByGroup(in, &u)
	keys := groupKeys(seen.Groups)
	for _, g := range limits.Groups {
		slots := g.slots(keys, seen.Groups)
		slots.Used = held[g.Name]
		u.Groups = append(u.Groups, GroupUsage{Name: g.Name, Slots: slots})
	}
	return u
}

// slots is the limit of a group's slots, that of all its parts together.
func (g Group) slots(keys []string, counts map[string]GroupCount) Use {
	if len(g.GroupBy) == 0 && g.MaxParallel.kind == count {
		return use(g.MaxParallel, 0) // however many nodes it has
	}
	all := Use{Unlimited: g.MaxParallel.IsZero() || g.MaxParallel == Unlimited()}
	for _, key := range keys {
		if part := use(g.MaxParallel, counts[key].Nodes); GroupName(key) == g.Name && part.Limit != nil {
			all.Limit = new(*part.Limit + valueOf(all.Limit))
		}
	}
	return all
}

// heldByGroup counts the nodes that are held, and those of each group by its name.
func heldByGroup(in Input, u *Usage) map[string]int {
	held, repaired, byGroup := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, g := range in.Granted {
		if g.Kind == KindProfile {
			continue // it has no slot of a node
		}
		if g.Remediation && !repaired[g.Node] {
			repaired[g.Node] = true
			u.Remediations.Used++
		}
		if g.Remediation || held[g.Node] {
			continue // slots are counted in nodes
		}
		held[g.Node] = true
		u.Slots.Used++
		for _, name := range in.GroupsOf(g.Node) {
			byGroup[name]++
		}
	}
	return byGroup
}

// GroupsOf are the names of the groups that a node is in, as far as it was observed.
func (in Input) GroupsOf(node string) []string {
	if in.Observed == nil {
		return nil
	}
	var names []string
	for _, key := range in.Observed.Facts[node].Groups {
		names = append(names, GroupName(key))
	}
	return names
}

// use is a limit of so many nodes of which nothing is used yet.
func use(a Amount, nodes int) Use {
	switch {
	case a.IsZero() || a == Unlimited():
		return Use{Unlimited: true}
	case a.kind == percent && nodes == 0:
		return Use{}
	}
	return Use{Limit: new(a.Of(nodes))}
}

// groupKeys are the keys of the groups that were counted, in order.
func groupKeys(groups map[string]GroupCount) []string { return slices.Sorted(maps.Keys(groups)) }

func valueOf(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}
