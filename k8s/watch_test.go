package k8s_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/nodestate"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // client-go logs what it retries
	os.Exit(m.Run())
}

func named(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1"}}
}

func watchNodes(t *testing.T, s *k8stest.Server, o k8s.WatchOptions) *k8s.Watch[*corev1.Node] {
	t.Helper()
	o.Resource = "nodes"
	w, err := k8s.NewWatch(t.Context(), s.Client(t).CoreV1().RESTClient(), &corev1.Node{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// until waits for changes until a condition holds.
func until(t *testing.T, changed <-chan struct{}, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !condition() {
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal("the condition never came true")
		}
	}
}

func TestWatchFollowsTheServer(t *testing.T) {
	s := k8stest.New(named("n1"), named("n2"))
	deleted := make(chan string, 1)
	w := watchNodes(t, s, k8s.WatchOptions{Changing: func(obj any, gone bool) {
		if gone {
			deleted <- obj.(*corev1.Node).Name
		}
	}})
	if err := w.Synced(t.Context(), "nodes"); err != nil {
		t.Fatal(err)
	}
	if len(w.List()) != 2 {
		t.Errorf("%d nodes", len(w.List()))
	}
	if _, ok := w.Get("n3"); ok {
		t.Error("a node that does not exist was found")
	}
	changed := named("n1")
	changed.Spec.Unschedulable = true
	s.Set(changed)
	until(t, w.Changed, func() bool { n, ok := w.Get("n1"); return ok && n.Spec.Unschedulable })
	s.Set(named("n3"))
	until(t, w.Changed, func() bool { _, ok := w.Get("n3"); return ok })
	s.Delete(named("n2"))
	until(t, w.Changed, func() bool { _, ok := w.Get("n2"); return !ok })
	if name := <-deleted; name != "n2" {
		t.Errorf("deleted %s", name)
	}
	if w.Err() != nil {
		t.Errorf("error %v", w.Err())
	}
}

func TestWatchThatIsRefusedSaysSoAtOnce(t *testing.T) {
	for code, is := range map[int]func(error) bool{403: apierrors.IsForbidden, 401: apierrors.IsUnauthorized} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			s := k8stest.New()
			s.Refuse(code)
			w := watchNodes(t, s, k8s.WatchOptions{})
			if err := w.Synced(t.Context(), "nodes"); !is(err) {
				t.Errorf("error = %v", err)
			}
			if !is(w.Err()) {
				t.Errorf("error = %v", w.Err())
			}
		})
	}
}

func TestWatchWaitsForAServerThatFails(t *testing.T) {
	s := k8stest.New()
	s.Refuse(500)
	w := watchNodes(t, s, k8s.WatchOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-s.Asked
		cancel(errors.New("enough"))
	}()
	if err := w.Synced(ctx, "nodes"); err == nil || err.Error() != "watching nodes: enough" {
		t.Errorf("error = %v", err)
	}
	if w.Err() != nil {
		t.Errorf("a server that fails is not one that refuses: %v", w.Err())
	}
}

func TestWatchThatIsRefusedLaterSaysSo(t *testing.T) {
	s := k8stest.New(named("n1"))
	w := watchNodes(t, s, k8s.WatchOptions{})
	if err := w.Synced(t.Context(), "nodes"); err != nil {
		t.Fatal(err)
	}
	s.Refuse(403)
	s.Disconnect()
	<-w.Refused
	if !apierrors.IsForbidden(w.Err()) {
		t.Errorf("error = %v", w.Err())
	}
	if n := len(s.Requests("")); n < 4 {
		t.Errorf("it gave up after %d requests", n)
	}
	// What was seen before is not a reason to say that nothing is known.
	for range 20 {
		if err := w.Synced(t.Context(), "nodes"); err != nil {
			t.Fatalf("synced = %v", err)
		}
	}
}

func TestWatchOutlivesATokenThatExpired(t *testing.T) {
	t.Parallel()
	s := k8stest.New(named("n1"))
	w := watchNodes(t, s, k8s.WatchOptions{})
	if err := w.Synced(t.Context(), "nodes"); err != nil {
		t.Fatal(err)
	}
	before := len(s.Requests(""))
	s.Refuse(401)
	s.Disconnect()
	until(t, s.Asked, func() bool { return len(s.Requests("")) >= before+2 })
	s.Refuse(0)
	changed := named("n1")
	changed.Spec.Unschedulable = true
	s.Set(changed)
	until(t, w.Changed, func() bool { n, ok := w.Get("n1"); return ok && n.Spec.Unschedulable })
	if err := w.Err(); err != nil {
		t.Error(err)
	}
}

func TestRefusalHasToLast(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))
	expired, failed := apierrors.NewUnauthorized("expired"), apierrors.NewInternalError(errors.New("etcd"))
	for name, c := range map[string]struct {
		errs []error
		want bool
	}{
		"forbidden twice":    {[]error{forbidden, forbidden}, false},
		"three times":        {[]error{forbidden, forbidden, forbidden}, true},
		"unauthorized":       {[]error{expired, expired, expired, expired}, false},
		"others in between":  {[]error{forbidden, failed, forbidden, expired, forbidden}, true},
		"granted in between": {[]error{forbidden, forbidden, nil, forbidden, forbidden}, false},
	} {
		w := watchNodes(t, k8stest.New(), k8s.WatchOptions{})
		if err := w.Synced(t.Context(), "nodes"); err != nil {
			t.Fatal(err)
		}
		for _, err := range c.errs {
			w.Weigh(err)
		}
		if refused := w.Err() != nil; refused != c.want {
			t.Errorf("%s: refused = %v", name, refused)
		}
	}
}

func TestViewsShareOneWatch(t *testing.T) {
	s := k8stest.New(named("n1"))
	nodes := k8s.NewNodes(s.Client(t))
	first, err := nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	requests := len(s.Requests(""))
	second, err := nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if now := len(s.Requests("")); now != requests {
		t.Errorf("the second view cost %d requests", now-requests)
	}
	s.Set(named("n2"))
	for _, view := range []*k8s.View{first, second} {
		until(t, view.Changed, func() bool { _, ok := view.Get("n2"); return ok })
	}
	second.Close()
	second.Close() // twice is once
	s.Set(named("n3"))
	until(t, first.Changed, func() bool { _, ok := first.Get("n3"); return ok })
}

func TestViewOfOneThatGaveUpDoesNotBlindTheOthers(t *testing.T) {
	s := k8stest.New(named("n1"))
	nodes := k8s.NewNodes(s.Client(t))
	view, err := nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if other, err := nodes.View(gone); err == nil {
			other.Close()
		}
	}
	s.Set(named("n2"))
	until(t, view.Changed, func() bool { _, ok := view.Get("n2"); return ok })
}

func TestViewThatIsRefusedIsTriedAfresh(t *testing.T) {
	s := k8stest.New(named("n1"))
	s.Refuse(403)
	nodes := k8s.NewNodes(s.Client(t))
	if _, err := nodes.View(t.Context()); !apierrors.IsForbidden(err) {
		t.Fatalf("error = %v", err)
	}
	s.Refuse(0)
	view, err := nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if _, ok := view.Get("n1"); !ok || view.Err() != nil {
		t.Errorf("n1 is not there; error %v", view.Err())
	}
	s.Refuse(403)
	s.Disconnect()
	until(t, view.Changed, func() bool { return view.Err() != nil })
}

func TestViewKeepsWhatSchedulingAndHealthChecksLookAt(t *testing.T) {
	full := named("n1")
	full.Labels = map[string]string{"pool": "gpu"}
	full.Annotations = map[string]string{api.HoldersAnnotation: `{"holders":[]}`, "much": "text"}
	full.Spec.Unschedulable, full.Spec.PodCIDR = true, "10.0.0.0/24"
	full.Status.Images = []corev1.ContainerImage{{Names: []string{"big"}}}
	full.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "kubelet is ready", LastHeartbeatTime: metav1.Now()}}
	view, err := k8s.NewNodes(k8stest.New(full).Client(t)).View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	got, _ := view.Get("n1")
	if got.UID != full.UID || got.Labels["pool"] != "gpu" || !got.Spec.Unschedulable || !nodestate.IsReady(got) || !nodestate.IsUnavailable(got) {
		t.Errorf("kept %+v", got)
	}
	want := []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if len(got.Annotations) != 1 || len(got.Status.Images) != 0 || !reflect.DeepEqual(got.Status.Conditions, want) || got.Spec.PodCIDR != "" {
		t.Errorf("kept too much: %+v", got)
	}
}

func TestAvailability(t *testing.T) {
	ready := func(status corev1.ConditionStatus) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	}
	for name, c := range map[string]struct {
		unschedulable bool
		conditions    []corev1.NodeCondition
		want          bool
	}{
		"ready":              {false, ready(corev1.ConditionTrue), false},
		"cordoned":           {true, ready(corev1.ConditionTrue), true},
		"not ready":          {false, ready(corev1.ConditionFalse), true},
		"not heard of":       {false, ready(corev1.ConditionUnknown), true},
		"without a word yet": {false, nil, true},
	} {
		n := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: c.unschedulable}, Status: corev1.NodeStatus{Conditions: c.conditions}}
		if got := nodestate.IsUnavailable(n); got != c.want {
			t.Errorf("%s: unavailable = %v", name, got)
		}
	}
}
