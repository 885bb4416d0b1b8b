package drain

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
)

// patience is how long a request may hold what waits behind it. One that is answered later, as where an admission webhook
// hangs, goes on beside the others.
const patience = 2 * time.Second

// unanswered are the requests that nobody waits for any more.
type unanswered struct {
	underWay sync.WaitGroup
	// late has a token once there is something new of one that nobody waits for.
	late chan struct{}
}

func newUnanswered() unanswered { return unanswered{late: make(chan struct{}, 1)} }

// asked is a request that is under way.
type asked struct {
	how   string
	since time.Time
}

// await sends a request for a pod, and waits for its end for as long as it has patience, or longer where too many are overdue
// already.
func (s *sending) await(ctx context.Context, t target, send func() error) (answered bool, err error) {
	request := &asked{how: s.means.how(t), since: time.Now()}
	s.mu.Lock()
	s.attempts.asking[t.UID] = request
	s.mu.Unlock()
	ended := make(chan error, 1)
	s.underWay.Go(func() {
		err := send()
		s.mu.Lock()
		if s.attempts.asking[t.UID] == request {
			delete(s.attempts.asking, t.UID)
		}
		if s.failed == nil {
			s.failed = err
		}
		s.mu.Unlock()
		ended <- err
		if time.Since(request.since) >= patience {
			s.wake()
		}
	})
	waited := time.NewTimer(patience)
	defer waited.Stop()
	select {
	case err := <-ended:
		return true, err
	case <-waited.C:
		return s.goOn(ctx, ended)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// goOn leaves an overdue request to itself.
func (s *sending) goOn(ctx context.Context, ended chan error) (answered bool, err error) {
	select {
	case s.Limiter.overdue <- struct{}{}:
		s.underWay.Go(func() {
			if err := <-ended; err != nil {
				activity.GetLogger(ctx).Debug("an overdue request ended the drain", "error", err)
			}
			<-s.Limiter.overdue
		})
		s.wake()
		return false, nil
	case err := <-ended:
		return true, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (u *unanswered) wake() {
	select {
	case u.late <- struct{}{}:
	default:
	}
}

// failure is what ends the drain, nil if nothing does.
func (s *sender) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// isAsked reports whether the same request for a pod is under way.
func (a *attempts) isAsked(t target) bool {
	request := a.asking[t.UID]
	return request != nil && request.how == a.means.how(t)
}

// hangs returns since when the API server owes an answer for a pod; zero if it does not, or not for long.
func (a *attempts) hangs(pod *corev1.Pod) time.Time {
	request := a.asking[pod.UID]
	if request == nil || time.Since(request.since) < patience {
		return time.Time{}
	}
	return request.since
}
