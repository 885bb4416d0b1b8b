package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/k8s"
)

// attempt is what became of the attempts to evict one pod.
type attempt struct {
	eviction k8s.Eviction
	since    time.Time
	refusals int
	next     time.Time
	// gone: the pod's name is free, or another pod's, whatever the watch still shows.
	gone bool
	// under are the budgets that selected the pod when it was refused, as far as they are known.
	under *string
}

// attempts are the attempts to end the pods of a node, and when each is to be repeated. Who sends evictions guards it.
type attempts struct {
	byPod    map[types.UID]*attempt
	means    means
	budgets  *budgets
	requests *evictionRequests
	back     comebacks
	// asking are the requests under way.
	asking map[types.UID]*asked
}

func newAttempts(means means, budgets *budgets, requests *evictionRequests) *attempts {
	return &attempts{
		byPod: map[types.UID]*attempt{}, means: means, budgets: budgets, requests: requests, back: newComebacks(),
		asking: map[types.UID]*asked{},
	}
}

// due picks the pods to try now. Where a budget is known to refuse, at most as many of its pods are tried as it allows
// disruptions: each further request would be refused and cost the API server a write. Behind the events of a budget that
// allows none there is a backoff, after which one of its pods is tried.
func (a *attempts) due(targets []target) []target {
	now := time.Now()
	var due []target
	left, asked, later := map[string]int32{}, map[string]attempt{}, map[string][]*attempt{}
	for _, t := range targets {
		tried := a.byPod[t.UID]
		switch {
		case a.isAsked(t):
		case tried == nil:
			if a.firstDue(t, now, left) {
				due = append(due, t)
			}
		case a.outgrew(t, tried):
			tried.refusals = 0
			due = append(due, t)
		case a.settled(t, tried):
		case tried.eviction.Answer == k8s.Requested, // to look costs no request
			a.means.deletes(t) && refusedByBudget(tried.eviction.Answer):
			due = append(due, t)
		case tried.eviction.Answer == k8s.BudgetRefused:
			budget := a.budgets.first(t.Pod)
			_, known := asked[budget]
			if a.budgets.takeAllowed(t.Pod, left) || !now.Before(tried.next) && (!known || budget == "") {
				due = append(due, t)
				asked[budget] = *tried
			} else {
				later[budget] = append(later[budget], tried)
			}
		case !now.Before(tried.next):
			due = append(due, t)
		}
	}
	delete(asked, "")
	for budget, tried := range asked {
		for _, other := range later[budget] {
			other.waitBehind(tried, now)
		}
	}
	return due
}

// firstDue reports whether the first request for a pod is due.
func (a *attempts) firstDue(t target, now time.Time, left map[string]int32) bool {
	if now.Before(a.back.wait(t.Pod)) {
		return false
	}
	if !a.means.deletes(t) && a.requests == nil && a.budgets.refuse(t.Pod, left) {
		// Its budget refused another pod: it counts as refused without a request, and waits like the others.
		a.byPod[t.UID] = &attempt{
			eviction: k8s.Eviction{Answer: k8s.BudgetRefused}, since: now, next: now.Add(lastRetry), under: a.budgets.selecting(t.Pod),
		}
		return false
	}
	return true
}

// outgrew reports whether other budgets select a refused pod than those that refused it: one was deleted or edited, or the pod
// has other labels. It is worth one request at once; no event of a budget need ever come again.
func (a *attempts) outgrew(t target, tried *attempt) bool {
	if !refusedByBudget(tried.eviction.Answer) {
		return false
	}
	now := a.budgets.selecting(t.Pod)
	if now == nil || tried.under != nil && *tried.under == *now {
		return false
	}
	// Where the budgets were not known, one that is there now was there before.
	outgrown := tried.under != nil || *now == ""
	tried.under = now
	return outgrown
}

// settled reports whether nothing is to be gained from asking for a pod again.
func (a *attempts) settled(t target, tried *attempt) bool {
	switch tried.eviction.Answer {
	case k8s.Accepted:
		return true
	case k8s.SeveralBudgets: // only a change of the budgets heals that, and they are watched
		return !a.means.deletes(t) && len(a.budgets.of(t.Pod)) > 1
	default:
		return tried.gone
	}
}

// overdueForKill are the terminating pods whose grace period is over: by the rung Kill, or because the drain does not wait for them.
func (a *attempts) overdueForKill(found observation) []target {
	now := time.Now()
	var overdue []target
	for _, t := range found.killable {
		if tried := a.byPod[t.UID]; a.toBeKilled(t) && !a.isAsked(t) && (tried == nil || !now.Before(tried.next)) {
			overdue = append(overdue, t)
		}
	}
	return overdue
}

// toBeKilled reports whether a leaving pod is still to be ended at once. One whose grace is 0 already waits for its
// finalizers, or for what no request can change.
func (a *attempts) toBeKilled(t target) bool {
	tried, grace := a.byPod[t.UID], t.DeletionGracePeriodSeconds
	return a.means.kills(t.Pod) && (grace == nil || *grace > 0) && (tried == nil || !a.settled(t, tried))
}

// allowed are those of the pods that no known budget refuses by now. The others count as refused.
func (a *attempts) allowed(pods []target) []target {
	left := map[string]int32{}
	var allowed []target
	for _, t := range pods {
		if tried := a.byPod[t.UID]; tried != nil || a.firstDue(t, time.Now(), left) {
			allowed = append(allowed, t)
		}
	}
	return allowed
}

// refusal is a budget's refusal among the answers to some pods, with the pod; nil if there is none.
func (a *attempts) refusal(pods []target) (*corev1.Pod, attempt) {
	for _, t := range pods {
		if tried := a.byPod[t.UID]; tried != nil && tried.eviction.Answer == k8s.BudgetRefused {
			return t.Pod, *tried
		}
	}
	return nil, attempt{}
}

// holdBack notes that pods wait for the budget that refused another pod. Pods that this budget is known not to select, and
// unready pods, which have rules of their own, are tried in the next round.
func (a *attempts) holdBack(pods []target, asked *corev1.Pod, refusal attempt) {
	now, budget := time.Now(), a.budgets.first(asked)
	for _, t := range pods {
		if budget != "" && a.budgets.first(t.Pod) != budget {
			continue
		}
		tried := a.byPod[t.UID]
		if tried == nil {
			if !k8s.IsPodReady(t.Pod) {
				continue
			}
			tried = &attempt{since: now}
			a.byPod[t.UID] = tried
		}
		if tried.eviction.Answer != k8s.BudgetRefused {
			tried.since = now
		}
		tried.eviction, tried.under = refusal.eviction, a.budgets.selecting(t.Pod)
		tried.waitBehind(refusal, now)
	}
}

// waitBehind delays an attempt because a request for another pod of the same budget was refused or is under way: the
// refusals of that request count for both.
func (t *attempt) waitBehind(asked attempt, now time.Time) {
	t.refusals = max(t.refusals, asked.refusals)
	if next := now.Add(lastRetry); next.After(t.next) {
		t.next = next
	}
}

// answered notes what became of an attempt to end a pod. News reports whether it is to be counted: to look at a request
// that still waits is no answer.
func (a *attempts) answered(pod *corev1.Pod, e k8s.Eviction) (news bool) {
	t := a.byPod[pod.UID]
	news = t == nil || e.Answer != k8s.Requested || t.eviction.Answer != k8s.Requested
	if t == nil {
		t = &attempt{since: time.Now()}
		a.byPod[pod.UID] = t
	}
	if t.eviction.Answer != e.Answer {
		t.since, t.refusals = time.Now(), 0
	}
	t.eviction = e
	if refusedByBudget(e.Answer) {
		t.under = a.budgets.selecting(pod)
	}
	t.refusals++
	t.next = time.Now().Add(max(e.RetryAfter, backoff(t.refusals)))
	return news
}

func refusedByBudget(a k8s.Answer) bool { return a == k8s.BudgetRefused || a == k8s.SeveralBudgets }
