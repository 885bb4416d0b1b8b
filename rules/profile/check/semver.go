package check

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"drydock.dev/drydock/rules/profile/conf"
)

func readClusterSemver(o *conf.Object, _ Environment) Check {
	return clusterSemver{key: o.Required("key", "the label with the version"), scoped: o.Bool("profileScoped")}
}

// clusterSemver reports whether a version in a label is less than the highest of the cluster, or of the nodes with the profile.
type clusterSemver struct {
	key    string
	scoped bool
}

// highest is a version and the node that has it.
type highest struct {
	version semver.Version
	node    string
}

// floor is the least value of the highest version, as in maintenance-controller.
var floor = semver.MustParse("0.1.0")

// Hold is part of Check.
func (s clusterSemver) Hold(c Case) Result {
	label, there := c.Node.Labels[s.key]
	if !there {
		return failed("label %s not present", s.key)
	}
	own, err := semver.Parse(label)
	if err != nil {
		return failed("label %s is %q, which is not a version such as 1.2.3: %s", s.key, label, err)
	}
	most := s.highest(c)
	r := Result{Holds: own.LT(most.version)}
	switch {
	case r.Holds:
		r.Reason = fmt.Sprintf("%s is less than %s", own, most.version)
		if most.node != "" {
			r.Reason += " of node " + most.node
		}
	default:
		r.Reason = fmt.Sprintf("no node has a version above %s", own)
	}
	return r.info("own", own).info("max", most.version)
}

func (s clusterSemver) highest(c Case) highest {
	scope := ""
	if s.scoped {
		scope = c.Profile
	}
	key := [2]string{s.key, scope}
	if known, ok := c.View.indexed().versions[key]; ok {
		return known
	}
	most := highest{version: floor}
	for _, m := range c.View.Members() {
		// A node without a label has the profile default, which is in no label: nobody is in its scope.
		if s.scoped && (m.Labels[profileLabel] == "" || !slices.Contains(m.Profiles, scope)) {
			continue
		}
		if v, err := semver.Parse(m.Labels[s.key]); err == nil && v.GT(most.version) {
			most = highest{version: v, node: m.Name}
		}
	}
	c.View.indexed().versions[key] = most
	return most
}
