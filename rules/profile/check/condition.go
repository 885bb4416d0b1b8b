package check

import (
	"fmt"

	"drydock.dev/drydock/rules/profile/conf"
)

func readCondition(o *conf.Object, _ Environment) Check {
	return condition{of: o.Required("type", "the type of a condition, such as Ready"), status: o.Required("status", `"True", "False" or "Unknown", in quotes`)}
}

// condition compares a condition of the node.
type condition struct{ of, status string }

// Hold is part of Check.
func (k condition) Hold(c Case) Result {
	for _, found := range c.Node.Status.Conditions {
		if string(found.Type) != k.of {
			continue
		}
		r := Result{Holds: string(found.Status) == k.status, Since: found.LastTransitionTime.Time}
		if !r.Holds {
			r.Reason = fmt.Sprintf("condition %s is %s", k.of, found.Status)
		}
		return r.info("current", found.Status).info("expected", k.status)
	}
	return Result{Reason: fmt.Sprintf("condition %s not present", k.of)}
}
