package check

import (
	"fmt"
	"slices"

	"drydock/rules/profile/conf"
	"drydock/rules/profile/state"
)

var _ = register(Kind{Name: "affinity", optional: true, read: func(o *conf.Object, _ Environment) Check {
	return affinity{minOperational: o.Int("minOperational", 0)}
}})

// affinity lets nodes without pods that prefer operational nodes go first, so that such pods move only once.
type affinity struct{ minOperational int }

func (a affinity) needs(n *Needs) { n.Pods = true }

// Hold is part of Check.
func (a affinity) Hold(c Case) Result {
	if c.State != state.Required {
		return failed("it can be asked in %s only, and the profile is in %s", state.Required, c.State)
	}
	if a.minOperational > 0 {
		operational := 0
		for _, m := range c.View.Members() {
			if slices.Contains(m.In(state.Operational), c.Profile) {
				operational++
			}
		}
		if operational >= a.minOperational {
			return Result{Holds: true, Reason: "minOperational exceeded"}.info("operational", operational)
		}
	}
	if !c.View.Marked[c.Node.Name] {
		return Result{Holds: true, Reason: "no pods with affinity"}
	}
	for _, m := range c.View.Members() {
		if m.Name != c.Node.Name && !c.View.Marked[m.Name] && slices.Contains(m.In(state.Required), c.Profile) && len(m.entering) == 0 {
			return Result{Reason: fmt.Sprintf("pods without affinity on: %s", m.Name)}
		}
	}
	return Result{Holds: true, Reason: "all nodes in question have pods with affinity"}
}
