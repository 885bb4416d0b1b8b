package drain

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func budget(name, app string, allowed int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	b.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 3}
	return b
}

// follow lets budgets follow what a server has.
func follow(t *testing.T, s *k8stest.Server, namespaces ...string) *budgets {
	t.Helper()
	b := newBudgets(k8s.NewSources(s.Client(t)).Budgets)
	for _, namespace := range namespaces {
		if err := b.watch(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		if b.synced(t.Context(), namespace); !b.known(namespace) {
			t.Fatal("the budgets are not known")
		}
	}
	return b
}

func TestTakeAllowedCountsWhatIsTakenInARound(t *testing.T) {
	stale := budget("stale", "stale", 5)
	stale.Generation = 2
	stale.Status.ObservedGeneration = 1
	b := follow(t, k8stest.New(budget("web", "web", 2), budget("none", "none", 0), budget("less", "less", -1),
		budget("two-a", "two", 2), budget("two-b", "two", 1), stale), "default")
	take := func(left map[string]int32, app string, times int) (taken int) {
		for range times {
			if b.takeAllowed(activitytest.PodOf(app, app), left) {
				taken++
			}
		}
		return taken
	}
	for app, want := range map[string]int{"web": 2, "none": 0, "less": 0, "two": 1, "stale": 0, "unbudgeted": 0} {
		if got := take(map[string]int32{}, app, 5); got != want {
			t.Errorf("%s: %d taken, want %d", app, got, want)
		}
	}
	left := map[string]int32{}
	if take(left, "web", 2) != 2 || take(left, "web", 1) != 0 || take(map[string]int32{}, "web", 1) != 1 {
		t.Error("a round takes what another one took")
	}
	if other := activitytest.PodOf("web", "web-1"); b.takeAllowed(func() *corev1.Pod { other.Namespace = "other"; return other }(), left) {
		t.Error("a budget of another namespace allows it")
	}
}

func TestAnEvictionCountsUntilItsBudgetShowsIt(t *testing.T) {
	web, db := budget("web", "web", 2), budget("db", "db", 1)
	web.UID, db.UID = "web", "db"
	s := k8stest.New(web, db)
	b := follow(t, s, "default")
	takes := func(app string) bool { return b.takeAllowed(activitytest.PodOf(app, app), map[string]int32{}) }
	b.spend(activitytest.PodOf("web", "w1"))
	if !takes("web") || !takes("db") {
		t.Error("one eviction spends more than one disruption of its own budget")
	}
	b.spend(activitytest.PodOf("web", "w2"))
	if takes("web") || !takes("db") {
		t.Error("a third eviction is allowed of two")
	}
	unready := activitytest.PodOf("db", "d1")
	unready.Status.Phase = corev1.PodPending
	b.spend(unready) // no budget counts it
	if !takes("db") {
		t.Error("a pod that does not run spends a disruption")
	}
	next := budget("web", "web", 1)
	next.UID = "web"
	next.Status.DisruptedPods = map[string]metav1.Time{"w3": metav1.Now()}
	s.Set(next)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !takes("web") {
		select {
		case <-b.changed:
		case <-ctx.Done():
			t.Fatal("what the budget's next version allows is not believed")
		}
	}
	b.spend(activitytest.PodOf("web", "w3"))
	if !takes("web") {
		t.Error("an eviction that the budget shows already is counted again")
	}
}

func TestBudgetsOfAPodAreNamed(t *testing.T) {
	b := follow(t, k8stest.New(budget("b", "web", 0), budget("a", "web", 1), budget("db", "db", 1)), "default")
	var names []string
	for _, found := range b.of(activitytest.PodOf("web", "web-1")) {
		names = append(names, found.Name)
	}
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("budgets %v", names)
	}
	if text := b.describe(activitytest.PodOf("web", "web-1")); !strings.Contains(text, "budget a allows 1 disruption: 3 of 3 pods are healthy, 2 are needed; budget b allows 0") {
		t.Errorf("described as %q", text)
	}
}

func TestBudgetsThatMayNotBeReadAreNoError(t *testing.T) {
	s := k8stest.New()
	s.Refuse(http.StatusForbidden)
	b := newBudgets(k8s.NewSources(s.Client(t)).Budgets)
	if err := b.watch(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	if err := b.view.Synced(t.Context()); !apierrors.IsForbidden(err) {
		t.Fatalf("error = %v", err)
	}
	if b.takeAllowed(activitytest.PodOf("web", "web-1"), map[string]int32{}) || b.describe(activitytest.PodOf("web", "web-1")) != "" {
		t.Error("something is known of budgets that may not be read")
	}
}

func TestChangeOfABudgetWakesTheDrain(t *testing.T) {
	s := k8stest.New(budget("web", "web", 0))
	b := follow(t, s, "default")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s.Set(budget("web", "web", 1))
	for !b.takeAllowed(activitytest.PodOf("web", "web-1"), map[string]int32{}) {
		select {
		case <-b.changed:
		case <-ctx.Done():
			t.Fatal("the change was not noticed")
		}
	}
}
