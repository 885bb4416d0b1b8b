package trust

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestAMissingPermissionFailsAtOnceAndIsNamed(t *testing.T) {
	s := site.Prepare(t, "")
	s.Options.Kubeconfig = s.Account(
		site.Rule("", "nodes", "get", "list", "watch", "patch"), site.Rule("", "pods", "get", "list", "watch"),
		site.Rule("", "events", "create"), site.Rule("apps", "daemonsets", "get"), site.Rule("policy", "poddisruptionbudgets", "get", "list", "watch"),
	)
	s.StartWorker()
	ns := s.Namespace()
	before := s.Imprint("worker-01")
	s.Deployment(ns, "web", 2, site.On("worker-01"))
	run := s.Begin("worker-01")
	_, err := s.End(run)
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.Type() != api.ErrorMissingPermission || !strings.Contains(failed.Message(), "pods/eviction") {
		t.Errorf("it ended with %v, want %s that names pods/eviction", err, api.ErrorMissingPermission)
	}
	asked := map[string]bool{}
	for _, e := range s.Evictions(ns) {
		if e.Status.Code != http.StatusForbidden || asked[e.Object.Name] {
			t.Errorf("after %v: %+v", asked, e)
		}
		asked[e.Object.Name] = true
	}
	if len(asked) == 0 {
		t.Error("no eviction was asked for")
	}
	s.Back("worker-01", before)
	s.SlotFree("worker-01")
}

// What the worker lacks a permission for is not started, by a command that names what grants it.
func TestWhatTheWorkerMayNotDoIsNotStarted(t *testing.T) {
	s := site.Prepare(t, "")
	s.Options.Kubeconfig = s.Account(
		site.Rule("", "nodes", "get", "list", "watch", "patch"), site.Rule("", "pods", "get", "list", "watch"),
		site.Rule("", "events", "create"), site.Rule("apps", "daemonsets", "get"), site.Rule("policy", "poddisruptionbudgets", "get", "list", "watch"),
	)
	s.StartWorker()
	before := s.Imprint("worker-01")
	kep := s.File("kep.yaml", `{apiVersion: maintenance.example/v1alpha1, kind: NodeMaintenance, metadata: {name: kernel},
  spec: {nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [worker-01]}]}]}, stage: Drain}}
`)
	for _, args := range [][]string{{"kernel", "worker-01"}, {"-f", kep}, {"kernel", "-f", s.File("plan.yaml", "nodes: [worker-01]\n")}} {
		r := s.Drydock(append([]string{"plan", "create", "--yes"}, args...)...)
		s.Exits(r, 5, "plan kernel was not started", "may not create pods/eviction", "kubectl apply -f deploy/kubernetes/rbac.yaml")
		if strings.Contains(r.Out(), "Plan kernel over") {
			t.Errorf("it announces what it does not start:\n%s", r.Out())
		}
	}
	s.Exits(s.Drydock("plan", "status", "kernel"), 1, "there is no plan kernel")
	s.Exits(s.Drydock("plan", "create", "waits", "no-such-node", "--skip-node-check", "--yes", "--file", s.File("wait.yaml", "maintenance: {drain: {mode: wait}}\n")), 0, "plan started")
	check := s.File("check.json", `{"name":"workers","selector":{"matchLabels":{"none":"none"}},"maintenance":{"input":{"drain":{"mode":"wait"}}}}`)
	s.Exits(s.Drydock("health", "start", "--file", check), 5, "health check workers was not started",
		"may not list leases in API group coordination.k8s.io (namespace medik8s-leases)", "kubectl apply -f deploy/kubernetes/rbac-health.yaml")
	s.Exits(s.Drydock("health", "status", "workers"), 1, "there is no health check workers")
	s.Back("worker-01", before)
}
