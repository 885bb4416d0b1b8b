package check

import (
	"fmt"

	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/profile/conf"
)

func readNodeCount(o *conf.Object, _ Environment) Check {
	return nodeCount{count: o.RequiredInt("count", "how many nodes there have to be")}
}

// nodeCount wants a number of nodes, ready or not.
type nodeCount struct{ count int }

// Hold is part of Check.
func (n nodeCount) Hold(c Case) Result {
	there := len(c.View.Members())
	r := Result{Holds: there >= n.count}
	if !r.Holds {
		r.Reason = fmt.Sprintf("%s there, and %d are wanted", number.Are(there, "node"), n.count)
	}
	return r.info("current", there).info("expected", n.count)
}
