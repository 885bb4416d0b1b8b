package maintenance

import (
	"encoding/json"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/preflight"
)

// preflightOf runs the command line's preflight of a node, and checks its exit status.
func preflightOf(s *site.Site, node string, status int, flags ...string) preflight.Report {
	s.Helper()
	r := s.Drydock(append([]string{"preflight", node, "-o", "json"}, flags...)...)
	if r.Status != status {
		s.Fatalf("exit status %d, want %d\n%s", r.Status, status, r.Out())
	}
	var reports []preflight.Report
	if err := json.Unmarshal([]byte(r.Stdout), &reports); err != nil || len(reports) != 1 {
		s.Fatalf("%v\n%s", err, r.Out())
	}
	return reports[0]
}

// rowOf finds the row of the pod whose name begins so.
func rowOf(s *site.Site, report preflight.Report, ns, name string) preflight.Pod {
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
func problem(s *site.Site, report preflight.Report, code preflight.Code, text string) {
	s.Helper()
	for _, p := range report.Problems {
		if p.Code == code && strings.Contains(p.String(), text) {
			return
		}
	}
	s.Errorf("no problem %s with %q: %+v", code, text, report.Problems)
}

// wrote are the requests of the worker that could have changed anything but the workflow's own questions.
func wrote(s *site.Site) []site.Request {
	s.Helper()
	return s.Requests(`"verb"`, func(r site.Request) bool {
		switch r.Verb {
		case "get", "list", "watch":
			return false
		}
		// The API server answers these without storing anything.
		return r.Object.Resource != "selfsubjectaccessreviews"
	})
}

func TestPreflightTellsWhatADrainWouldMeet(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "web", 2, site.On("worker-01"), site.Labelled("tier", "front"))
	s.DaemonSet(ns, "agent")
	s.Pod(ns, "bare", "worker-01")
	s.Deployment(ns, "scratch", 1, site.On("worker-01"), site.WithEmptyDir)
	s.Guarded(ns, "strict", "worker-01")
	s.Deployment(ns, "twice", 2, site.On("worker-01"))
	s.Budget(ns, "twice", 1)
	s.BudgetOn(ns, "twice-too", map[string]string{"app": "twice"}, 1)
	s.Deployment(ns, "shy", 1, site.On("worker-01"), site.Annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"))
	before := s.Imprint("worker-01")

	report := preflightOf(s, "worker-01", 5)
	for name, want := range map[string]preflight.Action{
		"web": preflight.Evict, "agent": preflight.Skip, "bare": preflight.Refuse, "scratch": preflight.Refuse,
		"strict": preflight.Evict, "twice": preflight.Evict, "shy": preflight.Evict,
	} {
		if got := rowOf(s, report, ns, name); got.Action != want {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
	problem(s, report, preflight.MissingConsent, ns+"/bare")
	problem(s, report, preflight.MissingConsent, "deleteEmptyDir")
	problem(s, report, preflight.ImpossibleBudget, ns+"/strict")
	problem(s, report, preflight.OverlappingBudget, ns+"/twice-too")
	if n := report.Counts[preflight.Refuse]; n != 2 {
		t.Errorf("%d pods are refused, want 2", n)
	}
	table := s.Drydock("preflight", "worker-01")
	s.Exits(table, 5, "would stop a drain", ns+"/bare", "refuse", "impossible", "safe-to-evict=false", "Room:")

	consented := preflightOf(s, "worker-01", 5, "--force", "--delete-emptydir-data")
	if consented.Counts[preflight.Refuse] != 0 || consented.Has(preflight.MissingConsent) {
		t.Errorf("with consent: %+v", consented.Problems)
	}
	chosen := preflightOf(s, "worker-01", 0, "--pod-selector", "tier=front")
	if chosen.Counts[preflight.Evict] != 2 {
		t.Errorf("of the selected pods: %+v", chosen.Counts)
	}
	bypassed := preflightOf(s, "worker-01", 0, "--force", "--delete-emptydir-data", "--escalation", "10m=bypassBudget", "--escalation", "20m=fail")
	if len(bypassed.Warnings) == 0 {
		t.Error("a budget that is bypassed is not even a warning")
	}

	if after := s.Imprint("worker-01"); after != before {
		t.Errorf("the node was %s and is %s", before, after)
	}
	if wrote := wrote(s); len(wrote) > 0 {
		t.Errorf("the worker wrote: %+v", wrote)
	}
}

func TestPreflightFromTheTemporalCommandLine(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Pod(ns, "bare", "worker-01")
	run := preflightAs(s, `{"node":"worker-01","drain":{"force":true}}`)
	var report preflight.Report
	if err := run.Get(s.Ctx, &report); err != nil || report.ProblemCount() > 0 || report.Counts[preflight.Evict] != 1 {
		t.Errorf("%v, %+v", err, report)
	}
	run = preflightAs(s, `{"node":"worker-1"}`)
	if err := run.Get(s.Ctx, &report); err != nil {
		t.Fatal(err)
	}
	problem(s, report, preflight.NodeMissing, "worker-1")
	s.Exits(s.Drydock("preflight", "worker-1"), 1, `node "worker-1" does not exist`)
	s.Refused(preflightAs(s, `{"node":"worker-01","drain":{"mod":"evict"}}`), "drain.mod", "unknown")
	s.Refused(preflightAs(s, `{"node":"worker-01","together":["no/node"]}`), "together[0]")
}

func preflightAs(s *site.Site, input string) client.WorkflowRun {
	s.Helper()
	run, err := s.Temporal.ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{
		TaskQueue: api.TaskQueue(s.Cluster, "drydock"),
	}, api.PreflightType, json.RawMessage(input))
	if err != nil {
		s.Fatal(err)
	}
	return run
}

func TestPreflightSeesWhetherTheOtherNodesHaveRoom(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	others := []string{"worker-01", "worker-02", "worker-03"}
	for _, name := range others {
		s.PatchNode(name, `{"metadata":{"labels":{"e2e-room":"here"}}}`)
		s.Cleanup(func() { s.PatchNode(name, `{"metadata":{"labels":{"e2e-room":null}}}`) })
	}
	huge := func(t *corev1.PodTemplateSpec) {
		t.Spec.NodeSelector = map[string]string{"e2e-room": "here"}
		t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20")}
	}
	s.Deployment(ns, "huge", 1, huge)
	node := s.One(ns, "huge").Spec.NodeName
	if report := preflightOf(s, node, 0); report.Room == nil || report.Room.Pods == 0 || len(report.Room.Unplaced) > 0 {
		t.Errorf("with room: %+v", report.Room)
	}
	s.Deployment(ns, "more", 2, huge)
	report := preflightOf(s, node, 5)
	problem(s, report, preflight.NoRoom, "cpu (20)")
	s.Exits(s.Drydock("preflight", "--selector", "e2e-room=here"), 5, "worker-01: ", "worker-03: ", "fits on none of the 17 other nodes")
}

func TestPreflightNamesAMissingPermission(t *testing.T) {
	s := site.Prepare(t, "")
	full := s.Options.Kubeconfig
	s.Options.Kubeconfig = s.Account(
		site.Rule("", "nodes", "get", "list", "watch", "patch"), site.Rule("", "pods", "get", "list", "watch"),
		site.Rule("", "events", "create"), site.Rule("apps", "daemonsets", "get"),
	)
	s.StartWorker()
	s.Options.Kubeconfig = full
	report := preflightOf(s, "worker-01", 5)
	problem(s, report, preflight.MissingPermission, "create pods/eviction in the core API group")
	problem(s, report, preflight.MissingPermission, "watch poddisruptionbudgets in API group policy")

	_, err := s.End(s.BeginWith("worker-01", `"preflight":"fail"`))
	if err == nil || !strings.Contains(err.Error(), "pods/eviction") {
		t.Errorf("it ended with %v", err)
	}
}

func TestAMaintenanceFailsOnItsPreflight(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Pod(ns, "bare", "worker-01")
	before := s.Imprint("worker-01")
	_, err := s.End(s.BeginWith("worker-01", `"preflight":"fail"`))
	if err == nil || !strings.Contains(err.Error(), api.ErrorPreflightFailed) || !strings.Contains(err.Error(), ns+"/bare") {
		t.Errorf("it ended with %v", err)
	}
	if after := s.Imprint("worker-01"); after != before {
		t.Errorf("the node was %s and is %s", before, after)
	}
	run := s.BeginWith("worker-01", `"preflight":"fail","drain":{"force":true}`)
	s.Until(run, api.Ready)
	s.Done(run)
}

func TestAMaintenanceWaitsForItsPreflight(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	bare := s.Pod(ns, "bare", "worker-01")
	run := s.BeginWith("worker-01", `"preflight":"wait"`)
	s.UntilStatus(run, "waiting for the bare pod", func(status api.Status) bool {
		return status.Phase == api.Pending && strings.Contains(status.WaitingFor, ns+"/bare")
	})
	s.Exits(s.Drydock("status", "worker-01"), 0, ns+"/bare")
	if err := s.Kube.CoreV1().Pods(ns).Delete(s.Ctx, bare.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	s.Until(run, api.Ready)
	s.Done(run)

	s.Pod(ns, "another", "worker-02")
	run = s.BeginWith("worker-02", `"preflight":"wait"`)
	s.UntilStatus(run, "waiting for the bare pod", func(status api.Status) bool {
		return strings.Contains(status.WaitingFor, ns+"/another")
	})
	s.Signal(run, api.MsgCancel, nil)
	s.MustEnd(run, api.Cancelled)
	if wrote := s.Requests(`worker-02`, func(r site.Request) bool { return r.Object.Resource == "nodes" && r.Verb == "patch" }); len(wrote) > 0 {
		t.Errorf("the worker touched the node: %+v", wrote)
	}
}
