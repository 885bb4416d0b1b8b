package drain

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/spec"
)

func TestANodeThatDoesNotEmptyIsGivenBack(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	before := s.Imprint("worker-01")
	s.Guarded(ns, "web", "worker-01")
	pod := s.One(ns, "web")
	run := s.BeginWith("worker-01", `"drain":{"escalation":[{"after":"3s","do":"giveBack"}]}`)
	s.UntilStatus(run, "the first to have the slot", func(status api.Status) bool {
		return status.Slot != nil && status.Slot.GrantedAt != nil || status.Attempt == 2
	})
	next := s.Begin("worker-02")

	status := s.UntilStatus(run, "to be tried again", func(status api.Status) bool { return strings.Contains(status.WaitingFor, "next attempt") })
	if status.Phase != api.Pending || status.Attempt != 2 || status.Slot != nil {
		t.Errorf("given back it is %s, attempt %d, slot %+v", status.Phase, status.Attempt, status.Slot)
	}
	if given := status.Transitions[len(status.Transitions)-1].At; given.Sub(s.Entered(status.Transitions, api.Cordoning)) < 3*time.Second ||
		given.Before(s.Entered(status.Transitions, api.Draining)) {
		t.Errorf("given back at %s: %+v", given, status.Transitions)
	}
	s.Back("worker-01", before)
	s.Until(next, api.Ready)
	s.Allow(ns, "web")
	s.Always("the pod is left alone", 2*time.Second, func() error {
		if accepted := s.Accepted(ns); len(accepted) > 0 {
			return fmt.Errorf("evicted: %v", accepted)
		}
		return nil
	})
	s.MustStay(pod)
	s.Signal(run, api.MsgCancel, nil)
	s.Undone(run, "worker-01", before)
}

func TestANodeThatDoesNotEmptyFailsWhereAskedTo(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	before := s.Imprint("worker-01")
	s.Guarded(ns, "web", "worker-01")
	run := s.BeginWith("worker-01", `"drain":{"escalation":[{"after":"15s","do":"fail"}]}`)
	result := s.MustEnd(run, api.Failed)
	if !strings.Contains(result.Message, "15s") || !strings.Contains(result.Message, ns+"/web") || !strings.Contains(result.Message, "budget") {
		t.Errorf("it failed with %q, want the time, the pod and its budget", result.Message)
	}
	s.Back("worker-01", before)
	s.SlotFree("worker-01")
	if accepted := s.Accepted(ns); len(accepted) > 0 {
		t.Errorf("evicted: %v", accepted)
	}
}

func TestBypassBudgetDeletesWhatABudgetProtects(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	pod := s.One(ns, "web")
	run := s.BeginWith("worker-01", `"drain":{"escalation":[{"after":"15s","do":"bypassBudget"}]}`)
	s.RefusedOnce(ns)
	status := s.Until(run, api.Ready)
	s.UntilGone(pod)
	if accepted := s.Accepted(ns); len(accepted) > 0 {
		t.Errorf("evicted: %v, want it deleted", accepted)
	}
	deleted := s.Deletions(ns)
	if len(deleted) != 1 || deleted[0].Object.Name != pod.Name || deleted[0].Status.Code != http.StatusOK {
		t.Fatalf("deleted: %+v, want only %s", deleted, pod.Name)
	}
	if status.CordonedAt == nil || deleted[0].At.Sub(*status.CordonedAt) < 15*time.Second {
		t.Errorf("it was deleted at %s, before the rung's time; cordoned at %v", deleted[0].At, status.CordonedAt)
	}
	if len(status.Escalation) != 1 || status.Force != spec.BypassBudget {
		t.Fatalf("force %q, escalation %+v, want one rung", status.Force, status.Escalation)
	}
	if rung := status.Escalation[0]; rung.Do != spec.BypassBudget || !rung.Planned || rung.By != "" || !strings.Contains(rung.Why, "15s") {
		t.Errorf("rung taken: %+v", rung)
	}
	events := s.NodeEvents("worker-01", "MaintenanceEscalated")
	if len(events) != 1 || events[0].Type != corev1.EventTypeWarning || !strings.Contains(events[0].Message, spec.BypassBudget) {
		t.Errorf("events on the node: %+v", events)
	}
}

func TestEscalateTakesARungAtOnce(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	pod := s.One(ns, "web")
	run := s.Begin("worker-01")
	s.RefusedOnce(ns)
	s.Exits(s.Drydock("escalate", "worker-01", "--do", "bypassBudget", "--comment", "team web agrees"), 2, "--yes")
	s.Exits(s.Drydock("escalate", "worker-01", "--do", "bypassBudget", "--yes"), 2, "--comment")
	s.MustStay(pod)
	s.Exits(s.Drydock("escalate", "worker-01", "--do", "bypassBudget", "--comment", "team web agrees", "--yes"), 0, "worker-01")
	// No rung of the plan comes within the hour.
	s.Eventually("the pod is deleted", func() error {
		if deleted := s.Deletions(ns); len(deleted) != 1 || deleted[0].Object.Name != pod.Name {
			return fmt.Errorf("deleted: %+v", deleted)
		}
		return nil
	})
	status := s.Until(run, api.Ready)
	said := s.Received(run, api.MsgEscalate, 1)
	if len(status.Escalation) != 1 || said.By == "" {
		t.Fatalf("escalation %+v, message %+v", status.Escalation, said)
	}
	if rung := status.Escalation[0]; rung.Do != spec.BypassBudget || rung.By != said.By || rung.Why != "team web agrees" || rung.Planned {
		t.Errorf("rung taken: %+v, by %s", rung, said.By)
	}
}

func TestASkippedPodStaysAndIsNotWaitedFor(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	s.Deployment(ns, "other", 1, site.On("worker-01"))
	pod, other := s.One(ns, "web"), s.One(ns, "other")
	run := s.Begin("worker-01")
	s.RefusedOnce(ns)
	s.Exits(s.Drydock("drain", "skip", "worker-01", ns+"/"+pod.Name, "--comment", "may be lost"), 0, "stays")
	status := s.Until(run, api.Ready)
	s.UntilGone(other)
	s.MustStay(pod)
	if !slices.Equal(status.SkippedPods, []string{ns + "/" + pod.Name}) {
		t.Errorf("skipped: %v", status.SkippedPods)
	}
	if said := s.Received(run, api.MsgSkipPod, 1); said.Comment != "may be lost" || said.By == "" {
		t.Errorf("recorded: %+v", said)
	}
	if deleted := s.Deletions(ns); len(deleted) > 0 {
		t.Errorf("deleted: %+v", deleted)
	}
}

func TestRetryNowEndsThePauseAfterANodeWasGivenBack(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	// The next attempt has to end within the same time.
	run := s.BeginWith("worker-01", `"drain":{"escalation":[{"after":"15s","do":"giveBack"}]}`)
	status := s.UntilStatus(run, "given back", func(status api.Status) bool { return status.NextAttemptAt != nil })
	next := *status.NextAttemptAt
	if status.Phase != api.Pending || time.Until(*status.NextAttemptAt) < time.Minute {
		t.Errorf("given back it is %s, next attempt at %s", status.Phase, status.NextAttemptAt)
	}
	s.MustBeFree("worker-01")
	s.Allow(ns, "web")
	s.Exits(s.Drydock("drain", "retry", "worker-01", "--comment", "the budget is mended"), 0, "worker-01")
	status = s.Until(run, api.Ready)
	if status.Slot == nil || !status.Slot.GrantedAt.Before(next) || !status.CordonedAt.Before(next) {
		t.Errorf("slot %+v, cordoned at %s; the pause was until %s", status.Slot, status.CordonedAt, next)
	}
	if status.Attempt != 2 || status.NextAttemptAt != nil || len(status.Escalation) > 0 {
		t.Errorf("attempt %d, next at %v, escalation %+v", status.Attempt, status.NextAttemptAt, status.Escalation)
	}
	s.MustShow("worker-01", run.GetRunID(), api.Ready)
}

func TestNoRungConsentsToTheLossOfABarePod(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	bare := s.Pod(ns, "bare", "worker-01")
	// Left to itself it would outlast the test.
	s.Guarded(ns, "web", "worker-01", site.SlowToEnd("3m"))
	web := s.One(ns, "web")
	run := s.BeginWith("worker-01", `"drain":{"escalation":[{"after":"3s","do":"kill"}]}`)
	s.UntilStatus(run, "killing", func(status api.Status) bool { return status.Force == spec.Kill })
	s.UntilGone(web)
	s.Eventually("the bare pod is all that blocks", func() error {
		if drain := s.Shown("worker-01").Drain; drain == nil || len(drain.Blockers) != 1 || drain.Remaining != 1 ||
			drain.Blockers[0].Pod != ns+"/bare" || drain.Blockers[0].Reason != "NoController" {
			return fmt.Errorf("drain = %+v", drain)
		}
		return nil
	})
	s.Always("the bare pod is left alone", 2*time.Second, func() error {
		s.MustStay(*bare)
		if phase := s.MustStatus(run).Phase; phase != api.Draining {
			return errors.New(string(phase))
		}
		return nil
	})
	for _, r := range slices.Concat(s.Evictions(ns), s.Deletions(ns)) {
		if r.Object.Name == bare.Name {
			t.Errorf("the bare pod was to end: %+v", r)
		}
	}
}

func TestAnEvictedPodSaysWhy(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "web", 1, site.On("worker-01"))
	pod := s.One(ns, "web")
	s.Until(s.BeginWith("worker-01", `"reason":"kernel 6.12","ticket":"OPS-7"`), api.Ready)
	s.Eventually("the pod has an Event", func() error {
		list, err := s.Kube.CoreV1().Events(ns).List(s.Ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Pod,involvedObject.name=" + pod.Name + ",reason=EvictedForMaintenance",
		})
		if err != nil || len(list.Items) == 0 {
			return fmt.Errorf("it has none: %v", err)
		}
		e := list.Items[0]
		if len(list.Items) > 1 || e.InvolvedObject.UID != pod.UID ||
			!strings.Contains(e.Message, "kernel 6.12") || !strings.Contains(e.Message, "OPS-7") || !strings.Contains(e.Message, "worker-01") {
			t.Errorf("events: %+v", list.Items)
		}
		return nil
	})
}

func TestABlockerIsShownAtOnceWithItsBudget(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	pod := s.One(ns, "web")
	run := s.Begin("worker-01")
	s.RefusedOnce(ns)
	var blocker api.Blocker
	s.Eventually("the command line names the blocker with its budget's numbers", func() error {
		drain := s.Shown("worker-01").Drain
		if drain == nil || len(drain.Blockers) != 1 || len(drain.Blockers[0].Budgets) != 1 {
			return fmt.Errorf("drain = %+v", drain)
		}
		blocker = drain.Blockers[0]
		return nil
	})
	if took := time.Since(s.Evictions(ns)[0].At); took > 25*time.Second {
		t.Errorf("it was shown %s after the first refusal, and the longest backoff is 30 s", took)
	} else {
		t.Logf("shown %s after the first refusal", took)
	}
	if blocker.Pod != ns+"/"+pod.Name || blocker.Reason != "DisruptionBudget" || blocker.Budget != "web" ||
		!strings.HasPrefix(blocker.Owner, "ReplicaSet web-") || !strings.Contains(blocker.Message, "allows 0") {
		t.Errorf("blocker = %+v", blocker)
	}
	if b := blocker.Budgets[0]; b.Name != "web" || b.Allowed != 0 || b.Healthy != 1 || b.Desired != 1 || b.Pods != 1 {
		t.Errorf("budget = %+v", b)
	}
	blockedPods(s, "1")
	s.Allow(ns, "web")
	s.Until(run, api.Ready)
	blockedPods(s, "0")
}

// blockedPods waits until the worker's metrics say how many pods a budget keeps on their nodes.
func blockedPods(s *site.Site, want string) {
	s.Helper()
	s.Eventually("the metrics tell of "+want+" blocked pods", func() error {
		_, body := s.HTTP(http.MethodGet, s.Worker.URL+"/metrics", "")
		_, rest, _ := strings.Cut(body, `drydock_drain_blocked_pods{reason="DisruptionBudget"} `)
		if count, _, _ := strings.Cut(rest, "\n"); count != want {
			return fmt.Errorf("it is %q", count)
		}
		return nil
	})
}
