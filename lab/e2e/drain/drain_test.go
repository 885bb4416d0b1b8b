package drain

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestPodsMayCompleteBeforeTheDrain(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Job(ns, "task", "worker-01", "1h")
	s.Deployment(ns, "web", 1, site.On("worker-01"))
	run := s.BeginWith("worker-01", `"waitForPodCompletion":{"podSelector":"app=task"}`)
	s.UntilStatus(run, "waiting for the job", func(status api.Status) bool {
		return status.Phase == api.WaitingForPods && strings.Contains(status.WaitingFor, "app=task")
	})
	completes := time.Now()
	undelay(s, s.One(ns, "task"))
	s.Until(run, api.Ready)
	var job *batchv1.Job
	s.Eventually("the job's controller has counted its pod", func() (err error) {
		if job, err = s.Kube.BatchV1().Jobs(ns).Get(s.Ctx, "task", metav1.GetOptions{}); err == nil && job.Status.CompletionTime == nil {
			err = fmt.Errorf("%+v", job.Status)
		}
		return err
	})
	if job.Status.Succeeded != 1 || job.Status.Failed > 0 {
		t.Errorf("the job did not complete by itself: %+v", job.Status)
	}
	for _, e := range s.Evictions(ns) {
		if e.At.Before(completes) {
			t.Errorf("pod %s was evicted %s before the job completed", e.Object.Name, completes.Sub(e.At))
		}
	}
}

func TestWaitingForPodsEndsAtItsTimeout(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "task", 1, site.On("worker-01"))
	pod := s.One(ns, "task")
	run := s.BeginWith("worker-01", `"waitForPodCompletion":{"podSelector":"app=task","timeout":"2s"}`)
	passed := s.Until(run, api.Ready).Transitions
	s.UntilGone(pod)
	waited := s.Entered(passed, api.WaitingForPods)
	if took := s.Entered(passed, api.Draining).Sub(waited); took < 2*time.Second {
		t.Errorf("it waited for %s, want 2 s: %+v", took, passed)
	}
	accepted, refused := answers(s, ns)
	if len(accepted) != 1 || len(refused) > 0 || accepted[0].Received.Sub(waited) < 2*time.Second {
		t.Errorf("evicted: %+v, refused: %+v; it waited since %s", accepted, refused, waited)
	}
	if deleted := s.Deletions(ns); len(deleted) > 0 {
		t.Errorf("deleted: %+v", deleted)
	}
}

func TestModeWaitLetsTheNodeEmptyByItself(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "web", 1, site.On("worker-01"))
	s.DaemonSet(ns, "agent")
	bare := s.Pod(ns, "bare", "worker-01")
	run := s.BeginWith("worker-01", `"drain":{"mode":"wait"}`)
	s.Until(run, api.Draining)
	_, err := s.Kube.AppsV1().Deployments(ns).Patch(s.Ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Eventually("only the bare pod is waited for", func() error {
		if left := s.PodsOn(ns, "worker-01"); len(left) > 2 {
			return fmt.Errorf("%d pods", len(left))
		}
		return nil
	})
	if phase := s.MustStatus(run).Phase; phase != api.Draining {
		t.Fatalf("the maintenance is %s while a pod is left", phase)
	}
	if err := s.Kube.CoreV1().Pods(ns).Delete(s.Ctx, bare.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Until(run, api.Ready)
	if tried := s.Evictions(ns); len(tried) > 0 {
		t.Errorf("evictions: %+v", tried)
	}
}

func TestModeExternalWaitsForWhoeverDrains(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "web", 1, site.On("worker-01"))
	pod := s.One(ns, "web")
	run := s.BeginWith("worker-01", `"drain":{"mode":"external"}`)
	s.UntilStatus(run, "waiting for the word", func(status api.Status) bool {
		return status.Phase == api.Draining && strings.Contains(status.WaitingFor, "drained")
	})
	s.Signal(run, api.MsgDrained, nil)
	s.Until(run, api.Ready)
	s.MustShow("worker-01", run.GetRunID(), api.Ready)
	s.MustStay(pod)
	if tried := s.Evictions(ns); len(tried) > 0 {
		t.Errorf("evictions: %+v", tried)
	}
}

func TestModeNoneLeavesThePodsAlone(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "web", 1, site.On("worker-01"))
	pod := s.One(ns, "web")
	run := s.BeginWith("worker-01", `"drain":{"mode":"none"}`)
	s.Until(run, api.Ready)
	s.MustShow("worker-01", run.GetRunID(), api.Ready)
	s.MustStay(pod)
	if tried := s.Evictions(ns); len(tried) > 0 {
		t.Errorf("evictions: %+v", tried)
	}
}

func TestSelectorsChooseBeforeConsentIsAsked(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	gpu := s.Pod(ns, "gpu", "worker-01", site.Using("example.com/gpu"))
	nic := s.Pod(ns, "nic", "worker-01", site.Using("example.com/nic"))
	s.Deployment(ns, "web", 1, site.On("worker-01"))
	web, bare := s.One(ns, "web"), s.Pod(ns, "bare", "worker-01", site.WithEmptyDir)

	// None of the others may block, though there is no consent to lose them.
	run := s.BeginWith("worker-01", `"drain":{"podSelector":"app=web"}`)
	s.Until(run, api.Ready)
	s.UntilGone(web)
	s.Done(run)
	s.Eventually("the replacement is there", func() error {
		if len(s.PodsOn(ns, "worker-01")) != 4 {
			return fmt.Errorf("pods %v", s.PodsOn(ns, "worker-01"))
		}
		return nil
	})
	for _, pod := range []*corev1.Pod{gpu, nic, bare} {
		s.MustStay(*pod)
	}

	// Filters are joined by OR, and with the selector by AND.
	run = s.BeginWith("worker-01", `"drain":{"force":true,"podSelector":"app!=web",
		"podEvictionFilters":[{"byResourceNameRegex":"/gpu$"},{"byResourceNameRegex":"^example.com/nic"}]}`)
	s.Until(run, api.Ready)
	s.UntilGone(*gpu)
	s.UntilGone(*nic)
	s.MustStay(*bare)
	s.MustStay(s.One(ns, "web"))
	s.Done(run)
	if accepted := s.Accepted(ns); len(accepted) != 3 {
		t.Errorf("evicted: %v", accepted)
	}
}

func TestLossNeedsConsent(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	before := s.Imprint("worker-01")
	bare := s.Pod(ns, "bare", "worker-01")
	s.Deployment(ns, "scratch", 1, site.On("worker-01"), site.WithEmptyDir)
	scratch := s.One(ns, "scratch")
	run := s.Begin("worker-01")
	status := s.UntilStatus(run, "blocked by both", func(status api.Status) bool {
		return status.Drain != nil && len(status.Drain.Blockers) == 2
	})
	for pod, want := range map[string][2]string{ns + "/bare": {"NoController", "force"}, ns + "/" + scratch.Name: {"LocalStorage", "deleteEmptyDir"}} {
		if !slices.ContainsFunc(status.Drain.Blockers, func(b api.Blocker) bool {
			return b.Pod == pod && b.Reason == want[0] && strings.Contains(b.Message, want[1])
		}) {
			t.Errorf("%s is not a blocker for want of %s: %+v", pod, want[1], status.Drain.Blockers)
		}
	}
	if !strings.Contains(status.WaitingFor, "force") || !strings.Contains(status.WaitingFor, "1 more") {
		t.Errorf("it waits for %q", status.WaitingFor)
	}
	s.Signal(run, api.MsgCancel, nil)
	s.Undone(run, "worker-01", before)
	s.MustStay(*bare)
	s.MustStay(scratch)

	run = s.BeginWith("worker-01", `"drain":{"force":true,"deleteEmptyDir":true}`)
	s.Until(run, api.Ready)
	s.UntilGone(*bare)
	s.UntilGone(scratch)
}

func TestPodsThatBelongToTheNodeStay(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.DaemonSet(ns, "agent")
	mirror := s.Pod(ns, "mirror", "worker-01", site.Annotated(corev1.MirrorPodAnnotationKey, "x"))
	s.Job(ns, "finished", "worker-01", "10ms")
	s.Eventually("the job's pod has finished", func() error {
		if phase := s.One(ns, "finished").Status.Phase; phase != corev1.PodSucceeded {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
	s.Budget(ns, "agent", site.LaneNodes)
	agents := s.PodsByApp(ns)["agent"]
	run := s.Begin("worker-01")
	s.Until(run, api.Ready)
	s.MustStay(*mirror)
	for uid := range agents {
		if _, there := s.PodsByApp(ns)["agent"][uid]; !there {
			t.Errorf("the pod of the daemon set on %s was evicted", agents[uid])
		}
	}
	for _, e := range s.Evictions(ns) {
		if !strings.HasPrefix(e.Object.Name, "finished-") {
			t.Errorf("eviction of %s", e.Object.Name)
		}
	}
}

func TestTheGracePeriodIsThePodsOwnUnlessAskedOtherwise(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	ns := s.Namespace()
	for node, want := range map[string]struct {
		fields string
		grace  int64
	}{
		"worker-01": {`"type":"planned"`, 30},
		"worker-02": {`"drain":{"gracePeriodSeconds":7}`, 7},
	} {
		s.Deployment(ns, node, 1, site.On(node), site.SlowToEnd("5m"))
		pod := s.One(ns, node)
		run := s.BeginWith(node, want.fields)
		s.Eventually("the pod is terminating", func() error {
			now, err := s.Kube.CoreV1().Pods(ns).Get(s.Ctx, pod.Name, metav1.GetOptions{})
			if err != nil || now.DeletionGracePeriodSeconds == nil {
				return fmt.Errorf("not yet: %v", err)
			}
			if got := *now.DeletionGracePeriodSeconds; got != want.grace {
				t.Errorf("the pod on %s gets %d s to end, want %d", node, got, want.grace)
			}
			return nil
		})
		if phase := s.MustStatus(run).Phase; phase != api.Draining {
			t.Errorf("the maintenance is %s while the pod is on its way out", phase)
		}
	}
}

func TestABudgetThatAllowsAgainIsNoticedAtOnce(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	run := s.Begin("worker-01")
	s.UntilStatus(run, "blocked by its budget", func(status api.Status) bool {
		return strings.Contains(status.WaitingFor, "budget web") && strings.Contains(status.WaitingFor, "allows 0")
	})
	refusedOften(s, ns)
	allowed := time.Now()
	s.Allow(ns, "web")
	s.Until(run, api.Ready)
	s.EvictedOnce(ns, 1)
	evictedAheadOfTime(s, ns, allowed)
}

// backoff is for how long a drain leaves a pod alone that was refused so many times, or came back.
func backoff(times int) time.Duration { return min(time.Second<<(times-1), 30*time.Second) }

// answers are the evictions in a namespace that were accepted and those that a budget refused, in the order in which they
// were asked for.
func answers(s *site.Site, ns string) (accepted, refused []site.Request) {
	s.Helper()
	all := s.Evictions(ns)
	slices.SortFunc(all, func(a, b site.Request) int { return a.Received.Compare(b.Received) })
	for _, e := range all {
		switch {
		case e.Status.Code < 300:
			accepted = append(accepted, e)
		case e.Status.Code == http.StatusTooManyRequests:
			refused = append(refused, e)
		}
	}
	return accepted, refused
}

// refusedOften waits until a pod was refused so often that the backoff alone would leave it alone for 16 s.
func refusedOften(s *site.Site, ns string) {
	s.Helper()
	s.Eventually("a pod is refused for the fifth time", func() error {
		_, refused := answers(s, ns)
		times := map[string]int{}
		for _, e := range refused {
			if times[e.Object.Name]++; times[e.Object.Name] == 5 {
				return nil
			}
		}
		return fmt.Errorf("refused %v", times)
	})
}

// evictedAheadOfTime checks that nothing was asked for earlier than the backoff says until a budget changed, and then before it
// was over.
func evictedAheadOfTime(s *site.Site, ns string, changed time.Time) {
	s.Helper()
	accepted, refused := answers(s, ns)
	var next time.Time
	times, again := map[string]int{}, map[string]time.Time{}
	for _, e := range refused {
		if !e.Received.Before(changed) {
			break
		}
		pod := e.Object.Name
		if e.Received.Before(again[pod]) {
			s.Errorf("refusal %d of pod %s came at %s, before %s", times[pod]+1, pod, e.Received, again[pod])
		}
		times[pod]++
		next = e.Received.Add(backoff(times[pod]))
		again[pod] = next
	}
	for _, e := range accepted {
		if !e.Received.Before(next) {
			s.Errorf("the budget changed at %s, pod %s was evicted at %s, and by the backoff alone at %s", changed, e.Object.Name, e.Received, next)
		}
	}
}

func TestSeveralBudgetsForOnePodAreNamed(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "web", 1, site.On("worker-01"), site.Labelled("tier", "front"))
	s.Budget(ns, "web", 0)
	s.BudgetOn(ns, "front", map[string]string{"tier": "front"}, 0)
	run := s.Begin("worker-01")
	status := s.UntilStatus(run, "blocked", func(status api.Status) bool { return status.Drain != nil && len(status.Drain.Blockers) > 0 })
	if b := status.Drain.Blockers[0]; b.Reason != "SeveralBudgets" || !strings.Contains(b.Message, "web") || !strings.Contains(b.Message, "front") {
		t.Errorf("blocker = %+v", b)
	}
	if err := s.Kube.PolicyV1().PodDisruptionBudgets(ns).Delete(s.Ctx, "front", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Until(run, api.Ready)
}

func TestPodsThatComeBackAreNotEvictedInALoop(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	// Its pods name the node themselves, so that no cordon keeps them away.
	s.Deployment(ns, "stubborn", 1, func(p *corev1.PodTemplateSpec) { p.Spec.NodeName = "worker-01" })
	// It keeps the node from being empty while one of the others is gone and the next not there yet.
	s.Guarded(ns, "anchor", "worker-01")
	run := s.Begin("worker-01")
	if b := s.BlockedBy(run, "ComesBack"); !strings.Contains(b.Message, "ReplicaSet stubborn-") {
		t.Errorf("blocker = %+v", b)
	}
	var accepted []site.Request
	s.Eventually("three pods are evicted", func() error {
		if accepted, _ = answers(s, ns); len(accepted) < 3 {
			return fmt.Errorf("%d", len(accepted))
		}
		return nil
	})
	// The first goes at once, and the next after one second, two, four.
	for n := 1; n < len(accepted); n++ {
		if gap := accepted[n].Received.Sub(accepted[n-1].Received); gap < backoff(n) {
			t.Errorf("eviction %d came %s after the one before, want %s", n+1, gap, backoff(n))
		}
	}
	s.Allow(ns, "anchor")
	_, err := s.Kube.AppsV1().Deployments(ns).Patch(s.Ctx, "stubborn", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Until(run, api.Ready)
}
