package drain

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func TestDueTriesNoMoreThanItsBudgetAllows(t *testing.T) {
	b := follow(t, k8stest.New(budget("web", "web", 2)), "default")
	later, earlier := time.Now().Add(time.Hour), time.Now().Add(-time.Second)
	refused := k8s.Eviction{Answer: k8s.BudgetRefused}
	r := &attempts{budgets: b, byPod: map[types.UID]*attempt{
		"uid-w1": {eviction: refused, next: later}, "uid-w2": {eviction: refused, next: later}, "uid-w3": {eviction: refused, next: later},
		"uid-gone":    {eviction: k8s.Eviction{Answer: k8s.Accepted}, next: earlier},
		"uid-again":   {eviction: k8s.Eviction{Answer: k8s.Failed, Err: errors.New("500")}, next: earlier},
		"uid-wait":    {eviction: k8s.Eviction{Answer: k8s.WebhookRefused}, next: later},
		"uid-backoff": {eviction: refused, next: earlier},
	}}
	var pods []target
	for _, name := range []string{"new", "w1", "w2", "w3", "gone", "again", "wait"} {
		pods = append(pods, target{Pod: activitytest.PodOf("web", name)})
	}
	pods = append(pods, target{Pod: activitytest.PodOf("db", "backoff")})
	var due []string
	for _, pod := range r.due(pods) {
		due = append(due, pod.Name)
	}
	if got := strings.Join(due, " "); got != "new w1 again backoff" {
		t.Errorf("due: %s", got)
	}
}

// triesOf is a drain that was refused some pods of the application web.
func triesOf(b *budgets, answer k8s.Answer, next time.Time, names ...string) (*attempts, observation) {
	r := newAttempts(means{}, b, nil)
	var found observation
	for _, name := range names {
		p := activitytest.PodOf("web", name)
		r.byPod[p.UID] = &attempt{eviction: k8s.Eviction{Answer: answer}, refusals: 1, next: next}
		found.targets = append(found.targets, target{Pod: p})
	}
	return r, found
}

func TestOnePodIsTriedBehindABudgetThatAllowsNone(t *testing.T) {
	b := follow(t, k8stest.New(budget("web", "web", 0)), "default")
	r, found := triesOf(b, k8s.BudgetRefused, time.Now().Add(-time.Second), "a", "b", "c")
	r.byPod["uid-a"].refusals = 5
	if due := r.due(found.targets); len(due) != 1 || due[0].Name != "a" {
		t.Fatalf("due: %v", due)
	}
	for _, uid := range []types.UID{"uid-b", "uid-c"} {
		if tried := r.byPod[uid]; time.Until(tried.next) < lastRetry-time.Second || tried.refusals != 5 {
			t.Errorf("%s: %+v", uid, tried)
		}
	}
	r.byPod["uid-a"].next = time.Now().Add(lastRetry)
	if wait := r.untilNext(found); wait < lastRetry-time.Second {
		t.Errorf("it wakes after %s", wait)
	}
}

func TestTimerTriesNoneBesideThoseThatABudgetAllows(t *testing.T) {
	b := follow(t, k8stest.New(budget("web", "web", 1)), "default")
	r, found := triesOf(b, k8s.BudgetRefused, time.Now().Add(-time.Second), "a", "b", "c")
	if due := r.due(found.targets); len(due) != 1 {
		t.Errorf("due: %v", due)
	}
}

func TestRefusalHoldsBackThoseRefusedBefore(t *testing.T) {
	r, found := triesOf(newBudgets(nil), k8s.BudgetRefused, time.Now().Add(-time.Second), "a", "b")
	r.byPod["uid-b"].eviction.Answer = k8s.Failed
	unready := activitytest.PodOf("web", "unready")
	unready.Status.Conditions = nil
	r.holdBack(append(found.targets, target{Pod: unready}, target{Pod: activitytest.PodOf("web", "new")}), activitytest.PodOf("web", "a"), attempt{eviction: k8s.Eviction{Answer: k8s.BudgetRefused, Budget: "web"}, refusals: 4})
	for _, uid := range []types.UID{"uid-a", "uid-b", "uid-new"} {
		if tried := r.byPod[uid]; tried == nil || tried.eviction.Budget != "web" || tried.refusals != 4 || time.Until(tried.next) < lastRetry-time.Second {
			t.Errorf("%s: %+v", uid, tried)
		}
	}
	if r.byPod["uid-unready"] != nil {
		t.Error("a pod with rules of its own counts as refused")
	}
}

func TestPodsThatWaitForNoTimerDoNotWakeTheDrain(t *testing.T) {
	several := follow(t, k8stest.New(budget("one", "web", 1), budget("two", "web", 1)), "default")
	earlier := time.Now().Add(-time.Minute)
	for name, c := range map[string]struct {
		answer k8s.Answer
		gone   bool
	}{"several budgets": {k8s.SeveralBudgets, false}, "accepted": {k8s.Accepted, false}, "gone": {k8s.PodChanged, true}} {
		r, found := triesOf(several, c.answer, earlier, "a")
		r.byPod["uid-a"].gone = c.gone
		if due := r.due(found.targets); len(due) > 0 {
			t.Errorf("%s: due %v", name, due)
		}
		if wait := r.untilNext(found); wait < lastRetry-time.Second {
			t.Errorf("%s: it wakes after %s", name, wait)
		}
	}
	// A withdrawal that fails has a backoff of its own, however long the request has waited.
	r, found := triesOf(several, k8s.Failed, time.Now().Add(20*time.Second), "a")
	r.requests = &evictionRequests{filed: map[types.UID]*filedRequest{"uid-a": {pod: found.targets[0].Pod, since: earlier}}}
	if wait := r.untilNext(found); wait < 19*time.Second {
		t.Errorf("it wakes after %s", wait)
	}
	r.byPod["uid-a"].eviction.Answer = k8s.Requested
	if wait := r.untilNext(found); wait < 19*time.Second {
		t.Errorf("it wakes after %s", wait)
	}
	r.requests.filed["uid-a"].since = time.Now()
	if wait := r.untilNext(found); wait > answerWithin {
		t.Errorf("it wakes after %s", wait)
	}
}
