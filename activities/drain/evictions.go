package drain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock/activities/failure"
	"drydock/api"
	"drydock/k8s"
	"drydock/rules/drainplan"
	"drydock/rules/spec"
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
	// gone: the pod's name is free, or another pod's, whatever the watch still shows.
	gone bool
}

// evictDue sends the requests whose time has come. The limiter may hold them back for long: meanwhile the drain may have
// to end with its worker.
func (r *drainRun) evictDue(ctx context.Context, due []target) error {
	if len(due) == 0 {
		return nil
	}
	evictions, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan error, 1)
	go func() { sent <- r.evictAll(evictions, ctx, due) }()
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

// evictAll sends requests; what it learns of budgets is followed for as long as drain lives.
func (r *drainRun) evictAll(ctx, drain context.Context, due []target) error {
	s := sender{drainRun: r, drain: drain, slots: make(chan struct{}, evictionsAtOnce)}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, pods := range r.groupByBudget(due) {
		group.Go(func() error { return s.inTurn(groupCtx, pods) })
	}
	return group.Wait()
}

// kin puts those pods together that may share a budget: of one budget where it is known, else of one controller. The
// API server lets evictions under one budget wait for each other, half a second at a time, and refuses those beyond
// what it allows.
func (r *drainRun) groupByBudget(due []target) [][]target {
	var order []string
	groups := map[string][]target{}
	for _, t := range due {
		key := string(t.UID)
		if !r.deletes(t) && !k8s.IsFinished(t.Pod) && r.requests == nil {
			if budgets := r.budgets.of(t.Pod); len(budgets) > 0 {
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

// sender is one round of requests.
type sender struct {
	*drainRun
	// drain outlives the round, slots bound what is under way, mu guards what the answers change.
	drain context.Context
	slots chan struct{}
	mu    sync.Mutex
}

// inTurn sends one pod's request, and follows the budgets meanwhile. Kin of a budget wait for what it allows: requests that
// meet each other, or the budget's controller, in the API server are answered half a second later. Where no budget is,
// more and more of them are sent at once. Once one is refused all the same, the others count as refused too.
func (s *sender) inTurn(ctx context.Context, pods []target) error {
	follow := len(pods) > 1 && s.requests == nil && !s.deletes(pods[0])
	if follow {
		if err := s.budgets.watch(s.drain, pods[0].Namespace); err != nil {
			return err
		}
	}
	for width := 1; len(pods) > 0; {
		batch := pods[:min(width, len(pods))]
		pods = pods[len(batch):]
		group, groupCtx := errgroup.WithContext(ctx)
		for _, t := range batch {
			group.Go(func() error { return s.one(groupCtx, t) })
		}
		if err := group.Wait(); err != nil {
			return err
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

// allowed are those of the pods that no known budget refuses by now. The others count as refused.
func (s *sender) allowed(pods []target) []target {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string]int32{}
	var allowed []target
	for _, t := range pods {
		if tried := s.tries[t.UID]; tried != nil || s.firstDue(t, time.Now(), left) {
			allowed = append(allowed, t)
		}
	}
	return allowed
}

func (s *sender) one(ctx context.Context, t target) error {
	if !s.deletes(t) {
		if answer, direct := s.requests.request(ctx, t.Pod); !direct {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.record(s.drain, t.Pod, answer, evicted)
		}
	}
	if err := s.Limiter.Wait(ctx); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	leave, err := s.Limiter.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := k8s.Queue(ctx, s.Client); err != nil {
		return err
	}
	// The waits may have been long: look again just before the request, which waits for nothing any more.
	if err := s.node.Fence(); err != nil {
		return err
	}
	if !s.node.Current(t.Pod, s.in.Force == spec.Kill) {
		return nil
	}
	asksBudgets := !s.deletes(t)
	eviction := s.send(ctx, t)
	if asksBudgets && eviction.Answer == k8s.Accepted {
		s.budgets.spend(t.Pod)
	}
	gone := eviction.Answer == k8s.PodChanged && s.isGone(ctx, t.Pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.record(s.drain, t.Pod, eviction, s.how(t))
	s.tries[t.UID].gone = gone
	return err
}

// isGone looks whether a pod that the API server knows otherwise than the watch is still there. Each further eviction of
// one that is not would spend the budget of its successor.
func (s *sender) isGone(ctx context.Context, pod *corev1.Pod) bool {
	gone, err := k8s.IsGone(ctx, s.Client, pod)
	if err != nil {
		activity.GetLogger(ctx).Warn("not known whether a pod is gone", "error", err)
	}
	return gone
}

// refusal is a budget's refusal among the answers to some pods, with the pod; nil where there is none.
func (s *sender) refusal(pods []target) (*corev1.Pod, try) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range pods {
		if tried := s.tries[t.UID]; tried != nil && tried.eviction.Answer == k8s.BudgetRefused {
			return t.Pod, *tried
		}
	}
	return nil, try{}
}

// holdBack notes that pods wait for the budget that refused another pod. Those that it is known not to select, and unready
// pods, which have rules of their own, are asked for in the next round.
func (s *sender) holdBack(pods []target, asked *corev1.Pod, refusal try) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, budget := time.Now(), s.budgets.first(asked)
	for _, t := range pods {
		if budget != "" && s.budgets.first(t.Pod) != budget {
			continue
		}
		tried := s.tries[t.UID]
		if tried == nil {
			if !k8s.IsPodReady(t.Pod) {
				continue
			}
			tried = &try{since: now}
			s.tries[t.UID] = tried
		}
		if tried.eviction.Answer != k8s.BudgetRefused {
			tried.since = now
		}
		tried.eviction = refusal.eviction
		tried.waitBehind(refusal, now)
	}
}

// waitBehind puts a try off because another pod of the same budget was, or is, asked for: that one's refusals count for
// both.
func (t *try) waitBehind(asked try, now time.Time) {
	t.refusals = max(t.refusals, asked.refusals)
	if next := now.Add(lastRetry); next.After(t.next) {
		t.next = next
	}
}

// send asks for a pod's end, in the way its type and the escalation want it.
func (r *drainRun) send(ctx context.Context, t target) k8s.Eviction {
	grace := r.in.Drain.GracePeriodSeconds
	switch {
	case r.in.Force == spec.Kill:
		return k8s.DeletePod(ctx, r.Client, t.Pod, new(int64))
	case r.in.Force == spec.BypassBudget, t.podType == drainplan.DaemonSet, r.mustBeDeletedNow(t.Pod):
		return k8s.DeletePod(ctx, r.Client, t.Pod, grace)
	default:
		return k8s.EvictPod(ctx, r.Client, t.Pod, grace)
	}
}

// overdueForKill are the pods that were told to end in their own time, and whose time the rung Kill has ended.
func (r *drainRun) overdueForKill(found round) []target {
	if r.in.Force != spec.Kill {
		return nil
	}
	now := time.Now()
	var overdue []target
	for _, t := range found.killable {
		if tried := r.tries[t.UID]; r.toBeKilled(t) && (tried == nil || !now.Before(tried.next)) {
			overdue = append(overdue, t)
		}
	}
	return overdue
}

// toBeKilled tells whether a leaving pod is still to be ended at once. One whose grace is 0 already waits for its
// finalizers, or for what no request can change.
func (r *drainRun) toBeKilled(t target) bool {
	tried, grace := r.tries[t.UID], t.DeletionGracePeriodSeconds
	return r.in.Force == spec.Kill && (grace == nil || *grace > 0) && (tried == nil || !r.settled(t, tried))
}

// due picks the pods to try now. Where a budget is known to refuse, at most as many of its pods are tried as it allows
// disruptions: each further request would be refused and cost the API server a write. Behind the events of a budget that
// allows none there is a backoff, after which one of its pods is tried.
func (r *drainRun) due(targets []target) []target {
	now := time.Now()
	var due []target
	left, asked, later := map[string]int32{}, map[string]try{}, map[string][]*try{}
	for _, t := range targets {
		tried := r.tries[t.UID]
		switch {
		case tried == nil:
			if r.firstDue(t, now, left) {
				due = append(due, t)
			}
		case r.settled(t, tried):
		case tried.eviction.Answer == k8s.Requested, // to look costs no request
			r.deletes(t) && refusedByBudget(tried.eviction.Answer):
			due = append(due, t)
		case tried.eviction.Answer == k8s.BudgetRefused:
			budget := r.budgets.first(t.Pod)
			_, known := asked[budget]
			if r.budgets.takeAllowed(t.Pod, left) || !now.Before(tried.next) && (!known || budget == "") {
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

// firstDue tells whether a pod is asked for that was not yet.
func (r *drainRun) firstDue(t target, now time.Time, left map[string]int32) bool {
	if now.Before(r.back.wait(t.Pod)) {
		return false
	}
	if !r.deletes(t) && r.requests == nil && r.budgets.refuse(t.Pod, left) {
		// Its budget refused another pod: it counts as refused without a request, and waits like the others.
		r.tries[t.UID] = &try{eviction: k8s.Eviction{Answer: k8s.BudgetRefused}, since: now, next: now.Add(lastRetry)}
		return false
	}
	return true
}

// settled tells that nothing is to be gained from asking for a pod again.
func (r *drainRun) settled(t target, tried *try) bool {
	switch tried.eviction.Answer {
	case k8s.Accepted:
		return true
	case k8s.SeveralBudgets: // only a change of the budgets heals that, and they are watched
		return !r.deletes(t) && len(r.budgets.of(t.Pod)) > 1
	default:
		return tried.gone
	}
}

func refusedByBudget(a k8s.Answer) bool { return a == k8s.BudgetRefused || a == k8s.SeveralBudgets }

// deletes tells that a pod is deleted by now and not evicted, so that no budget is asked.
func (r *drainRun) deletes(t target) bool {
	return r.in.Force != "" || t.podType == drainplan.DaemonSet || r.mustBeDeletedNow(t.Pod)
}

// record notes an outcome; only a missing permission ends the drain.
func (r *drainRun) record(ctx context.Context, pod *corev1.Pod, e k8s.Eviction, how string) error {
	t := r.tries[pod.UID]
	if t == nil || e.Answer != k8s.Requested || t.eviction.Answer != k8s.Requested {
		r.Metrics.answered(e.Answer)
	}
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
		if pod.DeletionTimestamp == nil {
			r.evicted++
			r.noteEnded(pod, how)
			r.back.evicted(pod)
			r.PodEvents.Evicted(pod, r.in.Why)
		}
	case k8s.MissingPermission:
		return fmt.Errorf("evicting pod %s: %w", k8s.PodName(pod), e.Err)
	case k8s.BudgetRefused, k8s.SeveralBudgets:
		return r.budgets.watch(ctx, pod.Namespace)
	case k8s.Throttled:
		r.Limiter.Pause(max(e.RetryAfter, throttlePause))
	}
	return nil
}

// How a pod was told to end.
const (
	evicted = "evicted"
	deleted = "deleted"
	killed  = "killed"
)

func (r *drainRun) how(t target) string {
	switch {
	case r.in.Force == spec.Kill:
		return killed
	case r.deletes(t):
		return deleted
	default:
		return evicted
	}
}

// maxPods bounds the list of pods that were told to end, which is in every heartbeat.
const maxPods = 100

// noteEnded keeps account of the pods for the audit record.
func (r *drainRun) noteEnded(pod *corev1.Pod, how string) {
	if len(r.ended) == maxPods {
		r.moreEnded++
		return
	}
	r.ended = append(r.ended, api.EndedPod{Pod: k8s.PodName(pod), At: time.Now().UTC(), How: how})
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

// untilNextTry is how long until there is something to do although nothing changes: a backoff is over, a pod's
// protection ends, or a pod has to be deleted early enough to end in its own time.
func (r *drainRun) untilNextTry(found round) time.Duration {
	now := time.Now()
	next := now.Add(lastRetry)
	consider := func(at time.Time) {
		if at.After(now) && at.Before(next) {
			next = at
		}
	}
	for _, t := range found.targets {
		if at := r.nextTry(t, now); !at.IsZero() {
			consider(laterThan(now, at))
		}
		r.considerKill(t.Pod, consider)
	}
	for _, t := range found.killable {
		if tried := r.tries[t.UID]; tried != nil && r.toBeKilled(t) {
			consider(laterThan(now, tried.next))
		}
	}
	for _, refused := range found.refused {
		consider(r.protectedUntil())
		r.considerKill(refused.pod, consider)
	}
	return max(next.Sub(now), 10*time.Millisecond)
}

// nextTry is when a pod is due although nothing changes; zero where it never is.
func (r *drainRun) nextTry(t target, now time.Time) time.Time {
	tried := r.tries[t.UID]
	switch {
	case tried == nil:
		return r.back.wait(t.Pod)
	case r.settled(t, tried):
		return time.Time{}
	case tried.eviction.Answer != k8s.Requested:
		return tried.next
	}
	at := r.requests.deadline(t.Pod)
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

func (r *drainRun) considerKill(pod *corev1.Pod, consider func(time.Time)) {
	if r.in.KillAt != nil {
		consider(r.in.KillAt.Add(-r.graceOf(pod)))
	}
}
