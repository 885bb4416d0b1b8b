package drain

import (
	"time"

	"drydock.dev/drydock/k8s"
)

const (
	// firstRetry and lastRetry bound the backoff behind the events that normally wake a refused eviction.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// backoff is how long to wait after so many refusals.
func backoff(refusals int) time.Duration {
	d := firstRetry
	for range refusals - 1 {
		if d *= 2; d >= lastRetry {
			return lastRetry
		}
	}
	return d
}

// untilNext is how long until there is something to do although nothing changes: a backoff is over, a pod's
// protection ends, or a pod has to be deleted early enough to end in its own time.
func (a *attempts) untilNext(found observation) time.Duration {
	now := time.Now()
	next := now.Add(lastRetry)
	consider := func(at time.Time) {
		if at.After(now) && at.Before(next) {
			next = at
		}
	}
	for _, t := range found.targets {
		if at := a.next(t, now); !at.IsZero() {
			consider(laterThan(now, at))
		}
		a.means.considerKill(t.Pod, consider)
	}
	for _, t := range found.killable {
		if tried := a.byPod[t.UID]; tried != nil && a.toBeKilled(t) && !a.isAsked(t) {
			consider(laterThan(now, tried.next))
		}
	}
	for _, refused := range found.refused {
		consider(a.means.protectedUntil())
		a.means.considerKill(refused.pod, consider)
	}
	return max(next.Sub(now), 10*time.Millisecond)
}

// next is when a pod is due although nothing changes; zero if it never is.
func (a *attempts) next(t target, now time.Time) time.Time {
	tried := a.byPod[t.UID]
	switch {
	case a.isAsked(t):
		return time.Time{}
	case tried == nil:
		return a.back.wait(t.Pod)
	case a.settled(t, tried):
		return time.Time{}
	case tried.eviction.Answer != k8s.Requested:
		return tried.next
	}
	at := a.requests.deadline(t.Pod)
	if !at.IsZero() && !at.After(now) {
		return tried.next
	}
	return at
}

// laterThan is a time to wake at, which is never now: what is overdue was just tried.
func laterThan(now, at time.Time) time.Time {
	if at.After(now) {
		return at
	}
	return now.Add(10 * time.Millisecond)
}
