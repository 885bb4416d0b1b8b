package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/preflight"
)

// preflightOf runs the command line's preflight of a node, and checks its exit status.
func (s *site) preflightOf(node string, status int, flags ...string) preflight.Report {
	s.Helper()
	r := s.drydock(append([]string{"preflight", node, "-o", "json"}, flags...)...)
	if r.status != status {
		s.Fatalf("exit status %d, want %d\n%s", r.status, status, r.out())
	}
	var reports []preflight.Report
	if err := json.Unmarshal([]byte(r.stdout), &reports); err != nil || len(reports) != 1 {
		s.Fatalf("%v\n%s", err, r.out())
	}
	return reports[0]
}

// rowOf finds the row of the pod whose name begins so.
func (s *site) rowOf(report preflight.Report, ns, name string) preflight.Pod {
	s.Helper()
	for _, p := range report.Pods {
		if strings.HasPrefix(p.Pod, ns+"/"+name) {
			return p
		}
	}
	s.Fatalf("there is no row of %s/%s: %+v", ns, name, report.Pods)
	return preflight.Pod{}
}

// problem checks that a problem of a kind is named, with a text in it.
func (s *site) problem(report preflight.Report, code preflight.Code, text string) {
	s.Helper()
	for _, p := range report.Problems {
		if p.Code == code && strings.Contains(p.String(), text) {
			return
		}
	}
	s.Errorf("no problem %s with %q: %+v", code, text, report.Problems)
}

// wrote are the requests of the worker that could have changed anything but the workflow's own questions.
func (s *site) wrote() []request {
	s.Helper()
	return s.requests(`"verb"`, func(r request) bool {
		switch r.Verb {
		case "get", "list", "watch":
			return false
		}
		// The API server answers these without storing anything.
		return r.Object.Resource != "selfsubjectaccessreviews"
	})
}

func TestPreflightTellsWhatADrainWouldMeet(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.deployment(ns, "web", 2, on("worker-01"), labelled("tier", "front"))
	s.daemonSet(ns, "agent")
	s.pod(ns, "bare", "worker-01")
	s.deployment(ns, "scratch", 1, on("worker-01"), withEmptyDir)
	s.guarded(ns, "strict", "worker-01")
	s.deployment(ns, "twice", 2, on("worker-01"))
	s.budget(ns, "twice", 1)
	s.budgetOn(ns, "twice-too", map[string]string{"app": "twice"}, 1)
	s.deployment(ns, "shy", 1, on("worker-01"), annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"))
	before := s.imprint("worker-01")

	report := s.preflightOf("worker-01", 5)
	for name, want := range map[string]preflight.Action{
		"web": preflight.Evict, "agent": preflight.Skip, "bare": preflight.Refuse, "scratch": preflight.Refuse,
		"strict": preflight.Evict, "twice": preflight.Evict, "shy": preflight.Evict,
	} {
		if got := s.rowOf(report, ns, name); got.Action != want {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
	s.problem(report, preflight.MissingConsent, ns+"/bare")
	s.problem(report, preflight.MissingConsent, "deleteEmptyDir")
	s.problem(report, preflight.ImpossibleBudget, ns+"/strict")
	s.problem(report, preflight.OverlappingBudget, ns+"/twice-too")
	if n := report.Counts[preflight.Refuse]; n != 2 {
		t.Errorf("%d pods are refused, want 2", n)
	}
	table := s.drydock("preflight", "worker-01")
	s.exits(table, 5, "would stop a drain", ns+"/bare", "refuse", "impossible", "safe-to-evict=false", "Room:")

	consented := s.preflightOf("worker-01", 5, "--force", "--delete-emptydir-data")
	if consented.Counts[preflight.Refuse] != 0 || consented.Has(preflight.MissingConsent) {
		t.Errorf("with consent: %+v", consented.Problems)
	}
	chosen := s.preflightOf("worker-01", 0, "--pod-selector", "tier=front")
	if chosen.Counts[preflight.Evict] != 2 {
		t.Errorf("of the selected pods: %+v", chosen.Counts)
	}
	bypassed := s.preflightOf("worker-01", 0, "--force", "--delete-emptydir-data", "--escalation", "10m=bypassBudget", "--escalation", "20m=fail")
	if len(bypassed.Warnings) == 0 {
		t.Error("a budget that is bypassed is not even a warning")
	}

	if after := s.imprint("worker-01"); after != before {
		t.Errorf("the node was %s and is %s", before, after)
	}
	if wrote := s.wrote(); len(wrote) > 0 {
		t.Errorf("the worker wrote: %+v", wrote)
	}
}

func TestPreflightFromTheTemporalCommandLine(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.pod(ns, "bare", "worker-01")
	run := s.preflightAs(`{"node":"worker-01","drain":{"force":true}}`)
	var report preflight.Report
	if err := run.Get(s.ctx, &report); err != nil || report.ProblemCount() > 0 || report.Counts[preflight.Evict] != 1 {
		t.Errorf("%v, %+v", err, report)
	}
	run = s.preflightAs(`{"node":"worker-1"}`)
	if err := run.Get(s.ctx, &report); err != nil {
		t.Fatal(err)
	}
	s.problem(report, preflight.NodeMissing, "worker-1")
	s.exits(s.drydock("preflight", "worker-1"), 1, `node "worker-1" does not exist`)
	s.refused(s.preflightAs(`{"node":"worker-01","drain":{"mod":"evict"}}`), "drain.mod", "unknown")
	s.refused(s.preflightAs(`{"node":"worker-01","together":["no/node"]}`), "together[0]")
}

func (s *site) preflightAs(input string) client.WorkflowRun {
	s.Helper()
	run, err := s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{
		TaskQueue: api.TaskQueue(s.cluster, "drydock"),
	}, api.PreflightType, json.RawMessage(input))
	if err != nil {
		s.Fatal(err)
	}
	return run
}

func TestPreflightSeesWhetherTheOtherNodesHaveRoom(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	others := []string{"worker-01", "worker-02", "worker-03"}
	for _, name := range others {
		s.patchNode(name, `{"metadata":{"labels":{"e2e-room":"here"}}}`)
		s.Cleanup(func() { s.patchNode(name, `{"metadata":{"labels":{"e2e-room":null}}}`) })
	}
	huge := func(t *corev1.PodTemplateSpec) {
		t.Spec.NodeSelector = map[string]string{"e2e-room": "here"}
		t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20")}
	}
	s.deployment(ns, "huge", 1, huge)
	node := s.one(ns, "huge").Spec.NodeName
	if report := s.preflightOf(node, 0); report.Room == nil || report.Room.Pods == 0 || len(report.Room.Unplaced) > 0 {
		t.Errorf("with room: %+v", report.Room)
	}
	s.deployment(ns, "more", 2, huge)
	report := s.preflightOf(node, 5)
	s.problem(report, preflight.NoRoom, "cpu (20)")
	s.exits(s.drydock("preflight", "--selector", "e2e-room=here"), 5, "worker-01: ", "worker-03: ", "fits on none of the 17 other nodes")
}

func TestPreflightNamesAMissingPermission(t *testing.T) {
	s := prepareSite(t, "")
	full := s.options.Kubeconfig
	s.options.Kubeconfig = s.account(
		rule("", "nodes", "get", "list", "watch", "patch"), rule("", "pods", "get", "list", "watch"),
		rule("", "events", "create"), rule("apps", "daemonsets", "get"),
	)
	s.startWorker()
	s.options.Kubeconfig = full
	report := s.preflightOf("worker-01", 5)
	s.problem(report, preflight.MissingPermission, "create pods/eviction in the core API group")
	s.problem(report, preflight.MissingPermission, "watch poddisruptionbudgets in API group policy")

	_, err := s.end(s.beginWith("worker-01", `"preflight":"fail"`))
	if err == nil || !strings.Contains(err.Error(), "pods/eviction") {
		t.Errorf("it ended with %v", err)
	}
}

func TestAMaintenanceFailsOnItsPreflight(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.pod(ns, "bare", "worker-01")
	before := s.imprint("worker-01")
	_, err := s.end(s.beginWith("worker-01", `"preflight":"fail"`))
	if err == nil || !strings.Contains(err.Error(), api.ErrorPreflightFailed) || !strings.Contains(err.Error(), ns+"/bare") {
		t.Errorf("it ended with %v", err)
	}
	if after := s.imprint("worker-01"); after != before {
		t.Errorf("the node was %s and is %s", before, after)
	}
	run := s.beginWith("worker-01", `"preflight":"fail","drain":{"force":true}`)
	s.until(run, api.Ready)
	s.done(run)
}

func TestAMaintenanceWaitsForItsPreflight(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	bare := s.pod(ns, "bare", "worker-01")
	run := s.beginWith("worker-01", `"preflight":"wait"`)
	s.untilStatus(run, "waiting for the bare pod", func(status api.Status) bool {
		return status.Phase == api.Pending && strings.Contains(status.WaitingFor, ns+"/bare")
	})
	s.exits(s.drydock("status", "worker-01"), 0, ns+"/bare")
	if err := s.kube.CoreV1().Pods(ns).Delete(s.ctx, bare.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	s.until(run, api.Ready)
	s.done(run)

	s.pod(ns, "another", "worker-02")
	run = s.beginWith("worker-02", `"preflight":"wait"`)
	s.untilStatus(run, "waiting for the bare pod", func(status api.Status) bool {
		return strings.Contains(status.WaitingFor, ns+"/another")
	})
	s.signal(run, api.MsgCancel, nil)
	s.mustEnd(run, api.Cancelled)
	if wrote := s.requests(`worker-02`, func(r request) bool { return r.Object.Resource == "nodes" && r.Verb == "patch" }); len(wrote) > 0 {
		t.Errorf("the worker touched the node: %+v", wrote)
	}
}
