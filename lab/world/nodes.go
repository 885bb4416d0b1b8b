package world

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// NodeName is devcluster's name of its i-th node, from 0.
func NodeName(i int) string { return fmt.Sprintf("worker-%02d", i+1) }

// PatchNode changes a node by a merge patch.
func PatchNode(ctx context.Context, kube kubernetes.Interface, node, format string, args ...any) error {
	_, err := kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{})
	return err
}

// SetCondition sets a condition of a node that has its status since a time.
func SetCondition(ctx context.Context, kube kubernetes.Interface, node, kind string, status corev1.ConditionStatus, since time.Time) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Test","message":"as the test has it","lastTransitionTime":%q}]}}`,
		kind, status, since.UTC().Format(time.RFC3339))
	_, err := kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
