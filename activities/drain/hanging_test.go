package drain

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/rules/spec"
)

// hanging answers no eviction of some pods, as where an admission webhook hangs.
func hanging(t *testing.T, pods ...string) func(http.ResponseWriter, *http.Request) bool {
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	return func(_ http.ResponseWriter, r *http.Request) bool {
		for _, name := range pods {
			if strings.HasSuffix(r.URL.Path, "/"+name+"/eviction") {
				select {
				case <-released:
				case <-r.Context().Done():
				}
				return true
			}
		}
		return false
	}
}

func TestARequestThatIsNotAnsweredHoldsNoOtherPod(t *testing.T) {
	t.Parallel()
	names := []string{"a-1", "a-2", "a-3"}
	objects := []*corev1.Pod{activitytest.Pod("b-1"), activitytest.PodOf("web", "z-1")}
	for _, name := range names {
		objects = append(objects, activitytest.PodOf("slow", name))
	}
	d := newDrain(t, activitytest.HeldNode())
	for _, pod := range objects {
		pod.OwnerReferences[0].UID = "one" // all of one controller: they go in turn
		d.server.Set(pod)
	}
	d.server.Handle = hanging(t, names...)
	d.start(evict)
	began := time.Now()
	d.untilAsked("z-1/eviction")
	// What comes later is not held either.
	d.server.Set(activitytest.Pod("c-1"))
	d.untilAsked("c-1/eviction")
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("the others waited for %s", took)
	}
	for progress := d.reported(); ; progress = d.reported() {
		if progress.Reasons["NoAnswer"] > 0 {
			break
		}
	}
	for _, name := range names {
		if n := len(d.server.Requests(name + "/eviction")); n > 1 {
			t.Errorf("%s was asked for %d times at once", name, n)
		}
	}
	close(d.stop)
	if _, err := d.end(); err == nil {
		t.Error("the drain came to its end")
	}
}

func TestARequestThatIsNotAnsweredHoldsNoOtherDrain(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode())
	d.drains.Limiter.underWay = make(chan struct{}, 2)
	for _, name := range []string{"a", "b", "c", "d"} {
		d.server.Set(activitytest.Pod(name, bare))
	}
	d.server.Handle = hanging(t, "a", "b", "c", "d")
	d.start(spec.Drain{Mode: spec.ModeEvict, Force: true})
	for _, name := range []string{"a", "b", "c", "d"} { // the limiter is shared by all drains, and has room for two
		d.untilAsked("/" + name + "/eviction")
	}
	close(d.stop)
	_, _ = d.end()
}

func TestDeletedBudgetLetsThePodGoAtOnce(t *testing.T) {
	for name, end := range map[string]func(d *draining){
		"deleted":  func(d *draining) { d.server.Delete(budget("web", "web", 0)) },
		"narrowed": func(d *draining) { d.server.Set(budget("web", "other", 0)) },
		"relabelled pod": func(d *draining) {
			pod := d.server.Pod("default", "web-1")
			pod.Labels = map[string]string{"app": "free"}
			d.server.Set(pod)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web-1"), budget("web", "web", 0))
			var allowed atomic.Bool
			refuse := refusing("web-1")
			d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool { return !allowed.Load() && refuse(w, r) }
			d.start(evict)
			d.reported()
			allowed.Store(true)
			changed := time.Now()
			end(d)
			if _, err := d.end(); err != nil {
				t.Fatal(err)
			}
			// The refusal asked to wait for a quarter of an hour, and the backoff behind events is 30 s.
			if took := time.Since(changed); took > 5*time.Second {
				t.Errorf("it was asked for after %s", took)
			}
		})
	}
}

func unbound(name string) *corev1.Pod {
	pod := activitytest.Pod(name)
	pod.Spec.NodeName = ""
	pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
	return pod
}

func TestPodThatIsBoundAfterTheCordonIsEvicted(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), unbound("late"))
	d.in = func(in *Input) { in.Cordoned = time.Now() }
	d.start(evict)
	d.untilAsked("nodes") // it looks at its node by now
	bound := unbound("late")
	bound.Spec.NodeName = "n1"
	d.server.Set(bound)
	if drained, err := d.end(); err != nil || drained.Evicted != 1 {
		t.Errorf("drained %+v, %v", drained, err)
	}
}

func TestEmptyNodeIsBelievedAtOnceWhereNoPodIsOnItsWay(t *testing.T) {
	t.Parallel()
	young := unbound("young")
	young.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Minute))
	d := newDrain(t, activitytest.HeldNode(), young)
	d.in = func(in *Input) { in.Cordoned = time.Now() }
	began := time.Now()
	if _, err := d.start(evict).end(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > bindsWithin {
		t.Errorf("it took %s", took)
	}
}
