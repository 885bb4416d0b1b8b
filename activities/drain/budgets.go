package drain

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// budgets follows the PodDisruptionBudgets of the namespaces in which an eviction was refused, so that the next
// attempt comes when a budget allows it and not on a fixed sleep.
type budgets struct {
	source *k8s.Shared[*policyv1.PodDisruptionBudget]

	mu   sync.Mutex
	view *k8s.SharedView[*policyv1.PodDisruptionBudget]
	// followed are the namespaces.
	followed map[string]bool
	// spent are the evictions that a budget's last known version does not show, by the budget's UID.
	spent map[types.UID]spending
	// changed receives a token after any change of a budget in a namespace that is followed.
	changed chan struct{}
}

// spending counts evictions since a version of a budget.
type spending struct {
	version string
	count   int32
}

func newBudgets(source *k8s.Shared[*policyv1.PodDisruptionBudget]) *budgets {
	return &budgets{source: source, followed: map[string]bool{}, spent: map[types.UID]spending{}, changed: make(chan struct{}, 1)}
}

// watch follows a namespace's budgets from now on. It does not wait for the first copy, which is a change like any
// other. A missing permission to read them is no error: refusals are then retried by backoff alone.
func (b *budgets) watch(ctx context.Context, namespace string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followed[namespace] {
		return nil
	}
	if b.view == nil {
		view, err := b.source.Follow(ctx, b.concerns)
		if err != nil {
			return err
		}
		b.view = view
	}
	b.followed[namespace] = true
	if b.view.HasSynced() {
		b.wake()
	}
	return nil
}

// concerns passes the changes of followed namespaces on.
func (b *budgets) concerns(budget *policyv1.PodDisruptionBudget, _ bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followed[budget.Namespace] {
		b.wake()
	}
	return false // changed has the token
}

func (b *budgets) wake() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// following is the view of the budgets where a namespace's are followed, else nil.
func (b *budgets) following(namespace string) *k8s.SharedView[*policyv1.PodDisruptionBudget] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.followed[namespace] {
		return nil
	}
	return b.view
}

// syncWithin is how long an eviction waits for the first copy of the budgets: after that it is sent without them.
const syncWithin = time.Second

// synced waits for the first copy of a namespace's budgets, if that is watched.
func (b *budgets) synced(ctx context.Context, namespace string) {
	view := b.following(namespace)
	if view == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, syncWithin)
	defer cancel()
	_ = view.Synced(ctx) // late or refused: the budgets are not known then, and the API server asks them anyhow
}

// known reports whether a namespace's budgets are known, be there none.
func (b *budgets) known(namespace string) bool {
	view := b.following(namespace)
	return view != nil && view.HasSynced() && view.Err() == nil
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
	view := b.following(pod.Namespace)
	if view == nil {
		return nil
	}
	return k8s.BudgetsOf(pod, view.By(pod.Namespace))
}

// first names the first budget of a pod; empty if none is known.
func (b *budgets) first(pod *corev1.Pod) string {
	if found := b.of(pod); len(found) > 0 {
		return found[0].Namespace + "/" + found[0].Name
	}
	return ""
}

// selecting identifies the budgets that select a pod; nil if they are not known.
func (b *budgets) selecting(pod *corev1.Pod) *string {
	if !b.known(pod.Namespace) {
		return nil
	}
	var uids strings.Builder
	for _, budget := range b.of(pod) {
		uids.WriteString(string(budget.UID) + "/" + budget.Name + " ")
	}
	return new(uids.String())
}

// refuse reports whether the pod's budgets are known to refuse it now, so that it is not worth a request. left holds what
// each budget has left in this round.
func (b *budgets) refuse(pod *corev1.Pod, left map[string]int32) bool {
	return len(b.of(pod)) > 0 && !k8s.OutsideBudgets(pod) && !b.takeAllowed(pod, left)
}

// takeAllowed reports whether the pod's budget allows one more disruption, counting those taken in this round: left
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
