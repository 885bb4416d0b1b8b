package k8s_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"drydock/k8s"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // client-go logs what it retries
	os.Exit(m.Run())
}

// nodeServer lists and watches nodes as kube-apiserver does.
type nodeServer struct {
	mu       sync.Mutex
	version  int
	nodes    map[string]*corev1.Node
	watchers map[chan string]bool
	// refuse answers all requests with this code; streams are ended by disconnect.
	refuse   int
	requests int
	// asked receives a token with each request.
	asked chan struct{}
}

func newNodeServer(nodes ...*corev1.Node) *nodeServer {
	s := &nodeServer{nodes: map[string]*corev1.Node{}, watchers: map[chan string]bool{}, asked: make(chan struct{}, 1000)}
	for _, n := range nodes {
		s.version++
		n.ResourceVersion = strconv.Itoa(s.version)
		s.nodes[n.Name] = n
	}
	return s
}

func (s *nodeServer) client(t *testing.T) kubernetes.Interface {
	client := apiServer(t, s.serve)
	t.Cleanup(func() { // before the server waits for its last request
		s.setRefuse(500)
		s.disconnect()
	})
	return client
}

func (s *nodeServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	refuse := s.refuse
	s.mu.Unlock()
	s.asked <- struct{}{}
	if refuse != 0 {
		reasons := map[int]metav1.StatusReason{401: "Unauthorized", 403: "Forbidden", 500: "InternalError"}
		respond(w, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"nodes is refused","code":%d}`, reasons[refuse], refuse))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}}
		list.ResourceVersion = strconv.Itoa(s.version)
		for _, n := range s.nodes {
			list.Items = append(list.Items, *n)
		}
		json.NewEncoder(w).Encode(list)
		return
	}
	s.watch(w, r)
}

func (s *nodeServer) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan string, 100)
	s.mu.Lock()
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, n := range s.nodes {
			events <- eventOf("ADDED", n)
		}
		end := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}
		events <- eventOf("BOOKMARK", end)
	}
	s.watchers[events] = true
	s.mu.Unlock()
	for {
		select {
		case event, open := <-events:
			if !open {
				return
			}
			fmt.Fprintln(w, event)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func eventOf(kind string, n *corev1.Node) string {
	n = n.DeepCopy()
	n.Kind, n.APIVersion = "Node", "v1"
	object, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object)
}

func (s *nodeServer) tell(kind string, n *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	n.ResourceVersion = strconv.Itoa(s.version)
	if s.nodes[n.Name] = n; kind == "DELETED" {
		delete(s.nodes, n.Name)
	}
	for events := range s.watchers {
		events <- eventOf(kind, n)
	}
}

// disconnect ends all streams.
func (s *nodeServer) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for events := range s.watchers {
		close(events)
	}
	s.watchers = map[chan string]bool{}
}

func (s *nodeServer) setRefuse(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = code
}

func named(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1"}}
}

func watchNodes(t *testing.T, s *nodeServer, o k8s.WatchOptions) *k8s.Watch[*corev1.Node] {
	t.Helper()
	o.Resource = "nodes"
	w, err := k8s.NewWatch(t.Context(), s.client(t).CoreV1().RESTClient(), &corev1.Node{}, o)
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
	s := newNodeServer(named("n1"), named("n2"))
	deleted := make(chan string, 1)
	w := watchNodes(t, s, k8s.WatchOptions{Deleted: func(obj any) { deleted <- obj.(*corev1.Node).Name }})
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
	s.tell("MODIFIED", changed)
	until(t, w.Changed, func() bool { n, ok := w.Get("n1"); return ok && n.Spec.Unschedulable })
	s.tell("ADDED", named("n3"))
	until(t, w.Changed, func() bool { _, ok := w.Get("n3"); return ok })
	s.tell("DELETED", named("n2"))
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
			s := newNodeServer()
			s.setRefuse(code)
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
	s := newNodeServer()
	s.setRefuse(500)
	w := watchNodes(t, s, k8s.WatchOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-s.asked
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
	s := newNodeServer(named("n1"))
	w := watchNodes(t, s, k8s.WatchOptions{})
	if err := w.Synced(t.Context(), "nodes"); err != nil {
		t.Fatal(err)
	}
	s.setRefuse(403)
	s.disconnect()
	<-w.Refused
	if !apierrors.IsForbidden(w.Err()) {
		t.Errorf("error = %v", w.Err())
	}
	// What was seen before is not a reason to say that nothing is known.
	for range 20 {
		if err := w.Synced(t.Context(), "nodes"); err != nil {
			t.Fatalf("synced = %v", err)
		}
	}
}

func TestViewsShareOneWatch(t *testing.T) {
	s := newNodeServer(named("n1"))
	nodes := k8s.NewNodes(s.client(t))
	first, err := nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	requests := s.requests
	second, err := nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.requests != requests {
		t.Errorf("the second view cost %d requests", s.requests-requests)
	}
	s.tell("ADDED", named("n2"))
	for _, view := range []*k8s.View{first, second} {
		until(t, view.Changed, func() bool { _, ok := view.Get("n2"); return ok })
	}
	second.Close()
	second.Close() // twice is once
	s.tell("ADDED", named("n3"))
	until(t, first.Changed, func() bool { _, ok := first.Get("n3"); return ok })
}

func TestViewOfOneThatGaveUpDoesNotBlindTheOthers(t *testing.T) {
	s := newNodeServer(named("n1"))
	nodes := k8s.NewNodes(s.client(t))
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
	s.tell("ADDED", named("n2"))
	until(t, view.Changed, func() bool { _, ok := view.Get("n2"); return ok })
}

func TestViewThatIsRefusedIsTriedAfresh(t *testing.T) {
	s := newNodeServer(named("n1"))
	s.setRefuse(403)
	nodes := k8s.NewNodes(s.client(t))
	if _, err := nodes.View(t.Context()); !apierrors.IsForbidden(err) {
		t.Fatalf("error = %v", err)
	}
	s.setRefuse(0)
	view, err := nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if _, ok := view.Get("n1"); !ok || view.Err() != nil {
		t.Errorf("n1 is not there; error %v", view.Err())
	}
	s.setRefuse(403)
	s.disconnect()
	until(t, view.Changed, func() bool { return view.Err() != nil })
}

func TestViewKeepsWhatSchedulingLooksAt(t *testing.T) {
	full := named("n1")
	full.Labels = map[string]string{"pool": "gpu"}
	full.Annotations = map[string]string{k8s.HoldersAnnotation: `{"holders":[]}`, "much": "text"}
	full.Spec.Unschedulable, full.Spec.PodCIDR = true, "10.0.0.0/24"
	full.Status.Images = []corev1.ContainerImage{{Names: []string{"big"}}}
	full.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "kubelet is ready"}}
	view, err := k8s.NewNodes(newNodeServer(full).client(t)).View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	got, _ := view.Get("n1")
	if got.UID != full.UID || got.Labels["pool"] != "gpu" || !got.Spec.Unschedulable || !k8s.IsReady(got) || !k8s.IsUnavailable(got) {
		t.Errorf("kept %+v", got)
	}
	if len(got.Annotations) != 1 || len(got.Status.Images) != 0 || len(got.Status.Conditions) != 1 || got.Spec.PodCIDR != "" {
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
		if got := k8s.IsUnavailable(n); got != c.want {
			t.Errorf("%s: unavailable = %v", name, got)
		}
	}
}
