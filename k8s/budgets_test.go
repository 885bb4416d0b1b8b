package k8s_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/k8s"
)

func TestABudgetSaysOnlyWhatIsCounted(t *testing.T) {
	ready := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	one := intstr.FromInt32(1)
	uncounted := []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "found no controllers for pod web"}}
	for want, status := range map[string]policyv1.PodDisruptionBudgetStatus{
		"budget web allows 0 disruptions: 2 of 3 pods are healthy, 2 are needed; it allows one when 1 more is healthy": {ExpectedPods: 3, CurrentHealthy: 2, DesiredHealthy: 2},
		"budget web allows 0 disruptions: 1 pod is healthy, 1 is needed; it allows one when 1 more is healthy":         {CurrentHealthy: 1, DesiredHealthy: 1},
		"budget web allows 0 disruptions: 3 pods are healthy, 0 are needed; Kubernetes cannot count its pods: found no controllers for pod web": {
			CurrentHealthy: 3, Conditions: uncounted,
		},
	} {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}, Status: status}
		if got := k8s.Unblock(budget, ready); got != want || strings.Contains(got, "of 0") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
