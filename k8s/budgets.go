package k8s

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/rules/number"
)

// BudgetsOf are the budgets of the pod's namespace that select it, by name.
func BudgetsOf(pod *corev1.Pod, all []*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	var found []*policyv1.PodDisruptionBudget
	for _, budget := range all {
		if budget.Namespace != pod.Namespace {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			found = append(found, budget)
		}
	}
	slices.SortFunc(found, func(x, y *policyv1.PodDisruptionBudget) int { return strings.Compare(x.Name, y.Name) })
	return found
}

// Impossible reports whether a budget can never allow a disruption of healthy pods as it is written: it wants all of them.
func Impossible(budget *policyv1.PodDisruptionBudget) bool {
	pods := int(budget.Status.ExpectedPods)
	if most := budget.Spec.MaxUnavailable; most != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(most, max(pods, 1), true)
		return err == nil && n == 0
	}
	if least := budget.Spec.MinAvailable; least != nil && pods > 0 {
		n, err := intstr.GetScaledValueFromIntOrPercent(least, pods, true)
		return err == nil && n >= pods
	}
	return false
}

// Unblock says what a budget's numbers are, and what would let it allow a disruption of the pod.
func Unblock(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) string {
	s := budget.Status
	text := fmt.Sprintf("budget %s allows %s: %s, %s needed", budget.Name, number.Of(int(s.DisruptionsAllowed), "disruption"), healthy(s), number.Form(int(s.DesiredHealthy), "is", "are"))
	if c := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition); c != nil && c.Reason == policyv1.SyncFailedReason {
		return text + "; Kubernetes cannot count its pods: " + c.Message
	}
	missing := s.DesiredHealthy + 1 - s.CurrentHealthy
	switch {
	case s.DisruptionsAllowed > 0:
		return text
	case Impossible(budget):
		return text + "; as it is written it never allows one: lower minAvailable, raise maxUnavailable, or add replicas"
	case !IsPodReady(pod) && !alwaysAllows(budget):
		return text + "; the pod itself is not ready: repair it, or set the budget's unhealthyPodEvictionPolicy to AlwaysAllow"
	case missing > 0:
		return text + fmt.Sprintf("; it allows one when %s healthy", number.Form(int(missing), "more is", "more are"))
	default:
		return text
	}
}

// healthy says how many pods of a budget are. How many there are to be is not known of pods that nobody re-creates.
func healthy(s policyv1.PodDisruptionBudgetStatus) string {
	if s.ExpectedPods >= s.CurrentHealthy && s.ExpectedPods > 0 {
		return fmt.Sprintf("%d of %d pods are healthy", s.CurrentHealthy, s.ExpectedPods)
	}
	return number.Are(int(s.CurrentHealthy), "pod") + " healthy"
}

// OutsideBudgets reports whether the API server evicts a pod whatever its budgets say: it does not run yet, or no more.
func OutsideBudgets(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning
}

// AllowsUnready reports whether a budget lets a pod go that is not ready, without counting it as a disruption: always, or by
// default while enough of the others are healthy (policy/v1, unhealthyPodEvictionPolicy).
func AllowsUnready(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if IsPodReady(pod) {
		return false
	}
	s := budget.Status
	return alwaysAllows(budget) || s.DesiredHealthy > 0 && s.CurrentHealthy >= s.DesiredHealthy
}

// Refuses reports whether a budget would refuse the eviction of a pod now.
func Refuses(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if OutsideBudgets(pod) || AllowsUnready(budget, pod) {
		return false
	}
	return budget.Status.DisruptionsAllowed <= 0 || budget.Status.ObservedGeneration < budget.Generation
}

func alwaysAllows(budget *policyv1.PodDisruptionBudget) bool {
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	return policy != nil && *policy == policyv1.AlwaysAllow
}

// IsPodReady reports whether a pod's Ready condition is true.
func IsPodReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
