package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/k8s"
)

const (
	// evictionsAtOnce bounds the requests one drain has under way.
	evictionsAtOnce = 16
	// throttlePause is how long all drains pause when the API server throttles without saying for how long.
	throttlePause = time.Second
)

// sender sends the requests that end pods.
type sender struct {
	*Activities
	why      string
	means    means
	node     *heldnode.View
	budgets  *budgets
	requests *evictionRequests

	// mu guards what the answers change: attempts, account and failed.
	mu       sync.Mutex
	attempts *attempts
	account  *account
	// failed is what ends the drain.
	failed error
	unanswered
}

// due are the pods to evict or delete now.
func (s *sender) due(found observation) []target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.attempts.overdueForKill(found), s.attempts.due(found.targets))
}

// notice takes a pod that was not on the node before.
func (s *sender) notice(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts.back.notice(pod)
}

// send sends the requests whose time has come. The limiter may hold them back for long: meanwhile the drain may have
// to end with its worker.
func (s *sender) send(ctx context.Context, due []target) error {
	if len(due) == 0 {
		return nil
	}
	evictions, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan error, 1)
	go func() { sent <- s.sendAll(evictions, ctx, due) }()
	select {
	case err := <-sent:
		return err
	case <-activity.GetWorkerStopChannel(ctx):
		cancel()
		if err := <-sent; err != nil && !errors.Is(err, context.Canceled) {
			activity.GetLogger(ctx).Warn("evictions ended with the worker", "error", err)
		}
		return failure.WorkerStopping()
	}
}

// sendAll sends requests; what it learns of budgets is followed for as long as drain lives.
func (s *sender) sendAll(ctx, drain context.Context, due []target) error {
	round := &sending{sender: s, drain: drain, slots: make(chan struct{}, evictionsAtOnce)}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, pods := range s.groupByBudget(due) {
		group.Go(func() error { return round.inTurn(groupCtx, pods) })
	}
	return group.Wait()
}

// groupByBudget puts those pods together that may share a budget: of one budget where it is known, else of one controller. The
// API server lets evictions under one budget wait for each other, half a second at a time, and refuses those beyond
// what it allows.
func (s *sender) groupByBudget(due []target) [][]target {
	var order []string
	groups := map[string][]target{}
	for _, t := range due {
		key := string(t.UID)
		if !s.means.deletes(t) && !k8s.IsFinished(t.Pod) && s.requests == nil {
			if budgets := s.budgets.of(t.Pod); len(budgets) > 0 {
				key = string(budgets[0].UID)
			} else if owner := metav1.GetControllerOf(t.Pod); owner != nil {
				key = string(owner.UID)
			}
		}
		if _, ok := groups[key]; !ok {
			order = append(order, key)
		}
		groups[key] = append(groups[key], t)
	}
	var all [][]target
	for _, key := range order {
		all = append(all, groups[key])
	}
	return all
}

// record notes an outcome; only a missing permission ends the drain.
func (s *sender) record(ctx context.Context, pod *corev1.Pod, e k8s.Eviction, how string) error {
	if s.attempts.answered(pod, e) {
		s.Metrics.answered(e.Answer)
	}
	switch e.Answer {
	case k8s.Accepted:
		if pod.DeletionTimestamp == nil {
			s.account.note(pod, how)
			s.attempts.back.evicted(pod)
			s.PodEvents.Evicted(pod, s.why)
		}
	case k8s.MissingPermission:
		return fmt.Errorf("evicting pod %s: %w", k8s.PodName(pod), e.Err)
	case k8s.BudgetRefused, k8s.SeveralBudgets:
		return s.budgets.watch(ctx, pod.Namespace)
	case k8s.Throttled:
		s.Limiter.Pause(max(e.RetryAfter, throttlePause))
	}
	return nil
}

// noteDeparted records the pods that others evicted on Drydock's request.
func (s *sender) noteDeparted(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pod := range s.requests.departed() {
		if t := s.attempts.byPod[pod.UID]; t != nil && t.eviction.Answer == k8s.Accepted {
			continue
		}
		if err := s.record(ctx, pod, k8s.Eviction{Answer: k8s.Accepted}, evicted); err != nil {
			return err
		}
	}
	return nil
}
