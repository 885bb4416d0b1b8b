package health

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/rules/period"
)

// UnhealthyCondition makes a node ill once it has been so for longer than Duration: once its condition Type has been Status, or once the
// check has seen it without the condition Missing.
type UnhealthyCondition struct {
	// Type is the type of a condition of the node, which makes the node ill while it has `status`. Any will do, those of node-problem-detector too.
	Type string `json:"type,omitempty" jsonschema:"minLength=1,maxLength=316"`
	// Status is the one in which the condition makes the node ill.
	Status string `json:"status,omitempty" jsonschema:"minLength=1,maxLength=316"`
	// Missing is the type of a condition that the node does not have, in place of `type` and `status`: what should report it does not run
	// there.
	Missing string `json:"missing,omitempty" jsonschema:"minLength=1,maxLength=316"`
	// Duration is the time for longer than which the node has to be so. It is counted from the condition's `lastTransitionTime`, for a
	// `missing` one from when the check first saw it so.
	Duration period.Duration `json:"duration" jsonschema:"required"`
}

// source is a kind of thing that makes a node ill. A new one is a file with a type that implements it, fields of UnhealthyCondition, and a
// line in sources.
type source interface {
	// validate adds what is wrong with the entry at.
	validate(wrong *problems, at string)
	// since returns from when on a node has been so, zero if nobody knows: then the check counts from when it first sees it so. False is
	// that it is not.
	since(node *corev1.Node) (time.Time, bool)
	// words say what of a node is how, as in Ready, False.
	words() (what, how string)
}

// sources are those that an entry names: of a valid one, exactly one.
func (c UnhealthyCondition) sources() (named []source) {
	if c.Type != "" || c.Status != "" {
		named = append(named, nodeCondition{c.Type, c.Status})
	}
	if c.Missing != "" {
		named = append(named, missingCondition(c.Missing))
	}
	return named
}

// source is the one that an entry names.
func (c UnhealthyCondition) source() source {
	if named := c.sources(); len(named) > 0 {
		return named[0]
	}
	return nodeCondition{}
}

// Since returns from when on a node has been so, zero if nobody knows; false is that it is not.
func (c UnhealthyCondition) Since(node *corev1.Node) (time.Time, bool) { return c.source().since(node) }

// Words say what of a node is how, as in Ready, False.
func (c UnhealthyCondition) Words() (what, how string) { return c.source().words() }

func (c UnhealthyCondition) validate(wrong *problems, at string) {
	if len(c.sources()) > 1 {
		wrong.add(at, "names several things: want an entry for each")
		return
	}
	c.source().validate(wrong, at)
}

// nodeCondition is a condition of the node with a status.
type nodeCondition struct{ name, status string }

func (c nodeCondition) validate(wrong *problems, at string) {
	wrong.word(at+".type", c.name)
	wrong.word(at+".status", c.status)
}

func (c nodeCondition) since(node *corev1.Node) (time.Time, bool) {
	for _, has := range node.Status.Conditions {
		if string(has.Type) == c.name && string(has.Status) == c.status {
			return has.LastTransitionTime.UTC(), true
		}
	}
	return time.Time{}, false
}

func (c nodeCondition) words() (what, how string) { return c.name, c.status }
