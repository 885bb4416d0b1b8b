// Package check has the checks of profiles: what each kind is configured with, and whether it holds for a node, out of facts
// that somebody else has gathered.
package check

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
)

// Check is one configured check.
type Check interface {
	// Hold reports whether it holds. It changes nothing.
	Hold(c Case) Result
}

// needy is a check that looks at more than nodes.
type needy interface{ needs(*Needs) }

// claiming is a check that takes something when a transition goes by it.
type claiming interface{ claims(Case) []Claim }

// Case is what a check is asked about.
type Case struct {
	Now  time.Time
	Node *corev1.Node
	// Profile is in State since Since.
	Profile string
	State   state.State
	Since   time.Time
	View    *View
}

// Result is what a check says.
type Result struct {
	Holds bool `json:"holds"`
	// Error says why the check failed to find out whether it holds; then it does not.
	Error string `json:"error,omitempty"`
	// Reason says why it does not hold, or why it does.
	Reason string `json:"reason,omitempty"`
	// Info are values that it looked at.
	Info []Fact `json:"info,omitempty"`
	// Since is since when it is so, where what it looked at says that; Until is when time alone changes it.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Fact is a value that a check looked at.
type Fact struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func failed(format string, args ...any) Result { return Result{Error: fmt.Sprintf(format, args...)} }

func (r Result) info(key string, value any) Result {
	r.Info = append(slices.Clip(r.Info), Fact{Key: key, Value: fmt.Sprint(value)})
	return r
}

// Kind is a kind of check.
type Kind struct {
	Name string
	// read makes a check of its configuration; what is wrong it notes there.
	read func(o *conf.Object, e Environment) Check
	// optional: it needs no configuration.
	optional bool
}

// Environment is what kinds need to be made.
type Environment struct {
	// CEL compiles expressions; nil leaves them uncompiled, and such a check fails.
	CEL func(expression string) (Expression, error)
}

// Expression is a compiled expression over a node.
type Expression interface {
	Judge(c Case) (bool, error)
}

// kinds are all kinds of checks, in the order of their names.
var kinds = []Kind{
	{Name: "affinity", read: readAffinity, optional: true},
	{Name: "anyLabel", read: readAnyLabel},
	{Name: "cel", read: readCel},
	{Name: "clusterSemver", read: readClusterSemver},
	{Name: "condition", read: readCondition},
	{Name: "hasAnnotation", read: readHasAnnotation},
	{Name: "hasLabel", read: readHasLabel},
	{Name: "maxMaintenance", read: readMaxMaintenance},
	{Name: "nodeCount", read: readNodeCount},
	{Name: "prometheusInstant", read: readPrometheusInstant},
	{Name: "stagger", read: readStagger},
	{Name: "timeWindow", read: readTimeWindow},
	{Name: "wait", read: readWait},
	{Name: "waitExclude", read: readWaitExclude},
}

// Kinds are the names of the kinds that there are.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// notBuilt are kinds of maintenance-controller that Drydock does not have.
var notBuilt = []string{"checkHypervisor", "hypervisorCondition", "kubernikusCount"}

// NotBuilt reports whether a kind is one of maintenance-controller's that Drydock does not have.
func NotBuilt(kind string) bool { return slices.Contains(notBuilt, kind) }

// Read makes a check of a kind. It is nil if its configuration is wrong; known is false if there is no such kind.
func Read(kind string, o *conf.Object, e Environment) (c Check, known bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == kind })
	if i < 0 {
		return nil, false
	}
	k := kinds[i]
	if o.Absent() && !k.optional {
		o.Refuse("", "write config with what the kind needs", "required")
		return nil, true
	}
	return k.read(o, e), true
}

// Needs are facts that checks look at, besides nodes.
type Needs struct {
	Queries []Query
	Leases  []LeaseName
	// Pods: which nodes have pods with the affinity that the kind affinity looks for.
	Pods bool
}

// NeedsOf are what some checks need, each once, in order.
func NeedsOf(checks []Check) Needs {
	var n Needs
	for _, c := range checks {
		if more, ok := c.(needy); ok {
			more.needs(&n)
		}
	}
	slices.SortFunc(n.Queries, Query.compare)
	slices.SortFunc(n.Leases, LeaseName.compare)
	n.Queries, n.Leases = slices.Compact(n.Queries), slices.Compact(n.Leases)
	return n
}

// Claims are what is taken when a transition goes by these checks.
func Claims(c Case, checks []Check) []Claim {
	var all []Claim
	for _, check := range checks {
		if taking, ok := check.(claiming); ok {
			all = append(all, taking.claims(c)...)
		}
	}
	return all
}
