package drain

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/spec"
)

func withPriority(p int32) activitytest.PodOption {
	return func(pod *corev1.Pod) { pod.Spec.Priority = &p }
}

func withGrace(s int64) activitytest.PodOption {
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &s }
}

func ofDaemonSet(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: new(true)}}
}

func toleratesAll(p *corev1.Pod) {
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func withEmptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

func careful(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} }

var agent = &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent"}}

// order is what the server was asked to end, in order.
func (d *draining) order() string {
	var names []string
	for _, request := range d.server.Requests("") {
		parts := strings.Split(request, "/")
		switch {
		case strings.HasSuffix(request, "/eviction"):
			names = append(names, "evict:"+parts[len(parts)-2])
		case strings.HasPrefix(request, "deleted "):
			names = append(names, "delete:"+parts[1])
		}
	}
	return strings.Join(names, " ")
}

func plan(include []drainplan.PodType, tiers ...drainplan.Entry) spec.Drain {
	return spec.Drain{Mode: spec.ModeEvict, Plan: &spec.Plan{Tiers: tiers, Include: include, Static: spec.SkipStatic}}
}

func TestTiersLeaveOneAfterTheOther(t *testing.T) {
	d := newDrain(t, activitytest.HeldNode(), agent, activitytest.Pod("a-vital", withPriority(2000000000)), activitytest.Pod("b-db", withPriority(900), withLabel("app", "db")),
		activitytest.Pod("c-web", withPriority(900)), activitytest.Pod("d-agent", ofDaemonSet), activitytest.Pod("e-low", withPriority(-5)))
	drained, err := d.start(plan(drainplan.Types(),
		drainplan.Entry{PodType: drainplan.Default, PodPriority: 0},
		drainplan.Entry{PodType: drainplan.Default, PodPriority: 1000, PodSelector: "app=db"},
		drainplan.Entry{PodType: drainplan.Default, PodPriority: 1000},
	)).end()
	if err != nil {
		t.Fatal(err)
	}
	if got := d.order(); got != "evict:e-low evict:b-db evict:c-web evict:a-vital delete:d-agent grace own" {
		t.Errorf("order: %s", got)
	}
	if drained.Evicted != 4 || drained.Deleted != 1 || drained.Tier != drained.Tiers || len(drained.Targets) == 0 {
		t.Errorf("drained %+v", drained)
	}
	taints := d.server.Node("n1").Spec.Taints
	if !slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&k8s.MaintenanceTaint) }) {
		t.Errorf("taints %v", taints)
	}
}

func TestNodeIsNotTaintedForDefaultPodsOnly(t *testing.T) {
	d := newDrain(t, activitytest.HeldNode(), agent, activitytest.Pod("web"), activitytest.Pod("agent-1", ofDaemonSet)).start(plan([]drainplan.PodType{drainplan.Default}))
	drained, err := d.end()
	if err != nil || drained.Skipped != 1 || d.order() != "evict:web" || len(d.server.Node("n1").Spec.Taints) > 0 {
		t.Errorf("drained %+v, %v; %s", drained, err, d.order())
	}
}

func TestPodsThatStayAreReported(t *testing.T) {
	d := newDrain(t, activitytest.HeldNode(), agent, activitytest.Pod("agent-1", ofDaemonSet, toleratesAll), activitytest.Pod("static-1", static), activitytest.Pod("web")).start(plan(drainplan.Types()))
	drained, err := d.end()
	if err != nil {
		t.Fatal(err)
	}
	var stays []string
	for _, b := range drained.Stays {
		stays = append(stays, b.Pod+" "+b.Reason)
	}
	if got := strings.Join(stays, ", "); got != "default/agent-1 ToleratesTaint, default/static-1 StaticPod" || d.order() != "evict:web" {
		t.Errorf("stays: %s; it asked for %s", got, d.order())
	}
}

func TestPodsOfNamespacesThatAreNotDrainedStay(t *testing.T) {
	in := func(namespace string) activitytest.PodOption {
		return func(p *corev1.Pod) { p.Namespace = namespace }
	}
	for name, namespaces := range map[string]spec.Namespaces{
		"excluded": {Exclude: []string{"tools"}}, "not included": {Include: []string{"default", "apps"}},
	} {
		t.Run(name, func(t *testing.T) {
			drain := plan(drainplan.Types())
			drain.Namespaces, drain.Plan.Static = namespaces, spec.WaitForStatic
			d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web"), activitytest.Pod("stuck", bare, in("tools")),
				activitytest.Pod("static-1", static, in("tools"))).start(drain)
			drained, err := d.end()
			if err != nil || drained.Skipped != 2 || len(drained.Stays) != 2 || d.order() != "evict:web" {
				t.Fatalf("drained %+v, %v; %s", drained, err, d.order())
			}
			for _, b := range drained.Stays {
				if b.Reason != "Namespace" || !strings.HasPrefix(b.Pod, "tools/") || !strings.Contains(b.Message, "drain.namespaces") {
					t.Errorf("stays %+v", b)
				}
			}
		})
	}
}

func TestStaticPodsAreWaitedForWhereThatIsAsked(t *testing.T) {
	t.Parallel()
	stays := activitytest.Pod("static-1", static)
	d := newDrain(t, activitytest.HeldNode(), stays)
	in := plan(drainplan.Types())
	in.Plan.Static = spec.WaitForStatic
	d.start(in)
	if p := d.reported(); p.Remaining != 1 || p.Blockers[0].Reason != k8s.StaticPod {
		t.Errorf("the workflow got %+v", p)
	}
	d.server.Delete(stays)
	if _, err := d.end(); err != nil || d.order() != "" {
		t.Errorf("%v; it asked for %s", err, d.order())
	}
}

func TestDaemonSetPodsNeedConsentToLoseTheirData(t *testing.T) {
	t.Parallel()
	stored := activitytest.Pod("agent-1", ofDaemonSet, withEmptyDir)
	d := newDrain(t, activitytest.HeldNode(), agent, stored).start(plan(drainplan.Types()))
	if p := d.reported(); p.Blockers[0].Reason != k8s.LocalStorage || d.order() != "" {
		t.Errorf("the workflow got %+v", p)
	}
	d.server.Delete(stored)
	if _, err := d.end(); err != nil {
		t.Fatal(err)
	}
}

func TestLatePodOfAnEarlierTierGoesTooAndTheDrainDoesNotGoBack(t *testing.T) {
	t.Parallel()
	late, vital := activitytest.Pod("late", withPriority(1)), activitytest.Pod("vital", withPriority(2000000000), bare)
	d := newDrain(t, activitytest.HeldNode(), vital).start(plan([]drainplan.PodType{drainplan.Default}, drainplan.Entry{PodType: drainplan.Default, PodPriority: 10}))
	reached := d.reported().Tier
	d.server.Set(late)
	d.untilAsked("late/eviction")
	d.server.Delete(vital)
	drained, err := d.end()
	if err != nil || drained.Tier < reached || reached < 3 {
		t.Errorf("tier %d was reached, and it ended in %d: %v", reached, drained.Tier, err)
	}
}

func TestSkippedPodStays(t *testing.T) {
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web"), activitytest.Pod("stuck", bare))
	d.in = func(in *Input) { in.Skip = []string{"default/stuck"} }
	if drained, err := d.start(evict).end(); err != nil || drained.Skipped != 1 || d.order() != "evict:web" {
		t.Errorf("drained %+v, %v; %s", drained, err, d.order())
	}
}

func TestEscalationForcesAndConsentsToNothing(t *testing.T) {
	for name, c := range map[string]struct {
		force string
		want  string
	}{
		"bypassBudget": {spec.BypassBudget, "delete:slow grace own"},
		"kill":         {spec.Kill, "delete:slow grace 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lonely := activitytest.Pod("lonely", bare)
			d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("slow", careful), lonely)
			d.in = func(in *Input) { in.Force, in.Drain.ProtectedFor = c.force, spec.Duration(time.Hour) }
			d.start(evict)
			if p := d.reported(); len(p.Blockers) != 1 || p.Blockers[0].Reason != k8s.NoController {
				t.Errorf("the workflow got %+v", p)
			}
			if got := d.order(); got != c.want {
				t.Errorf("it asked for %s", got)
			}
			d.server.Delete(lonely)
			if drained, err := d.end(); err != nil || drained.Evicted != 0 || drained.Deleted != 1 {
				t.Errorf("drained %+v, %v", drained, err)
			}
		})
	}
}

func TestKillEndsPodsThatAreOnTheirWayOutOnce(t *testing.T) {
	leaving := activitytest.Pod("slow", terminating)
	leaving.DeletionGracePeriodSeconds = new(int64(600))
	hopeless := activitytest.Pod("stuck", terminating)
	hopeless.DeletionGracePeriodSeconds = new(int64(0))
	d := newDrain(t, activitytest.HeldNode(), leaving, hopeless)
	d.in = func(in *Input) { in.Force = spec.Kill }
	d.start(evict)
	d.untilAsked("DELETE /api/v1/namespaces/default/pods/slow")
	d.server.Delete(hopeless)
	if drained, err := d.end(); err != nil || drained.Evicted != 0 || d.order() != "delete:slow grace 0" {
		t.Errorf("drained %+v, %v; %s", drained, err, d.order())
	}
}

func TestKillIsRepeatedUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	leaving := activitytest.Pod("slow", terminating)
	leaving.DeletionGracePeriodSeconds = new(int64(600))
	d := newDrain(t, activitytest.HeldNode(), leaving)
	d.in = func(in *Input) { in.Force = spec.Kill }
	d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete || len(d.server.Requests("DELETE ")) > 2 {
			return false
		}
		k8stest.Respond(w, `{"kind":"Status","status":"Failure","message":"etcd","code":500}`)
		return true
	}
	if _, err := d.start(evict).end(); err != nil || len(d.server.Requests("DELETE ")) != 3 || d.order() != "delete:slow grace 0" {
		t.Errorf("%v; it asked for %s in %v", err, d.order(), d.server.Requests("DELETE "))
	}
}

func TestKillNeedsConsentForLeavingPodsToo(t *testing.T) {
	t.Parallel()
	var objects []k8stest.Object
	slow := func(name string, options ...activitytest.PodOption) {
		p := activitytest.Pod(name, append(options, terminating)...)
		p.DeletionGracePeriodSeconds = new(int64(600))
		objects = append(objects, p)
	}
	slow("a-web")
	slow("b-bare", bare)
	slow("c-stored", withEmptyDir)
	slow("d-later", withPriority(1000))
	d := newDrain(t, append(objects, activitytest.HeldNode())...)
	d.in = func(in *Input) { in.Force = spec.Kill }
	d.start(plan([]drainplan.PodType{drainplan.Default}, drainplan.Entry{PodType: drainplan.Default, PodPriority: 10}))
	d.untilAsked("DELETE /api/v1/namespaces/default/pods/a-web")
	for _, o := range objects[1:3] {
		d.server.Delete(o)
	}
	// With the first tier gone it is the last one's turn.
	d.untilAsked("DELETE /api/v1/namespaces/default/pods/d-later")
	if _, err := d.end(); err != nil || d.order() != "delete:a-web grace 0 delete:d-later grace 0" {
		t.Errorf("%v; it asked for %s", err, d.order())
	}
}

func TestPodWhoseNameIsAnothersIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web-1"))
	gone := false
	d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/eviction"):
			gone = true
			k8stest.Respond(w, `{"kind":"Status","status":"Failure","message":"the UID in the precondition does not match","reason":"Conflict","code":409}`)
		case gone && r.URL.Path == "/api/v1/namespaces/default/pods":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
		default:
			return false
		}
		return true
	}
	d.start(evict)
	d.reported()                // the watch still shows it
	time.Sleep(2 * time.Second) // that it is not asked for again has no event to wait for
	if n := len(d.evictions()); n != 1 {
		t.Errorf("%d evictions", n)
	}
	d.server.Delete(activitytest.Pod("web-1"))
	if _, err := d.end(); err != nil {
		t.Error(err)
	}
}

func TestVerdictWaitsForTheDaemonSet(t *testing.T) {
	d := newDrain(t, activitytest.HeldNode(), agent, activitytest.Pod("agent-1", ofDaemonSet, withEmptyDir), activitytest.Pod("web-1"))
	var asked atomic.Int32
	d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/daemonsets/agent") || asked.Add(1) > 1 {
			return false
		}
		k8stest.Respond(w, `{"kind":"Status","status":"Failure","message":"etcd","code":500}`)
		return true
	}
	if _, err := d.start(evict).end(); err == nil || activitytest.ErrorType(err) != "" || !strings.Contains(err.Error(), "DaemonSet default/agent") {
		t.Fatalf("error = %v", err)
	}
	if drained, err := d.start(evict).end(); err != nil || drained.Skipped != 1 {
		t.Errorf("drained %+v, %v", drained, err)
	}
}

func TestPodWhoseGraceNeedsTheTimeIsDeletedEarlyEnough(t *testing.T) {
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("slow", withGrace(3600)), activitytest.Pod("swift", withGrace(5)))
	at := time.Now().Add(30 * time.Minute)
	d.in = func(in *Input) { in.KillAt = &at }
	if _, err := d.start(evict).end(); err != nil {
		t.Fatal(err)
	}
	// Its hour would not end before the rung Kill: it goes now, with its whole hour. The other is evicted as usual.
	if got := d.order(); got != "delete:slow grace own evict:swift" && got != "evict:swift delete:slow grace own" {
		t.Errorf("it asked for %s", got)
	}
}

func TestWishNotToBeDisruptedHasADeadline(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("careful", careful))
	d.in = func(in *Input) { in.Drain.ProtectedFor = spec.Duration(12 * time.Second) }
	d.start(evict)
	p := d.reported()
	if p.Blockers[0].Reason != "DoNotDisrupt" || !strings.Contains(p.Blockers[0].Message, "left alone until") || d.order() != "" {
		t.Errorf("the workflow got %+v", p)
	}
	if _, err := d.end(); err != nil || d.order() != "evict:careful" {
		t.Errorf("%v; %s", err, d.order())
	}
}

// TestRungsEndTheWishNotToBeDisrupted, which is what people are told who do not want to wait.
func TestRungsEndTheWishNotToBeDisrupted(t *testing.T) {
	page, err := os.ReadFile("../../docs/tasks/troubleshoot.md")
	if err != nil {
		t.Fatal(err)
	}
	_, told, _ := strings.Cut(string(page), "| `DoNotDisrupt` |")
	told, _, _ = strings.Cut(told, "\n")
	for _, rung := range []string{spec.BypassBudget, spec.Kill} {
		t.Run(rung, func(t *testing.T) {
			t.Parallel()
			d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("careful", careful))
			d.in = func(in *Input) { in.Drain.ProtectedFor, in.Force = spec.Duration(time.Hour), rung }
			if _, err := d.start(evict).end(); err != nil || !strings.HasPrefix(d.order(), "delete:careful") {
				t.Errorf("%v; %s", err, d.order())
			}
			if !strings.Contains(told, "`"+rung+"`") {
				t.Errorf("of the rung %s the page says nothing:%s", rung, told)
			}
		})
	}
}

func TestStuckPodsOfADeadNodeAreIgnoredWhereThatIsAsked(t *testing.T) {
	dead := activitytest.Node("n1", activitytest.Cordoned, activitytest.Marked(activitytest.WorkflowID, activitytest.RunID), activitytest.Silent)
	gone := activitytest.Pod("gone", terminating)
	gone.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Second)}
	d := newDrain(t, dead, gone)
	in := evict
	in.OnNodeNotReady = spec.IgnoreStuck
	if _, err := d.start(in).end(); err != nil {
		t.Fatal(err)
	}
}

// The pod is late by two minutes: a drain that waits for three goes on waiting, and one that waits for one ends.
func TestAPodThatTakesTooLongToEndIsNotWaitedFor(t *testing.T) {
	for patience, waits := range map[time.Duration]bool{0: true, 3 * time.Minute: true, time.Minute: false} {
		t.Run(patience.String(), func(t *testing.T) {
			gone := activitytest.Pod("gone", terminating)
			gone.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-2 * time.Minute)}
			d := newDrain(t, activitytest.HeldNode(), gone)
			in := evict
			in.SkipWaitForDeleteTimeout = spec.Duration(patience)
			d.start(in)
			if waits {
				if p := d.reported(); p.Remaining != 1 {
					t.Errorf("the workflow got %+v", p)
				}
				d.server.Delete(gone)
			}
			if _, err := d.end(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestANodeThatSaysItIsNotReadyStillEndsItsPods(t *testing.T) {
	node := activitytest.Node("n1", activitytest.Cordoned, activitytest.Marked(activitytest.WorkflowID, activitytest.RunID), activitytest.NotReady)
	gone := activitytest.Pod("gone", terminating)
	gone.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-2 * time.Minute)}
	d := newDrain(t, node, gone, activitytest.Pod("web"))
	in := evict
	in.OnNodeNotReady = spec.IgnoreStuck
	d.start(in)
	d.untilAsked("/pods/web/eviction")
	select {
	case end := <-d.done:
		t.Fatalf("it ended before its pods: %+v", end)
	case p := <-d.blocked:
		if len(p.Blockers) == 0 || p.Blockers[0].Pod != "default/gone" || p.Remaining == 0 {
			t.Errorf("the workflow got %+v", p)
		}
	}
	d.server.Delete(gone)
	if _, err := d.end(); err != nil {
		t.Fatal(err)
	}
}

func TestRefusedPodsOfOneBudgetAreNotAllAsked(t *testing.T) {
	t.Parallel()
	objects := []k8stest.Object{activitytest.HeldNode(), budget("web", "web", 0)}
	for _, name := range []string{"a", "b"} {
		objects = append(objects, activitytest.Pod(name))
	}
	d := newDrain(t, objects...)
	d.server.Handle = refusing("a", "b", "c")
	d.start(evict)
	d.reported()
	// One that comes later is under a budget that is known to refuse.
	d.server.Set(activitytest.Pod("c"))
	p := d.reported()
	if p.Reasons["DisruptionBudget"] != 3 || len(d.server.Requests("/c/eviction")) > 0 {
		t.Errorf("reasons %v; it asked for %s", p.Reasons, d.order())
	}
	if b := p.Blockers[2]; len(b.Budgets) != 1 || b.Budgets[0].Name != "web" || b.Budgets[0].Desired != 2 || b.Owner != "ReplicaSet web" {
		t.Errorf("blocker %+v", b)
	}
	d.env.SetWorkerStopChannel(d.stop)
	close(d.stop)
	d.expectError(api.ErrorWorkerStopping)
}
