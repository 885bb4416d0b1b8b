package k8s

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// MaintenanceTaint keeps the DaemonSet controller from bringing back the pods that a drain deletes: DaemonSet pods
// tolerate a cordon, but not this.
var MaintenanceTaint = corev1.Taint{Key: "drydock.dev/maintenance", Effect: corev1.TaintEffectNoSchedule}

// Taint sets MaintenanceTaint on a node that the maintenance holds; the release of its last holder takes it off. It is
// idempotent. Errors: ErrNodeGone, ErrNotHolder.
func Taint(ctx context.Context, client kubernetes.Interface, name, workflowID, runID string) error {
	err := patchTaint(ctx, client, name, workflowID, runID, true)
	if err != nil {
		return fmt.Errorf("tainting node %s: %w", name, err)
	}
	return nil
}

// Untaint takes MaintenanceTaint off a node that the maintenance holds, so that the pods of DaemonSets come back before
// the node does. Errors: ErrNodeGone, ErrNotHolder.
func Untaint(ctx context.Context, client kubernetes.Interface, name, workflowID, runID string) error {
	err := patchTaint(ctx, client, name, workflowID, runID, false)
	if err != nil {
		return fmt.Errorf("taking the taint off node %s: %w", name, err)
	}
	return nil
}

func patchTaint(ctx context.Context, client kubernetes.Interface, name, workflowID, runID string, want bool) error {
	return notFound(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, mark, err := getMarked(ctx, client, name)
		if err != nil {
			return err
		}
		if !mark.HeldBy(workflowID, runID) {
			return ErrNotHolder
		}
		if isTainted(node) == want {
			return nil
		}
		taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), isMaintenanceTaint)
		if want {
			taints = append(taints, MaintenanceTaint)
		}
		patch, err := nodePatch{"spec": map[string]any{"taints": taints}}.guarded(node, nil, nil)
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Nodes().Patch(ctx, name, mergePatch, patch, metav1.PatchOptions{})
		return err
	}))
}

func isTainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, isMaintenanceTaint)
}

func isMaintenanceTaint(t corev1.Taint) bool { return t.MatchTaint(&MaintenanceTaint) }

// ToleratesMaintenance tells whether a DaemonSet would put its pod back in spite of MaintenanceTaint.
func ToleratesMaintenance(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Key == "" || t.Key == MaintenanceTaint.Key) && t.Operator == corev1.TolerationOpExists &&
			(t.Effect == "" || t.Effect == MaintenanceTaint.Effect) ||
			t.Key == MaintenanceTaint.Key && t.Operator != corev1.TolerationOpExists && t.Value == MaintenanceTaint.Value &&
				(t.Effect == "" || t.Effect == MaintenanceTaint.Effect)
	})
}
