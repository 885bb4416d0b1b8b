// Package nodestate says what a node is by its labels, its spec and its conditions.
package nodestate

import corev1 "k8s.io/api/core/v1"

// IsReady reports whether a node's Ready condition is true.
func IsReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// IsSilent reports whether a node's kubelet does not answer: the control plane, which watches its Lease, knows nothing of it.
// A kubelet that says of itself that it is not Ready still ends pods.
func IsSilent(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown
		}
	}
	return false
}

// IsUnavailable reports whether a node counts as unavailable: unschedulable or not Ready (maintenance-operator,
// scheduling algorithm step 2).
func IsUnavailable(node *corev1.Node) bool { return node.Spec.Unschedulable || !IsReady(node) }

// WhyUnavailable says in words why a node counts as unavailable.
func WhyUnavailable(node *corev1.Node) string {
	switch {
	case !node.Spec.Unschedulable:
		return "not Ready"
	case IsReady(node):
		return "cordoned"
	default:
		return "cordoned and not Ready"
	}
}

// IsControlPlane reports whether the labels of a node say that it is one of the control plane's: they have the label that kubeadm and others
// set, or the one that it replaced, with any value.
func IsControlPlane(labels map[string]string) bool {
	for _, key := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, has := labels[key]; has {
			return true
		}
	}
	return false
}
