package health

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// missingCondition is a condition that the node does not have: what reports it, such as node-problem-detector, has never run there.
type missingCondition string

func (c missingCondition) validate(wrong *problems, at string) { wrong.word(at+".missing", string(c)) }

// since does not know the time: Kubernetes does not keep when a condition was removed.
func (c missingCondition) since(node *corev1.Node) (time.Time, bool) {
	there := slices.ContainsFunc(node.Status.Conditions, func(has corev1.NodeCondition) bool { return has.Type == corev1.NodeConditionType(c) })
	return time.Time{}, !there
}

func (c missingCondition) words() (what, how string) { return string(c), "missing" }
