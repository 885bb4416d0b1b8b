package k8s

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/k8s/kube"
)

// MaintenanceTaint keeps the DaemonSet controller from bringing back the pods that a drain deletes: DaemonSet pods
// tolerate a cordon, but not this.
var MaintenanceTaint = corev1.Taint{Key: "drydock.dev/maintenance", Effect: corev1.TaintEffectNoSchedule}

// Taint sets MaintenanceTaint on a node that the maintenance holds; the release of its last holder takes it off. It is
// idempotent. Errors: ErrNodeGone, ErrNotHolder, ErrOtherRun.
func Taint(ctx context.Context, client kube.Interface, name string, c Caller) error {
	err := patchTaint(ctx, client, name, c, true)
	if err != nil {
		return fmt.Errorf("tainting node %s: %w", name, err)
	}
	return nil
}

// Untaint takes MaintenanceTaint off a node that the maintenance holds, so that pods come back before the node does: those
// of DaemonSets, and Jobs that look at the node. Errors: ErrNodeGone, ErrNotHolder, ErrOtherRun.
func Untaint(ctx context.Context, client kube.Interface, name string, c Caller) error {
	err := patchTaint(ctx, client, name, c, false)
	if err != nil {
		return fmt.Errorf("taking the taint off node %s: %w", name, err)
	}
	return nil
}

func patchTaint(ctx context.Context, client kube.Interface, name string, c Caller, want bool) error {
	return changeHeld(ctx, client, name, func(node *corev1.Node, mark Mark) (nodePatch, map[string]*string, error) {
		if err := mark.Allows(c); err != nil || isTainted(node) == want {
			return nil, nil, err
		}
		taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), isMaintenanceTaint)
		if want {
			taints = append(taints, MaintenanceTaint)
		}
		return nodePatch{"spec": map[string]any{"taints": taints}}, nil, nil
	})
}

func isTainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, isMaintenanceTaint)
}

func isMaintenanceTaint(t corev1.Taint) bool { return t.MatchTaint(&MaintenanceTaint) }

// ToleratesMaintenance reports whether a DaemonSet would put its pod back in spite of MaintenanceTaint.
func ToleratesMaintenance(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Key == "" || t.Key == MaintenanceTaint.Key) && t.Operator == corev1.TolerationOpExists &&
			(t.Effect == "" || t.Effect == MaintenanceTaint.Effect) ||
			t.Key == MaintenanceTaint.Key && t.Operator != corev1.TolerationOpExists && t.Value == MaintenanceTaint.Value &&
				(t.Effect == "" || t.Effect == MaintenanceTaint.Effect)
	})
}
