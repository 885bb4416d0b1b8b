package drain

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock/activities/reporting"
	"drydock/api"
	"drydock/k8s"
)

// blocked completes the progress with what keeps each remaining pod.
func (r *drainRun) blocked(found round) api.DrainProgress {
	p := r.requests.count(found.progress)
	p.Evicted = r.evicted
	p.Pods, p.MorePods = slices.Clone(r.ended), r.moreEnded
	p.Reasons = map[string]int{}
	add := func(pod *corev1.Pod, b api.Blocker) {
		p.Reasons[b.Reason]++
		if len(p.Blockers) == reporting.MaxBlockers {
			p.MoreBlockers++
			return
		}
		b.Pod, b.Owner = k8s.PodName(pod), k8s.OwnerOf(pod)
		p.Blockers = append(p.Blockers, b)
	}
	for _, refused := range found.refused {
		add(refused.pod, api.Blocker{Reason: refused.verdict.Reason, Message: refused.verdict.Message, Since: r.sinceFirst(refused.pod)})
	}
	for _, pod := range found.awaited {
		add(pod, api.Blocker{Reason: k8s.StaticPod, Since: r.sinceFirst(pod),
			Message: "is a static pod, which nobody can evict: take its manifest off the node, or use plan.static skip"})
	}
	for _, t := range found.targets {
		r.addRefusal(t.Pod, add)
	}
	for _, pod := range found.leaving {
		if late, message := r.overdue(pod); late {
			add(pod, api.Blocker{Reason: "Terminating", Message: message, Since: pod.DeletionTimestamp.Time})
		}
	}
	return p
}

// addRefusal says why a pod that may be evicted is still there.
func (r *drainRun) addRefusal(pod *corev1.Pod, add func(*corev1.Pod, api.Blocker)) {
	t := r.tries[pod.UID]
	switch {
	case k8s.IsFinished(pod):
	case t == nil && !r.back.wait(pod).IsZero():
		add(pod, api.Blocker{Reason: "ComesBack", Message: r.back.explain(pod), Since: pod.CreationTimestamp.Time})
	case t != nil && t.eviction.Answer != k8s.Accepted:
		b := r.budgetBlocker(pod, t.eviction, t.since)
		b.Message = r.requests.explain(pod, b.Message)
		add(pod, b)
	}
}

func (r *drainRun) budgetBlocker(pod *corev1.Pod, e k8s.Eviction, since time.Time) api.Blocker {
	b := api.Blocker{Reason: string(e.Answer), Since: since, Budget: e.Budget, Message: e.Message}
	if e.Answer == k8s.Throttled {
		b.Message = "the API server throttles requests: " + e.Message
	}
	if !refusedByBudget(e.Answer) {
		return b
	}
	b.Budgets = r.budgets.states(pod)
	if text := r.budgets.describe(pod); text != "" {
		b.Message = text
	}
	if b.Budget == "" && len(b.Budgets) > 0 {
		b.Budget = b.Budgets[0].Name
	}
	if e.Answer == k8s.SeveralBudgets {
		b.Message = "more than one PodDisruptionBudget selects the pod, which the API server does not support; let only one select it: " + b.Message
	}
	return b
}

// sinceFirst remembers when a pod without consent was first seen.
func (r *drainRun) sinceFirst(pod *corev1.Pod) time.Time {
	at, ok := r.refusedSince[pod.UID]
	if !ok {
		at = time.Now()
		r.refusedSince[pod.UID] = at
	}
	return at
}

// overdue tells whether a pod should have ended by now: its deletion timestamp already includes its grace period.
func (r *drainRun) overdue(pod *corev1.Pod) (bool, string) {
	late := time.Since(pod.DeletionTimestamp.Time)
	switch {
	case late > 0 && !r.node.Ready():
		return true, "terminating, and the kubelet of its node does not answer: bring the node back, delete the pod by force, " +
			"or let the escalation do it (rung kill); onNodeNotReady ignore does not wait for it"
	case late < lastRetry:
		return false, ""
	case len(pod.Finalizers) > 0:
		return true, fmt.Sprintf("terminating, and kept by its finalizers %v: whoever set them has to remove them", pod.Finalizers)
	default:
		return true, fmt.Sprintf("terminating since %s after its grace period: is the kubelet of the node alive?",
			metav1.Now().Sub(pod.DeletionTimestamp.Time).Round(time.Second))
	}
}
