package check

import (
	"fmt"

	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
)

func readAffinity(o *conf.Object, _ Environment) Check {
	return affinity{minOperational: o.Int("minOperational", 0)}
}

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
	if why := c.View.Unread[c.Node.Name]; why != "" {
		return failed("pods of %s: %s", c.Node.Name, why)
	}
	if !c.View.Marked[c.Node.Name] {
		return Result{Holds: true, Reason: "no pods with affinity"}
	}
	unread := ""
	for _, m := range c.View.indexed().unmarked[c.Profile] {
		switch {
		case m.Name == c.Node.Name || len(m.entering) > 0:
		case c.View.Unread[m.Name] == "":
			return Result{Reason: fmt.Sprintf("pods without affinity on: %s", m.Name)}
		case unread == "":
			unread = m.Name
		}
	}
	if unread != "" {
		return failed("pods of %s: %s", unread, c.View.Unread[unread])
	}
	return Result{Holds: true, Reason: "all nodes in question have pods with affinity"}
}
