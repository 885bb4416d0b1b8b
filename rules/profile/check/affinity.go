package check

import (
	"fmt"

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
		if operational := c.View.indexed().operational[c.Profile]; operational >= a.minOperational {
			return Result{Holds: true, Reason: "minOperational exceeded"}.info("operational", operational)
		}
	}
	if !c.View.Marked[c.Node.Name] {
		return Result{Holds: true, Reason: "no pods with affinity"}
	}
	for _, m := range c.View.indexed().unmarked[c.Profile] {
		if m.Name != c.Node.Name && len(m.entering) == 0 {
			return Result{Reason: fmt.Sprintf("pods without affinity on: %s", m.Name)}
		}
	}
	return Result{Holds: true, Reason: "all nodes in question have pods with affinity"}
}
