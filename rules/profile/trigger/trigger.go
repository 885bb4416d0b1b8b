// Package trigger has the triggers of profiles: what each kind is configured with and what it does, as values. Those that only
// change the node object do so here; the others return a description, and an activity acts on it.
package trigger

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/rules/profile/conf"
)

// Trigger is one configured trigger.
type Trigger interface {
	// Describe says in a few words what it does.
	Describe() string
}

// Change is a trigger that changes the node object and nothing else.
type Change interface {
	Trigger
	// Apply changes the node, and reports whether that made a difference.
	Apply(node *corev1.Node) bool
}

// Kind is a kind of trigger.
type Kind struct {
	Name string
	// read makes a trigger of its configuration; what is wrong it notes there.
	read     func(o *conf.Object) Trigger
	optional bool
}

// kinds are all kinds of triggers, in the order of their names.
var kinds = []Kind{
	{Name: "alterAnnotation", read: readAlterAnnotation},
	{Name: "alterFinalizer", read: readAlterFinalizer},
	{Name: "alterLabel", read: readAlterLabel},
	{Name: "eviction", read: readEviction},
	{Name: "job", read: readJob},
	{Name: "maintenance", read: readMaintenance, optional: true},
}

// Kinds are the names of the kinds that there are.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// NotBuilt reports whether a kind is one of maintenance-controller's that Drydock does not have.
func NotBuilt(kind string) bool { return kind == "alterHypervisor" }

// Read makes a trigger of kind; known reports that there is such a kind.
func Read(kind string, o *conf.Object) (t Trigger, known bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == kind })
	if i < 0 {
		return nil, false
	}
	k := kinds[i]
	if o.Absent() && !k.optional {
		o.Refuse("", "write config with what the kind needs", "required")
		return nil, true
	}
	return k.read(o), true
}
