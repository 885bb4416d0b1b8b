package drain

import (
	"context"
	"sync/atomic"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/k8s"
)

// sending is one round of requests.
type sending struct {
	*sender
	// drain outlives the round, slots bound what is under way.
	drain context.Context
	slots chan struct{}
}

// inTurn sends one pod's request, and follows the budgets meanwhile. Pods of one budget wait for what it allows: requests that
// meet each other, or the budget's controller, in the API server are answered half a second later. Where no budget is,
// more and more of them are sent at once. Once one is refused all the same, the others count as refused too.
func (s *sending) inTurn(ctx context.Context, pods []target) error {
	follow := len(pods) > 1 && s.requests == nil && !s.means.deletes(pods[0])
	if follow {
		if err := s.budgets.watch(s.drain, pods[0].Namespace); err != nil {
			return err
		}
	}
	for width := 1; len(pods) > 0; {
		batch := pods[:min(width, len(pods))]
		pods = pods[len(batch):]
		var hang atomic.Bool
		group, groupCtx := errgroup.WithContext(ctx)
		for _, t := range batch {
			group.Go(func() error {
				answered, err := s.one(groupCtx, t)
				if !answered {
					hang.Store(true)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil || hang.Load() {
			return err // the others are due again, one at a time
		}
		if follow && len(pods) > 0 {
			s.budgets.synced(ctx, batch[0].Namespace)
		}
		if pod, refusal := s.refusal(batch); pod != nil {
			s.holdBack(pods, pod, refusal)
			return nil
		}
		if follow {
			pods = s.allowed(pods)
		}
		if len(s.budgets.of(batch[0].Pod)) == 0 {
			width = min(2*width, evictionsAtOnce)
		}
	}
	return nil
}

// one sends one request once its turn has come; answered is true once nothing of it is under way.
func (s *sending) one(ctx context.Context, t target) (answered bool, err error) {
	if s.requests != nil && !s.means.deletes(t) {
		var direct bool
		answered, err := s.await(ctx, t, func() error {
			answer, evict := s.requests.request(s.drain, t.Pod)
			if direct = evict; direct {
				return nil
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.record(s.drain, t.Pod, answer, evicted)
		})
		if err != nil || !answered || !direct {
			return answered, err
		}
	}
	if err := s.Limiter.Wait(ctx); err != nil {
		return true, err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return true, ctx.Err()
	}
	leave, err := s.Limiter.Enter(ctx)
	if err != nil {
		return true, err
	}
	defer leave()
	if err := k8s.Queue(ctx, s.Client); err != nil {
		return true, err
	}
	// The waits may have been long: look again just before the request, which waits for nothing any more.
	if err := s.node.Fence(); err != nil {
		return true, err
	}
	if !s.node.Current(t.Pod, s.means.kills(t.Pod)) {
		return true, nil
	}
	return s.await(ctx, t, func() error { return s.ask(t) })
}

// ask evicts or deletes a pod, and records what the API server answers.
func (s *sending) ask(t target) error {
	asksBudgets := !s.means.deletes(t)
	eviction := s.means.end(s.drain, s.Client, t)
	if eviction.Answer != k8s.Accepted && s.drain.Err() != nil {
		return s.drain.Err()
	}
	if asksBudgets && eviction.Answer == k8s.Accepted {
		s.budgets.spend(t.Pod)
	}
	gone := eviction.Answer == k8s.PodChanged && s.isGone(s.drain, t.Pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.record(s.drain, t.Pod, eviction, s.means.how(t))
	s.attempts.byPod[t.UID].gone = gone
	return err
}

// isGone looks whether a pod that the API server knows otherwise than the watch is still there. Each further eviction of
// one that is not would spend the budget of its successor.
func (s *sending) isGone(ctx context.Context, pod *corev1.Pod) bool {
	gone, err := k8s.IsGone(ctx, s.Client, pod)
	if err != nil {
		activity.GetLogger(ctx).Warn("not known whether a pod is gone", "error", err)
	}
	return gone
}

// allowed are those of the pods that no known budget refuses by now.
func (s *sending) allowed(pods []target) []target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts.allowed(pods)
}

// refusal is a budget's refusal among the answers to some pods, with the pod; nil if there is none.
func (s *sending) refusal(pods []target) (*corev1.Pod, attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts.refusal(pods)
}

// holdBack notes that pods wait for the budget that refused another pod.
func (s *sending) holdBack(pods []target, asked *corev1.Pod, refusal attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts.holdBack(pods, asked, refusal)
}
