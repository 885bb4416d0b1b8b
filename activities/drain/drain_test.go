package drain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/spec"
)

func bare(p *corev1.Pod) { p.OwnerReferences = nil }

func succeeded(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func static(p *corev1.Pod) {
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
}

func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }

func elsewhere(p *corev1.Pod) { p.Spec.NodeName = "n2" }

func withLabel(key, value string) activitytest.PodOption {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

// draining is a Drain under way.
type draining struct {
	t      *testing.T
	server *k8stest.Server
	env    *testsuite.TestActivityEnvironment
	drains *Activities
	stop   chan struct{}
	// in changes the input before the start; may be nil.
	in func(*Input)
	// blocked receives what the workflow gets.
	blocked chan api.DrainProgress
	done    chan drainEnd
}

type drainEnd struct {
	drained api.DrainProgress
	err     error
}

func newDrain(t *testing.T, objects ...k8stest.Object) *draining {
	d := &draining{
		t: t, server: k8stest.New(objects...), env: activitytest.Environment(), stop: make(chan struct{}),
		blocked: make(chan api.DrainProgress, 100), done: make(chan drainEnd, 1),
	}
	d.env.SetWorkerStopChannel(d.stop)
	client := &mocks.Client{}
	client.On("SignalWorkflow", mock.Anything, activitytest.WorkflowID, activitytest.RunID, "drain-blocked", mock.Anything).Return(
		func(_ context.Context, _, _, _ string, progress any) error {
			d.blocked <- progress.(api.DrainProgress)
			return nil
		})
	kube := d.server.Client(t)
	d.drains = &Activities{
		Client: kube, Temporal: client, Nodes: k8s.NewNodes(kube), Sources: k8s.NewSources(kube), Limiter: NewLimiter(0), Metrics: NewMetrics(prometheus.NewRegistry()),
	}
	return d
}

func (d *draining) start(drain spec.Drain) *draining {
	in := Input{Node: "n1", UID: "uid-1", RunID: activitytest.RunID, Drain: drain, BlockedSignal: "drain-blocked", Began: time.Now()}
	if d.in != nil {
		d.in(&in)
	}
	d.env.RegisterActivity(d.drains.Drain)
	go func() {
		value, err := d.env.ExecuteActivity(d.drains.Drain, in)
		var end drainEnd
		if end.err = err; err == nil {
			end.err = value.Get(&end.drained)
		}
		d.done <- end
	}()
	return d
}

// end waits for the drain; the timeout is for a drain that does not end as it should.
func (d *draining) end() (api.DrainProgress, error) {
	d.t.Helper()
	select {
	case end := <-d.done:
		return end.drained, end.err
	case <-time.After(30 * time.Second):
		d.t.Fatal("the drain did not end")
	}
	return api.DrainProgress{}, nil
}

// reported waits for the next progress that the workflow gets.
func (d *draining) reported() api.DrainProgress {
	d.t.Helper()
	select {
	case p := <-d.blocked:
		return p
	case <-time.After(30 * time.Second):
		d.t.Fatalf("the workflow got no progress; the server was asked %v", d.server.Requests(""))
	}
	return api.DrainProgress{}
}

func (d *draining) expectError(kind string) {
	d.t.Helper()
	_, err := d.end()
	var cause *temporal.ApplicationError
	if !errors.As(err, &cause) || cause.Type() != kind {
		d.t.Errorf("error = %v, want %s", err, kind)
	}
}

// untilAsked waits until the server has had a request with this text.
func (d *draining) untilAsked(text string) {
	d.t.Helper()
	timeout := time.After(30 * time.Second)
	for len(d.server.Requests(text)) == 0 {
		select {
		case <-d.server.Asked:
		case <-timeout:
			d.t.Fatalf("no request %s: %v", text, d.server.Requests(""))
		}
	}
}

func (d *draining) evictions() []string {
	var names []string
	for _, request := range d.server.Requests("/eviction") {
		parts := strings.Split(request, "/")
		names = append(names, parts[len(parts)-2])
	}
	return names
}

// refusing answers evictions of some pods as the API server does where a budget does not allow them.
func refusing(pods ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		for _, name := range pods {
			if strings.HasSuffix(r.URL.Path, "/"+name+"/eviction") {
				k8stest.Respond(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 3 healthy pods and has 3 currently"}],"retryAfterSeconds":1000},"code":429}`)
				return true
			}
		}
		return false
	}
}

var evict = spec.Drain{Mode: spec.ModeEvict}

func TestDrainEvictsWhatIsToGoAndSkipsTheRest(t *testing.T) {
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web-1"), activitytest.Pod("web-2"), activitytest.Pod("static", static), activitytest.Pod("other", elsewhere),
		activitytest.Pod("batch", bare, succeeded), activitytest.Pod("db", withLabel("app", "db"))).start(spec.Drain{Mode: spec.ModeEvict, PodSelector: "app=web"})
	drained, err := d.end()
	if err != nil {
		t.Fatal(err)
	}
	if drained.Evicted != 3 || drained.Skipped != 2 {
		t.Errorf("drained %+v", drained)
	}
	if got := d.evictions(); len(got) != 3 || d.server.Pod("default", "static") == nil || d.server.Pod("default", "db") == nil || d.server.Pod("default", "other") == nil {
		t.Errorf("evicted %v", got)
	}
}

func TestDrainReportsToTheLockstepOnly(t *testing.T) {
	for name, report := range map[string]Report{
		"an approval":            {WorkflowID: "node-maintenance/n2/ops", Signal: api.MsgApprove},
		"a maintenance of alone": {WorkflowID: api.LockstepID(""), Signal: api.SignalNodeProgress},
	} {
		d := newDrain(t, activitytest.HeldNode())
		d.in = func(in *Input) { in.Then = &report }
		_, err := d.start(spec.Drain{Mode: spec.ModeEvict}).end()
		if activitytest.ErrorType(err) != api.ErrorForeignCaller || len(d.server.Requests("")) != 0 {
			t.Errorf("%s: %v, and requests %v", name, err, d.server.Requests(""))
		}
	}
}

func TestDrainOfAnEmptyNodeEndsAtOnce(t *testing.T) {
	d := newDrain(t, activitytest.HeldNode()).start(evict)
	if drained, err := d.end(); err != nil || drained.Evicted != 0 {
		t.Errorf("drained %+v, %v", drained, err)
	}
}

func TestFinishedPodsNeverKeepANode(t *testing.T) {
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("batch", succeeded))
	d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/eviction") {
			k8stest.Respond(w, `{"kind":"Status","status":"Failure","message":"etcd","code":500}`)
			return true
		}
		return false
	}
	if _, err := d.start(evict).end(); err != nil || len(d.evictions()) != 1 {
		t.Errorf("evictions %v, %v", d.evictions(), err)
	}
}

func TestPodOnItsWayOutIsWaitedForAndNotEvicted(t *testing.T) {
	leaving := activitytest.Pod("web-1", terminating)
	d := newDrain(t, activitytest.HeldNode(), leaving, activitytest.Pod("web-2")).start(evict)
	d.untilAsked("web-2/eviction")
	select {
	case end := <-d.done:
		t.Fatalf("the drain ended with a pod on the node: %+v", end)
	default:
	}
	d.server.Delete(leaving)
	if _, err := d.end(); err != nil {
		t.Fatal(err)
	}
	if got := d.evictions(); len(got) != 1 {
		t.Errorf("evicted %v", got)
	}
}

func TestRefusedPodGoesAsSoonAsItsBudgetAllows(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web-1"), budget("web", "web", 0))
	var allowed atomic.Bool
	refuse := refusing("web-1")
	d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool { return !allowed.Load() && refuse(w, r) }
	d.start(evict)
	progress := d.reported()
	if len(progress.Blockers) != 1 || progress.Blockers[0].Pod != "default/web-1" || progress.Blockers[0].Budget != "web" ||
		!strings.Contains(progress.Blockers[0].Message, "budget web allows 0 disruptions") || progress.Remaining != 1 {
		t.Errorf("the workflow got %+v", progress)
	}
	// The API server asks to wait for a quarter of an hour; the budget's own event comes first.
	allowed.Store(true)
	d.server.Set(budget("web", "web", 1))
	if drained, err := d.end(); err != nil || drained.Evicted != 1 {
		t.Errorf("drained %+v, %v", drained, err)
	}
	if n := len(d.evictions()); n != 2 {
		t.Errorf("%d requests to evict one pod", n)
	}
}

func TestPodWithoutConsentBlocksAndIsNamed(t *testing.T) {
	t.Parallel()
	lonely := activitytest.Pod("lonely", bare)
	d := newDrain(t, activitytest.HeldNode(), lonely).start(evict)
	progress := d.reported()
	if len(progress.Blockers) != 1 || progress.Blockers[0].Reason != "NoController" || !strings.Contains(progress.Blockers[0].Message, "consent with force") {
		t.Errorf("the workflow got %+v", progress)
	}
	d.server.Delete(lonely)
	if _, err := d.end(); err != nil || len(d.evictions()) != 0 {
		t.Errorf("evictions %v, %v", d.evictions(), err)
	}
}

func TestDrainStopsBehindTheFence(t *testing.T) {
	replaced := activitytest.HeldNode()
	replaced.UID = "uid-2"
	for name, c := range map[string]struct {
		change func(*k8stest.Server)
		kind   string
	}{
		"mark removed": {func(s *k8stest.Server) { s.Set(activitytest.Node("n1", activitytest.Cordoned)) }, api.ErrorNotHolder},
		"mark of another run": {func(s *k8stest.Server) {
			s.Set(activitytest.Node("n1", activitytest.Cordoned, activitytest.Marked(activitytest.WorkflowID, "other")))
		}, api.ErrorNotHolder},
		"node deleted":          {func(s *k8stest.Server) { s.Delete(activitytest.HeldNode()) }, api.ErrorNodeGone},
		"node replaced":         {func(s *k8stest.Server) { s.Set(replaced) }, api.ErrorNodeReplaced},
		"pods may not be seen":  {func(s *k8stest.Server) { s.Deny("*", "*"); s.Disconnect() }, api.ErrorMissingPermission},
		"the worker stops":      {nil, api.ErrorWorkerStopping},
		"evicting is forbidden": {nil, api.ErrorMissingPermission},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web-1"))
			refusal := `{"kind":"Status","status":"Failure","message":"etcd","code":500}`
			if c.change == nil && c.kind == api.ErrorMissingPermission {
				d.server.Deny("create", "pods/eviction")
				refusal = k8stest.DeniedBody("create", "pods/eviction", "default")
			}
			d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/eviction") {
					k8stest.Respond(w, refusal)
					return true
				}
				return false
			}
			d.start(evict)
			d.untilAsked("web-1/eviction")
			switch {
			case c.change != nil:
				c.change(d.server)
			case c.kind == api.ErrorWorkerStopping:
				close(d.stop)
			}
			d.expectError(c.kind)
		})
	}
}

func TestDrainOfANodeThatIsNotHeldDoesNothing(t *testing.T) {
	d := newDrain(t, activitytest.Node("n1"), activitytest.Pod("web-1")).start(evict)
	d.expectError(api.ErrorNotHolder)
	if len(d.evictions()) != 0 {
		t.Errorf("evicted %v", d.evictions())
	}
}

func TestNodeThatEmptiesByItselfIsOnlyWatched(t *testing.T) {
	last := activitytest.Pod("web-1", bare)
	d := newDrain(t, activitytest.HeldNode(), last, activitytest.Pod("batch", succeeded)).start(spec.Drain{Mode: spec.ModeWait})
	d.untilAsked("/nodes")
	d.server.Delete(last)
	if drained, err := d.end(); err != nil || drained.Evicted != 0 || len(d.evictions()) != 0 {
		t.Errorf("drained %+v, %v, evictions %v", drained, err, d.evictions())
	}
}

func TestDrainGoesOnWhereAnEarlierAttemptStopped(t *testing.T) {
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web-1"))
	d.env.SetHeartbeatDetails(api.DrainProgress{Evicted: 4})
	if drained, err := d.start(evict).end(); err != nil || drained.Evicted != 5 {
		t.Errorf("drained %+v, %v", drained, err)
	}
}

func TestThrottlingHoldsAllDrainsBack(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web-1"))
	d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/eviction") && len(d.server.Requests("/eviction")) == 1 {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
			return true
		}
		return false
	}
	if _, err := d.start(evict).end(); err != nil {
		t.Fatal(err)
	}
	d.drains.Limiter.mu.Lock()
	defer d.drains.Limiter.mu.Unlock()
	if d.drains.Limiter.until.IsZero() {
		t.Error("nobody else was held back")
	}
}

func TestManyPodsAreEvictedOnceEach(t *testing.T) {
	objects := []k8stest.Object{activitytest.HeldNode()}
	for i := range 100 {
		objects = append(objects, activitytest.Pod(fmt.Sprintf("web-%03d", i)))
	}
	d := newDrain(t, objects...).start(evict)
	drained, err := d.end()
	if err != nil || drained.Evicted != 100 {
		t.Errorf("drained %+v, %v", drained, err)
	}
	times := map[string]int{}
	for _, name := range d.evictions() {
		if times[name]++; times[name] > 1 {
			t.Errorf("%s was evicted %d times", name, times[name])
		}
	}
}

func TestWaitForPodsEndsWhenTheChosenHaveCompleted(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("job-1", withLabel("app", "job")), activitytest.Pod("job-2", withLabel("app", "job"), succeeded), activitytest.Pod("web-1"))
	wait := func() error {
		d.env.RegisterActivity(d.drains.WaitForPods)
		_, err := d.env.ExecuteActivity(d.drains.WaitForPods, WaitInput{Node: "n1", UID: "uid-1", RunID: activitytest.RunID, PodSelector: "app=job", BlockedSignal: "drain-blocked"})
		return err
	}
	done := make(chan error, 1)
	go func() { done <- wait() }()
	progress := d.reported()
	if progress.Remaining != 1 || len(progress.Blockers) != 1 || progress.Blockers[0].Pod != "default/job-1" {
		t.Errorf("the workflow got %+v", progress)
	}
	d.server.Set(activitytest.Pod("job-1", withLabel("app", "job"), succeeded))
	if err := <-done; err != nil {
		t.Error(err)
	}
	d.server.Set(activitytest.Node("n1")) // which a watch shows a moment later
	err := wait()
	for began := time.Now(); err == nil && time.Since(began) < 20*time.Second; err = wait() {
	}
	if err == nil || !strings.Contains(err.Error(), api.ErrorNotHolder) {
		t.Errorf("error = %v", err)
	}
}
