package drain

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock/api"
	"drydock/k8s"
)

// budgets follows the PodDisruptionBudgets of the namespaces in which an eviction was refused, so that the next
// attempt comes when a budget allows it and not on a fixed sleep.
type budgets struct {
	client kubernetes.Interface

	mu      sync.Mutex
	watches map[string]*k8s.Watch[*policyv1.PodDisruptionBudget]
	// spent are the evictions that a budget's last known version does not show, by the budget's UID.
	spent map[types.UID]spending
	// changed receives a token after any change of any watched budget.
	changed chan struct{}
}

// spending counts evictions since a version of a budget.
type spending struct {
	version string
	count   int32
}

func newBudgets(client kubernetes.Interface) *budgets {
	return &budgets{
		client: client, watches: map[string]*k8s.Watch[*policyv1.PodDisruptionBudget]{}, spent: map[types.UID]spending{},
		changed: make(chan struct{}, 1),
	}
}

// watch follows a namespace's budgets from now on. It does not wait for the first copy, which is a change like any
// other. A missing permission to read them is no error: refusals are then retried by backoff alone.
func (b *budgets) watch(ctx context.Context, namespace string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.watches[namespace]; ok {
		return nil
	}
	w, err := k8s.NewWatch(ctx, b.client.PolicyV1().RESTClient(), &policyv1.PodDisruptionBudget{},
		k8s.WatchOptions{Resource: "poddisruptionbudgets", Namespace: namespace})
	if err != nil {
		return err
	}
	b.watches[namespace] = w
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

// syncWithin is how long an eviction waits for the first copy of the budgets: without it, it is asked for all the same.
const syncWithin = time.Second

// synced waits for the first copy of a namespace's budgets, if that is watched.
func (b *budgets) synced(ctx context.Context, namespace string) {
	b.mu.Lock()
	w, ok := b.watches[namespace]
	b.mu.Unlock()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, syncWithin)
	defer cancel()
	_ = w.Synced(ctx, "budgets") // late or refused: the budgets are not known then, and the API server asks them anyhow
}

// spend notes that a pod's eviction was accepted, which its budgets' next versions will show. A version that shows it
// already, and a budget that the pod costs nothing, are left alone: no further version need come.
func (b *budgets) spend(pod *corev1.Pod) {
	if k8s.OutsideBudgets(pod) {
		return
	}
	found := b.of(pod)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, budget := range found {
		if _, shown := budget.Status.DisruptedPods[pod.Name]; shown || k8s.AllowsUnready(budget, pod) {
			continue
		}
		s := b.spent[budget.UID]
		if s.version != budget.ResourceVersion {
			s = spending{version: budget.ResourceVersion}
		}
		s.count++
		b.spent[budget.UID] = s
	}
}

// allows is how many disruptions a budget allows, less those that it does not show yet.
func (b *budgets) allows(budget *policyv1.PodDisruptionBudget) int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.spent[budget.UID]; s.version == budget.ResourceVersion {
		return budget.Status.DisruptionsAllowed - s.count
	}
	return budget.Status.DisruptionsAllowed
}

// of are the budgets that select a pod, by name.
func (b *budgets) of(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	b.mu.Lock()
	w, ok := b.watches[pod.Namespace]
	b.mu.Unlock()
	if !ok {
		return nil
	}
	return k8s.BudgetsOf(pod, w.List())
}

// first names the first budget of a pod; empty where none is known.
func (b *budgets) first(pod *corev1.Pod) string {
	if found := b.of(pod); len(found) > 0 {
		return found[0].Namespace + "/" + found[0].Name
	}
	return ""
}

// refuse tells whether the pod's budgets are known to refuse it now, so that it is not worth a request. left holds what
// each budget has left in this round.
func (b *budgets) refuse(pod *corev1.Pod, left map[string]int32) bool {
	return len(b.of(pod)) > 0 && !k8s.OutsideBudgets(pod) && !b.takeAllowed(pod, left)
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
			left[key] = b.allows(budget)
		}
		if k8s.AllowsUnready(budget, pod) {
			continue
		}
		if left[key] <= 0 || budget.Status.ObservedGeneration < budget.Generation {
			return false
		}
	}
	for _, budget := range found {
		if k8s.AllowsUnready(budget, pod) {
			continue
		}
		left[budget.Namespace+"/"+budget.Name]--
	}
	return true
}

// describe says what a pod's budgets want and have, and what would let them allow a disruption.
func (b *budgets) describe(pod *corev1.Pod) string {
	var texts []string
	for _, budget := range b.of(pod) {
		texts = append(texts, k8s.Unblock(budget, pod))
	}
	return strings.Join(texts, "; ")
}

func (b *budgets) states(pod *corev1.Pod) []api.BudgetState {
	var states []api.BudgetState
	for _, budget := range b.of(pod) {
		s := budget.Status
		states = append(states, api.BudgetState{
			Name: budget.Name, Allowed: s.DisruptionsAllowed, Healthy: s.CurrentHealthy, Desired: s.DesiredHealthy,
			Pods: s.ExpectedPods, Impossible: k8s.Impossible(budget),
		})
	}
	return states
}
