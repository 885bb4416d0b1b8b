package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"drydock/k8s"
)

// budgets follows the PodDisruptionBudgets of the namespaces in which an eviction was refused, so that the next
// attempt comes when a budget allows it and not on a fixed sleep.
type budgets struct {
	client  kubernetes.Interface
	watches map[string]*k8s.Watch[*policyv1.PodDisruptionBudget]
	// changed receives a token after any change of any watched budget.
	changed chan struct{}
}

func newBudgets(client kubernetes.Interface) *budgets {
	return &budgets{
		client: client, watches: map[string]*k8s.Watch[*policyv1.PodDisruptionBudget]{}, changed: make(chan struct{}, 1),
	}
}

// watch follows a namespace's budgets from now on. A missing permission to read them is no error: refusals are then
// retried by backoff alone.
func (b *budgets) watch(ctx context.Context, namespace string) error {
	if _, ok := b.watches[namespace]; ok {
		return nil
	}
	w, err := k8s.NewWatch(ctx, b.client.PolicyV1().RESTClient(), &policyv1.PodDisruptionBudget{},
		k8s.WatchOptions{Resource: "poddisruptionbudgets", Namespace: namespace})
	if err != nil {
		return err
	}
	b.watches[namespace] = w
	if err := w.Synced(ctx, "disruption budgets of namespace "+namespace); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.Changed:
				select {
				case b.changed <- struct{}{}:
				default:
				}
			}
		}
	}()
	return nil
}

// of are the budgets that select a pod, by name.
func (b *budgets) of(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	w, ok := b.watches[pod.Namespace]
	if !ok {
		return nil
	}
	var found []*policyv1.PodDisruptionBudget
	for _, budget := range w.List() {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			found = append(found, budget)
		}
	}
	slices.SortFunc(found, func(x, y *policyv1.PodDisruptionBudget) int { return strings.Compare(x.Name, y.Name) })
	return found
}

// takeAllowed tells whether the pod's budget allows one more disruption, counting those taken in this round: left
// holds what each budget has left.
func (b *budgets) takeAllowed(pod *corev1.Pod, left map[string]int32) bool {
	found := b.of(pod)
	if len(found) == 0 {
		return false
	}
	for _, budget := range found {
		key := budget.Namespace + "/" + budget.Name
		if _, ok := left[key]; !ok {
			left[key] = budget.Status.DisruptionsAllowed
		}
		if left[key] <= 0 || budget.Status.ObservedGeneration < budget.Generation {
			return false
		}
	}
	for _, budget := range found {
		left[budget.Namespace+"/"+budget.Name]--
	}
	return true
}

// describe says what a pod's budgets want and have.
func (b *budgets) describe(pod *corev1.Pod) string {
	var texts []string
	for _, budget := range b.of(pod) {
		s := budget.Status
		texts = append(texts, fmt.Sprintf("budget %s allows %d disruptions: %d of %d pods are healthy, %d are needed",
			budget.Name, s.DisruptionsAllowed, s.CurrentHealthy, s.ExpectedPods, s.DesiredHealthy))
	}
	return strings.Join(texts, "; ")
}
