package nodelease_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/k8s/nodelease"
	"drydock.dev/drydock/k8s/objects"
)

const key = "coordination.k8s.io/leases/medik8s-leases/node-n1"

func leases(t *testing.T) (nodelease.Leases, *k8stest.Kinds) { return leasesAt(t, 0) }

// leasesAt are leases of an API server whose clock is ahead.
func leasesAt(t *testing.T, ahead time.Duration) (nodelease.Leases, *k8stest.Kinds) {
	t.Helper()
	kinds := k8stest.NewKinds()
	server := k8stest.New()
	server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		return kinds.Handle(w, r)
	}
	return nodelease.Leases{Objects: objects.New(server.Client(t))}, kinds
}

// have sets the lease of node n1.
func have(kinds *k8stest.Kinds, holder string, duration string, acquired, renewed time.Time) {
	micro := func(at time.Time) string { return at.UTC().Format(metav1.RFC3339Micro) }
	kinds.Set(fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"node-n1","namespace":"medik8s-leases"},
		"spec":{"holderIdentity":%q,%s"acquireTime":%q,"renewTime":%q,"leaseTransitions":4}}`, holder, duration, micro(acquired), micro(renewed)))
}

func lease(t *testing.T, kinds *k8stest.Kinds) *coordinationv1.Lease {
	t.Helper()
	o := kinds.Find(key)
	if o == nil {
		return nil
	}
	l := &coordinationv1.Lease{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, l); err != nil {
		t.Fatal(err)
	}
	return l
}

var mine = nodelease.Want{Node: "N1", UID: "uid-1", Holder: "NodeHealthCheck-mine"}

func TestALeaseIsTakenWithItsNamespace(t *testing.T) {
	l, kinds := leases(t)
	state, err := l.Take(t.Context(), mine)
	got := lease(t, kinds)
	if err != nil || !state.Held || got == nil {
		t.Fatalf("%+v, %v, %v", state, err, got)
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "N1", UID: "uid-1"}
	if *got.Spec.HolderIdentity != mine.Holder || *got.Spec.LeaseDurationSeconds != 660 || *got.Spec.LeaseTransitions != 0 ||
		!got.Spec.AcquireTime.Time.Equal(got.Spec.RenewTime.Time) || len(got.OwnerReferences) != 1 || got.OwnerReferences[0] != owner {
		t.Errorf("%+v owned by %+v", got.Spec, got.OwnerReferences)
	}
	if nodes, err := l.HeldBy(t.Context(), mine.Holder); err != nil || strings.Join(nodes, " ") != "n1" {
		t.Errorf("held: %v, %v", nodes, err)
	}
	if err := l.GiveBack(t.Context(), "N1", mine.Holder); err != nil || lease(t, kinds) != nil {
		t.Errorf("given back: %v", err)
	}
}

func TestTakeover(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		duration string
		renewed  time.Time
		held     bool
	}{
		"it lasts":                  {`"leaseDurationSeconds":60,`, now, false},
		"it has expired":            {`"leaseDurationSeconds":60,`, now.Add(-2 * time.Minute), true},
		"renewed in the future":     {`"leaseDurationSeconds":60,`, now.Add(time.Hour), true},
		"it does not say how long":  {``, now, true},
		"it expires only just then": {`"leaseDurationSeconds":60,`, now.Add(-50 * time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			l, kinds := leases(t)
			have(kinds, "node-maintenance", c.duration, now.Add(-time.Hour), c.renewed)
			state, err := l.Take(t.Context(), mine)
			if err != nil || state.Held != c.held {
				t.Fatalf("%+v, %v", state, err)
			}
			got := lease(t, kinds)
			if !c.held {
				if state.HeldBy != "node-maintenance" || *got.Spec.HolderIdentity != "node-maintenance" {
					t.Errorf("%+v: %+v", state, got.Spec)
				}
				if err := l.GiveBack(t.Context(), "n1", mine.Holder); err != nil || lease(t, kinds) == nil {
					t.Errorf("somebody else's lease was given back: %v", err)
				}
				return
			}
			if *got.Spec.HolderIdentity != mine.Holder || *got.Spec.LeaseTransitions != 5 || time.Since(got.Spec.AcquireTime.Time) > time.Minute {
				t.Errorf("%+v", got.Spec)
			}
		})
	}
}

// TestALeaseIsJudgedByTheServersClock: the worker's clock is an hour behind the API server's, or ahead of it.
func TestALeaseIsJudgedByTheServersClock(t *testing.T) {
	for name, skew := range map[string]time.Duration{"the worker is behind": time.Hour, "the worker is ahead": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			l, kinds := leasesAt(t, skew)
			now := time.Now().Add(skew)
			have(kinds, "node-maintenance", `"leaseDurationSeconds":60,`, now.Add(-time.Minute), now)
			if state, err := l.Take(t.Context(), mine); err != nil || state.Held || state.HeldBy != "node-maintenance" {
				t.Errorf("a lease that lasts: %+v, %v", state, err)
			}
			lasts := func(holder string, want bool) {
				t.Helper()
				if got, err := l.Lasts(t.Context(), "n1", holder); err != nil || got != want {
					t.Errorf("the lease of %s lasts: %t, %v", holder, got, err)
				}
			}
			lasts("node-maintenance", true)
			lasts(mine.Holder, false)
			have(kinds, "node-maintenance", `"leaseDurationSeconds":60,`, now.Add(-time.Hour), now.Add(-2*time.Minute))
			lasts("node-maintenance", false)
			state, err := l.Take(t.Context(), mine)
			if err != nil || !state.Held {
				t.Fatalf("a lease that has expired: %+v, %v", state, err)
			}
			if got := lease(t, kinds); got.Spec.RenewTime.Sub(now).Abs() > 10*time.Second || got.Spec.AcquireTime.Sub(now).Abs() > 10*time.Second {
				t.Errorf("it was written as %+v at %s", got.Spec, now)
			}
			if state, err := l.Renew(t.Context(), mine); err != nil || !state.Held || state.Overdue {
				t.Errorf("renewed: %+v, %v", state, err)
			}
			if err := l.GiveBack(t.Context(), "N1", mine.Holder); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Take(t.Context(), mine); err != nil {
				t.Fatal(err)
			}
			if got := lease(t, kinds); got.Spec.RenewTime.Sub(now).Abs() > 10*time.Second {
				t.Errorf("it was created as %+v at %s", got.Spec, now)
			}
		})
	}
}

func TestRenewal(t *testing.T) {
	now := time.Now()
	step := mine
	step.For, step.Before = 4*time.Minute, time.Minute
	for name, c := range map[string]struct {
		holder            string
		acquired, renewed time.Duration
		want              string
		duration          int32
	}{
		"it lasts long enough":           {mine.Holder, 30 * time.Second, 0, "held", 360},
		"it would expire before":         {mine.Holder, 10 * time.Minute, 3 * time.Minute, "held", 300},
		"kept for three times, and less": {mine.Holder, 12*time.Minute + 30*time.Second, 10 * time.Minute, "held", 300},
		"kept for too long":              {mine.Holder, 14 * time.Minute, time.Minute, "overdue", 0},
		"somebody else's":                {"NodeHealthCheck-other", time.Minute, 0, "other", 360},
		"gone":                           {"", 0, 0, "gone", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, kinds := leases(t)
			if c.holder != "" {
				have(kinds, c.holder, `"leaseDurationSeconds":360,`, now.Add(-c.acquired), now.Add(-c.renewed))
			}
			state, err := l.Renew(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			got := lease(t, kinds)
			is := map[bool]string{true: "held", false: "gone"}[state.Held]
			switch {
			case state.Overdue:
				is = "overdue"
			case state.HeldBy != "":
				is = "other"
			}
			if is != c.want || (got != nil) != (c.duration > 0) {
				t.Fatalf("%+v, lease %v", state, got)
			}
			if got != nil && (*got.Spec.LeaseDurationSeconds != c.duration || got.Spec.AcquireTime.Sub(now.Add(-c.acquired)).Abs() > time.Second) {
				t.Errorf("%+v", got.Spec)
			}
		})
	}
}

func TestAShorterStepDoesNotShortenTheLease(t *testing.T) {
	l, kinds := leases(t)
	long, short := mine, mine
	long.For, short.For = time.Hour, time.Minute
	for _, want := range []nodelease.Want{long, short} {
		if state, err := l.Take(t.Context(), want); err != nil || !state.Held {
			t.Fatalf("%+v, %v", state, err)
		}
	}
	if got := lease(t, kinds); *got.Spec.LeaseDurationSeconds != 3660 {
		t.Errorf("%+v", got.Spec)
	}
}

// TestAConflictGivesNothingBack: a deletion may be answered with Conflict while the lease is still the holder's.
func TestAConflictGivesNothingBack(t *testing.T) {
	l, kinds := leases(t)
	if _, err := l.Take(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	refused := false
	kinds.Refuse = func(r *http.Request) int {
		if r.Method == http.MethodDelete && !refused {
			refused = true
			return http.StatusConflict
		}
		return 0
	}
	if err := l.GiveBack(t.Context(), mine.Node, mine.Holder); err != nil || !refused || lease(t, kinds) != nil {
		t.Errorf("refused %v, %v: the lease is still there", refused, err)
	}
}
