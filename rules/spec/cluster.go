package spec

import (
	"fmt"
	"regexp"
)

// ClusterName checks the name of a cluster, which becomes a part of workflow IDs and of list queries; empty is none.
func ClusterName(name string) error {
	if name != "" && !clusterName.MatchString(name) {
		return fmt.Errorf("%q: want lower-case letters, digits and '-', at most 63", name)
	}
	return nil
}

var clusterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
