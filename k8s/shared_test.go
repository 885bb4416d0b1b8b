package k8s_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func podOn(node, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-1"}, Spec: corev1.PodSpec{NodeName: node}}
}

// asked notes the queries of requests for pods.
type asked struct {
	mu      sync.Mutex
	queries []string
}

func (a *asked) note(_ http.ResponseWriter, r *http.Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queries = append(a.queries, r.URL.RawQuery)
	return false
}

func TestPodsOfANodeAreListedWhereTheAPIServerFindsThem(t *testing.T) {
	s, seen := k8stest.New(podOn("n1", "a"), podOn("n2", "b")), &asked{}
	s.Handle = seen.note
	w, err := k8s.WatchPodsOn(t.Context(), s.Client(t), "n1")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Synced(t.Context(), "pods"); err != nil {
		t.Fatal(err)
	}
	s.Set(podOn("n1", "c"))
	until(t, w.Changed, func() bool { return len(w.List()) == 2 })
	seen.mu.Lock()
	defer seen.mu.Unlock()
	// No resource version: as it is now; no limit, and no stream that begins with what is there.
	if first := seen.queries[0]; first != "fieldSelector=spec.nodeName%3Dn1" {
		t.Errorf("the first request is %q", first)
	}
	if len(seen.queries) != 2 {
		t.Errorf("requests: %q", seen.queries)
	}
}

func budgetNamed(namespace, name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestThoseWhoFollowAWatchShareItAndHearWhatConcernsThem(t *testing.T) {
	s := k8stest.New(budgetNamed("one", "a"), budgetNamed("two", "b"))
	source := k8s.NewSources(s.Client(t)).Budgets
	follow := func(ctx context.Context, namespace string) *k8s.SharedView[*policyv1.PodDisruptionBudget] {
		t.Helper()
		view, err := source.Follow(ctx, func(b *policyv1.PodDisruptionBudget, _ bool) bool { return b.Namespace == namespace })
		if err == nil {
			err = view.Synced(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		return view
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := follow(ctx, "one"), follow(t.Context(), "two")
	if n := len(s.Requests("poddisruptionbudgets")); n != 1 {
		t.Errorf("%d requests of two users", n)
	}
	if found := first.By("one"); len(found) != 1 || found[0].Name != "a" {
		t.Errorf("budgets of a namespace: %v", found)
	}
	drained := func(c chan struct{}) {
		for {
			select {
			case <-c:
				continue
			case <-time.After(50 * time.Millisecond): // what was there is told in the background
				return
			}
		}
	}
	drained(first.Changed)
	s.Set(budgetNamed("two", "c"))
	until(t, second.Changed, func() bool { return len(second.By("two")) == 2 })
	if len(first.Changed) > 0 {
		t.Error("a change of another namespace wakes the first")
	}
	// One who leaves takes the watch from nobody.
	cancel()
	s.Set(budgetNamed("two", "d"))
	until(t, second.Changed, func() bool { return len(second.By("two")) == 3 })
}
