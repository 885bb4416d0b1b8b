package drain

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/activities/reporting"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// blockers finds what keeps pods on a node.
type blockers struct {
	node     *heldnode.View
	budgets  *budgets
	requests *evictionRequests
	attempts *attempts
	// firstSeen is when a pod was first seen that must not be evicted yet.
	firstSeen map[types.UID]time.Time
}

// explain completes a progress with what keeps each remaining pod.
func (b *blockers) explain(found observation, p api.DrainProgress) api.DrainProgress {
	p.Reasons = map[string]int{}
	add := func(pod *corev1.Pod, blocker api.Blocker) {
		p.Reasons[blocker.Reason]++
		if len(p.Blockers) == reporting.MaxBlockers {
			p.MoreBlockers++
			return
		}
		blocker.Pod, blocker.Owner = k8s.PodName(pod), k8s.OwnerOf(pod)
		p.Blockers = append(p.Blockers, blocker)
	}
	for _, refused := range found.refused {
		add(refused.pod, api.Blocker{Reason: refused.verdict.Reason, Message: advised(refused), Since: b.sinceFirst(refused.pod)})
	}
	for _, pod := range found.awaited {
		add(pod, api.Blocker{Reason: k8s.StaticPod, Since: b.sinceFirst(pod),
			Message: "is a static pod, which nobody can evict: take its manifest off the node, or use plan.static skip"})
	}
	for _, t := range found.targets {
		b.addRefusal(t.Pod, add)
	}
	for _, pod := range found.leaving {
		if late, message := b.overdue(pod); late {
			add(pod, api.Blocker{Reason: reasonTerminating, Message: message, Since: pod.DeletionTimestamp.Time})
		}
	}
	return p
}

// advised is why a pod is refused, with the command by which somebody consents to its loss.
func advised(r refusedPod) string {
	flags := ""
	if r.verdict.NeedsForce {
		flags += " --force"
	}
	if r.verdict.NeedsDeleteEmptyDir {
		flags += " --delete-emptydir-data"
	}
	if flags == "" {
		return r.verdict.Message
	}
	return fmt.Sprintf("%s (drydock consent %s --pod %s%s --comment WHY)", r.verdict.Message, r.pod.Spec.NodeName, k8s.PodName(r.pod), flags)
}

// addRefusal says why a pod that may be evicted is still there.
func (b *blockers) addRefusal(pod *corev1.Pod, add func(*corev1.Pod, api.Blocker)) {
	t, owed := b.attempts.byPod[pod.UID], b.attempts.hangs(pod)
	switch {
	case k8s.IsFinished(pod):
	case !owed.IsZero():
		add(pod, api.Blocker{Reason: reasonNoAnswer, Since: owed, Message: "the API server has not answered the request to end it: " +
			"an admission webhook may hang; the other pods do not wait for it"})
	case t == nil && !b.attempts.back.wait(pod).IsZero():
		add(pod, api.Blocker{Reason: reasonComesBack, Message: b.attempts.back.explain(pod), Since: pod.CreationTimestamp.Time})
	case t != nil && t.eviction.Answer != k8s.Accepted:
		blocker := b.budgetBlocker(pod, t.eviction, t.since)
		blocker.Message = b.requests.explain(pod, blocker.Message)
		add(pod, blocker)
	}
}

func (b *blockers) budgetBlocker(pod *corev1.Pod, e k8s.Eviction, since time.Time) api.Blocker {
	blocker := api.Blocker{Reason: string(e.Answer), Since: since, Budget: e.Budget, Message: e.Message, ExpectedBy: e.ExpectedBy}
	if e.Answer == k8s.Throttled {
		blocker.Message = "the API server throttles requests: " + e.Message
	}
	if !refusedByBudget(e.Answer) {
		return blocker
	}
	blocker.Budgets = b.budgets.states(pod)
	if text := b.budgets.describe(pod); text != "" {
		blocker.Message = text
	}
	if blocker.Budget == "" && len(blocker.Budgets) > 0 {
		blocker.Budget = blocker.Budgets[0].Name
	}
	if e.Answer == k8s.SeveralBudgets {
		blocker.Message = "several PodDisruptionBudgets select the pod, which the API server refuses; leave it one: " + blocker.Message
	}
	return blocker
}

// sinceFirst remembers when a pod without consent was first seen.
func (b *blockers) sinceFirst(pod *corev1.Pod) time.Time {
	at, ok := b.firstSeen[pod.UID]
	if !ok {
		at = time.Now()
		b.firstSeen[pod.UID] = at
	}
	return at
}

// overdue reports whether a pod should have ended by now: its deletion timestamp already includes its grace period.
func (b *blockers) overdue(pod *corev1.Pod) (bool, string) {
	late := time.Since(pod.DeletionTimestamp.Time)
	switch {
	case late > 0 && b.node.Silent():
		return true, "terminating, and the kubelet of its node does not answer: bring the node back, delete the pod by force, " +
			"or let the escalation do it (rung kill); onNodeNotReady ignore does not wait for it"
	case late < lastRetry:
		return false, ""
	case len(pod.Finalizers) > 0:
		return true, fmt.Sprintf("terminating, and kept by its finalizers %s: whoever set them has to remove them", strings.Join(pod.Finalizers, ", "))
	default:
		return true, fmt.Sprintf("terminating since %s after its grace period: is the kubelet of the node alive?",
			metav1.Now().Sub(pod.DeletionTimestamp.Time).Round(time.Second))
	}
}
