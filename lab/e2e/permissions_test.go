package e2e

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
)

func TestAMissingPermissionFailsAtOnceAndIsNamed(t *testing.T) {
	s := prepareSite(t, "")
	s.options.Kubeconfig = s.account(
		rule("", "nodes", "get", "list", "watch", "patch"), rule("", "pods", "get", "list", "watch"),
		rule("", "events", "create"), rule("apps", "daemonsets", "get"), rule("policy", "poddisruptionbudgets", "get", "list", "watch"),
	)
	s.startWorker()
	ns := s.namespace()
	before := s.imprint("worker-01")
	s.deployment(ns, "web", 2, on("worker-01"))
	run := s.begin("worker-01")
	_, err := s.end(run)
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.Type() != api.ErrorMissingPermission || !strings.Contains(failed.Message(), "pods/eviction") {
		t.Errorf("it ended with %v, want %s that names pods/eviction", err, api.ErrorMissingPermission)
	}
	asked := map[string]bool{}
	for _, e := range s.evictions(ns) {
		if e.Status.Code != http.StatusForbidden || asked[e.Object.Name] {
			t.Errorf("after %v: %+v", asked, e)
		}
		asked[e.Object.Name] = true
	}
	if len(asked) == 0 {
		t.Error("no eviction was asked for")
	}
	s.back("worker-01", before)
	s.slotFree("worker-01")
}

// What the worker lacks a permission for is not started, by a command that names what grants it.
func TestWhatTheWorkerMayNotDoIsNotStarted(t *testing.T) {
	s := prepareSite(t, "")
	s.options.Kubeconfig = s.account(
		rule("", "nodes", "get", "list", "watch", "patch"), rule("", "pods", "get", "list", "watch"),
		rule("", "events", "create"), rule("apps", "daemonsets", "get"), rule("policy", "poddisruptionbudgets", "get", "list", "watch"),
	)
	s.startWorker()
	before := s.imprint("worker-01")
	kep := s.file("kep.yaml", `{apiVersion: maintenance.example/v1alpha1, kind: NodeMaintenance, metadata: {name: kernel},
  spec: {nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [worker-01]}]}]}, stage: Drain}}
`)
	for _, args := range [][]string{{"kernel", "worker-01"}, {"-f", kep}, {"kernel", "-f", s.file("plan.yaml", "nodes: [worker-01]\n")}} {
		r := s.drydock(append([]string{"plan", "create", "--yes"}, args...)...)
		s.exits(r, 5, "plan kernel was not started", "may not create pods/eviction", "kubectl apply -f deploy/kubernetes/rbac.yaml")
		if strings.Contains(r.out(), "Plan kernel over") {
			t.Errorf("it announces what it does not start:\n%s", r.out())
		}
	}
	s.exits(s.drydock("plan", "status", "kernel"), 1, "there is no plan kernel")
	s.exits(s.drydock("plan", "create", "waits", "--selector", "none=none", "--yes", "--file", s.file("wait.yaml", "maintenance: {drain: {mode: wait}}\n")), 0, "plan started")
	check := s.file("check.json", `{"name":"workers","selector":{"matchLabels":{"none":"none"}},"maintenance":{"input":{"drain":{"mode":"wait"}}}}`)
	s.exits(s.drydock("health", "start", "--file", check), 5, "health check workers was not started",
		"may not list leases in API group coordination.k8s.io (namespace medik8s-leases)", "kubectl apply -f deploy/kubernetes/rbac-health.yaml")
	s.exits(s.drydock("health", "status", "workers"), 1, "there is no health check workers")
	s.back("worker-01", before)
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// account makes an account with a few permissions, and returns its kubeconfig.
func (s *site) account(rules ...rbacv1.PolicyRule) string {
	s.Helper()
	ns := s.namespace()
	rbac := s.kube.RbacV1()
	accounts := s.kube.CoreV1().ServiceAccounts(ns)
	_, err1 := accounts.Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}, metav1.CreateOptions{})
	_, err2 := rbac.ClusterRoles().Create(s.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ns}, Rules: rules}, metav1.CreateOptions{})
	_, err3 := rbac.ClusterRoleBindings().Create(s.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ns},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "worker"}},
	}, metav1.CreateOptions{})
	file := filepath.Join(s.options.Dir, "kubeconfig")
	err4 := writeKubeconfig(s.ctx, s.lane.cluster, ns, "worker", file)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		s.Fatal(err)
	}
	return file
}
