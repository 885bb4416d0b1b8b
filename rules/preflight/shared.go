package preflight

import (
	"cmp"
	"slices"
)

// Shared is a budget that several nodes need which are to go together, and that does not allow all of it at once.
type Shared struct {
	// Budget is "namespace/name".
	Budget string `json:"budget"`
	// Nodes are those with pods of it, Pods how many pods they would evict, and Allowed how many it allows now.
	Nodes   []string `json:"nodes"`
	Pods    int      `json:"pods"`
	Allowed int32    `json:"allowed"`
}

// SharedBudgets finds in the reports of nodes that would go together the budgets for which they would wait for one
// another, by name.
func SharedBudgets(reports []Report) []Shared {
	found := map[string]*Shared{}
	for _, r := range reports {
		for _, b := range r.Budgets {
			if b.OnNode == 0 {
				continue
			}
			s := found[b.Budget]
			if s == nil {
				s = &Shared{Budget: b.Budget, Allowed: b.Allowed}
				found[b.Budget] = s
			}
			s.Nodes = append(s.Nodes, r.Node)
			s.Pods += b.OnNode
			s.Allowed = min(s.Allowed, b.Allowed)
		}
	}
	var shared []Shared
	for _, s := range found {
		if len(s.Nodes) > 1 && s.Pods > int(s.Allowed) {
			shared = append(shared, *s)
		}
	}
	slices.SortFunc(shared, func(a, b Shared) int { return cmp.Compare(a.Budget, b.Budget) })
	return shared
}
