// Package roles is an authorizer for a Temporal server that Drydock uses: it keeps apart who starts maintenances, who approves them, and
// who operates Drydock, which Temporal's own roles do not. It needs Temporal's server and nothing of Drydock, so that it can be copied
// into another server as it is.
package roles

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/server/common/primitives"
)

// Roles are what a caller may do, a set of bits. Each role may read.
type Roles uint8

// The roles.
const (
	// Reader may list, describe and query workflows, and read their histories.
	Reader Roles = 1 << iota
	// Starter may start maintenances, plans, and questions that change nothing, and send what a requestor says.
	Starter
	// Approver may approve and deny, and start nothing.
	Approver
	// Operator may do what a Starter may, change limits, plans and health checks, override a drain, and terminate, reset and delete.
	Operator
	// Worker may poll task queues and answer for what it polls: it is for drydock-worker alone.
	Worker
)

var named = map[string]Roles{"reader": Reader, "starter": Starter, "approver": Approver, "operator": Operator, "worker": Worker}

// Parse reads roles that are separated by commas.
func Parse(text string) (Roles, error) {
	var all Roles
	for name := range strings.SplitSeq(text, ",") {
		role, ok := named[name]
		if !ok {
			return 0, fmt.Errorf("role %q: want %s", name, strings.Join(slices.Sorted(maps.Keys(named)), ", "))
		}
		all |= role
	}
	return all, nil
}

// String is the inverse of Parse.
func (r Roles) String() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if r&named[name] != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// Everywhere is the name that stands for all namespaces in a Granted, as it does in the permissions of Temporal's JWTs.
const Everywhere = primitives.SystemLocalNamespace

// Granted are the roles of a caller by namespace. A claim mapper sets it as Claims.Extensions.
type Granted map[string]Roles

func (g Granted) in(namespace string) Roles { return g[Everywhere] | g[namespace] }

// anywhere are the roles that the caller has in one namespace or another.
func (g Granted) anywhere() Roles {
	var all Roles
	for _, roles := range g {
		all |= roles
	}
	return all
}
