package activities

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock/k8s"
)

const (
	// evictionsAtOnce bounds the requests one drain has under way.
	evictionsAtOnce = 16
	// firstRetry and lastRetry bound the backoff behind the events that normally wake a refused eviction.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// throttlePause is how long all drains pause when the API server throttles without saying for how long.
	throttlePause = time.Second
)

// try is what became of the attempts to evict one pod.
type try struct {
	eviction k8s.Eviction
	since    time.Time
	refusals int
	next     time.Time
}

// evictDue sends the evictions whose time has come: pods never tried, pods whose budget allows a disruption now, and
// pods whose backoff is over.
func (r *drainRun) evictDue(ctx context.Context, found round) error {
	due := r.due(found.evictable)
	if len(due) == 0 {
		return nil
	}
	var mu sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(evictionsAtOnce)
	for _, pod := range due {
		group.Go(func() error {
			if err := r.Limiter.Wait(groupCtx); err != nil {
				return err
			}
			// The wait may have been long: look again just before the request.
			if err := r.node.fence(); err != nil {
				return err
			}
			if !r.node.current(pod) {
				return nil
			}
			eviction := k8s.EvictPod(groupCtx, r.Nodes.Client, pod, r.in.Drain.GracePeriodSeconds)
			mu.Lock()
			defer mu.Unlock()
			return r.record(ctx, pod, eviction)
		})
	}
	return group.Wait()
}

// due picks the pods to try now. Where a budget is known to refuse, at most as many of its pods are tried as it allows
// disruptions: each further request would be refused and cost the API server a write.
func (r *drainRun) due(pods []*corev1.Pod) []*corev1.Pod {
	now := time.Now()
	var due []*corev1.Pod
	left := map[string]int32{}
	for _, pod := range pods {
		t := r.tries[pod.UID]
		if t == nil {
			due = append(due, pod)
			continue
		}
		if t.eviction.Answer == k8s.Accepted {
			continue
		}
		if !now.Before(t.next) || (t.eviction.Answer == k8s.BudgetRefused && r.budgets.takeAllowed(pod, left)) {
			due = append(due, pod)
		}
	}
	return due
}

// record notes an outcome; only a missing permission ends the drain.
func (r *drainRun) record(ctx context.Context, pod *corev1.Pod, e k8s.Eviction) error {
	r.Metrics.answered(e.Answer)
	t := r.tries[pod.UID]
	if t == nil {
		t = &try{since: time.Now()}
		r.tries[pod.UID] = t
	}
	if t.eviction.Answer != e.Answer {
		t.since, t.refusals = time.Now(), 0
	}
	t.eviction = e
	t.refusals++
	t.next = time.Now().Add(max(e.RetryAfter, backoff(t.refusals)))
	switch e.Answer {
	case k8s.Accepted:
		r.evicted++
	case k8s.MissingPermission:
		return fmt.Errorf("evicting pod %s: %w", podName(pod), e.Err)
	case k8s.BudgetRefused, k8s.SeveralBudgets:
		return r.budgets.watch(ctx, pod.Namespace)
	case k8s.Throttled:
		r.Limiter.Pause(max(e.RetryAfter, throttlePause))
	}
	return nil
}

func backoff(refusals int) time.Duration {
	d := firstRetry
	for range refusals - 1 {
		if d *= 2; d >= lastRetry {
			return lastRetry
		}
	}
	return d
}

// untilNextTry is how long until some pod's backoff is over.
func (r *drainRun) untilNextTry(found round) time.Duration {
	next := time.Now().Add(lastRetry)
	for _, pod := range found.evictable {
		if t := r.tries[pod.UID]; t != nil && t.eviction.Answer != k8s.Accepted && t.next.Before(next) {
			next = t.next
		}
	}
	return max(time.Until(next), 10*time.Millisecond)
}

// blocked completes the progress with what keeps each remaining pod.
func (r *drainRun) blocked(ctx context.Context, found round) DrainProgress {
	p := found.progress
	p.Evicted = r.evicted
	add := func(b Blocker) {
		if len(p.Blockers) == maxBlockers {
			p.MoreBlockers++
			return
		}
		p.Blockers = append(p.Blockers, b)
	}
	for _, refused := range found.refused {
		add(Blocker{
			Pod: podName(refused.pod), Reason: refused.verdict.Reason, Message: refused.verdict.Message,
			Since: r.sinceFirst(refused.pod),
		})
	}
	for _, pod := range found.evictable {
		if t := r.tries[pod.UID]; t != nil && t.eviction.Answer != k8s.Accepted && !finished(pod) {
			add(Blocker{
				Pod: podName(pod), Reason: string(t.eviction.Answer), Since: t.since, Budget: t.eviction.Budget,
				Message: r.explain(pod, t.eviction),
			})
		}
	}
	for _, pod := range found.leaving {
		if late, message := overdue(pod); late {
			add(Blocker{Pod: podName(pod), Reason: "Terminating", Message: message, Since: pod.DeletionTimestamp.Time})
		}
	}
	return p
}

// sinceFirst remembers when a pod without consent was first seen.
func (r *drainRun) sinceFirst(pod *corev1.Pod) time.Time {
	t := r.tries[pod.UID]
	if t == nil {
		t = &try{since: time.Now()}
		r.tries[pod.UID] = t
	}
	return t.since
}

func (r *drainRun) explain(pod *corev1.Pod, e k8s.Eviction) string {
	switch e.Answer {
	case k8s.BudgetRefused:
		if text := r.budgets.describe(pod); text != "" {
			return text
		}
	case k8s.SeveralBudgets:
		return "more than one PodDisruptionBudget selects the pod, which the API server does not support: " + r.budgets.describe(pod)
	case k8s.Throttled:
		return "the API server throttles requests: " + e.Message
	}
	return e.Message
}

// overdue tells whether a pod should have ended by now: its deletion timestamp already includes its grace period.
func overdue(pod *corev1.Pod) (bool, string) {
	late := time.Since(pod.DeletionTimestamp.Time)
	if late < lastRetry {
		return false, ""
	}
	if len(pod.Finalizers) > 0 {
		return true, fmt.Sprintf("terminating, and kept by its finalizers %v", pod.Finalizers)
	}
	return true, fmt.Sprintf("terminating since %s after its grace period: is the kubelet of the node alive?",
		metav1.Now().Sub(pod.DeletionTimestamp.Time).Round(time.Second))
}
