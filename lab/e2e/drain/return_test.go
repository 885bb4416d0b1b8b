package drain

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/record"
)

// checksFiles are what Drydock ships for workers that run Jobs, look at DaemonSets and show conditions.
var checksFiles = []string{
	"../../../deploy/kubernetes/rbac-jobs.yaml", "../../../deploy/kubernetes/rbac-daemonsets.yaml", "../../../deploy/kubernetes/rbac-node-conditions.yaml",
}

const checksAccount = "drydock-worker-with-checks"

// checksKubeconfig is that of an account with all shipped roles: another one, so that the first has its own only.
func checksKubeconfig(s *site.Site) string {
	s.Helper()
	rbac := s.Kube.RbacV1()
	objects, err := site.ObjectsOfAll(checksFiles)
	if err != nil {
		s.Fatal(err)
	}
	base, err := site.ShippedObjects()
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.Kube.CoreV1().ServiceAccounts("drydock").Create(s.Ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: checksAccount}}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: checksAccount, Namespace: "drydock"}}
	for _, object := range base { // the roles are there
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			objects = append(objects, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.Name + "-with-checks"}, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			})
		case *rbacv1.Role:
			objects = append(objects, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.Name + "-with-checks", Namespace: role.Namespace}, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			})
		}
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Namespace:
			_, err = s.Kube.CoreV1().Namespaces().Create(s.Ctx, o, metav1.CreateOptions{})
		case *corev1.ServiceAccount:
			// Kubernetes makes the namespace's own as well, whoever comes first.
			if _, err = s.Kube.CoreV1().ServiceAccounts(o.Namespace).Create(s.Ctx, o, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
				_, err = s.Kube.CoreV1().ServiceAccounts(o.Namespace).Update(s.Ctx, o, metav1.UpdateOptions{})
			}
		case *networkingv1.NetworkPolicy:
			_, err = s.Kube.NetworkingV1().NetworkPolicies(o.Namespace).Create(s.Ctx, o, metav1.CreateOptions{})
		case *rbacv1.Role:
			_, err = rbac.Roles(o.Namespace).Create(s.Ctx, o, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			o.Subjects = subjects
			_, err = rbac.RoleBindings(o.Namespace).Create(s.Ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRole:
			_, err = rbac.ClusterRoles().Create(s.Ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			o.Subjects = subjects
			_, err = rbac.ClusterRoleBindings().Create(s.Ctx, o, metav1.CreateOptions{})
		default:
			err = fmt.Errorf("%v have a %T", checksFiles, o)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	file := filepath.Join(s.Options.Dir, "kubeconfig")
	if err := site.WriteKubeconfig(s.Ctx, s.Lane.Cluster, "drydock", checksAccount, file); err != nil {
		s.Fatal(err)
	}
	account, err := site.ClientOf(file)
	if err != nil {
		s.Fatal(err)
	}
	if err := wait.PollUntilContextTimeout(s.Ctx, 20*time.Millisecond, site.Patience, true, func(ctx context.Context) (bool, error) {
		return site.MayAll(ctx, account, slices.Collect(maps.Keys(site.Lasts))...)
	}); err != nil {
		s.Fatal(err)
	}
	return file
}

// reboot gives a node another boot ID, as a restart does.
func reboot(s *site.Site, node, bootID string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"status":{"nodeInfo":{"bootID":%q}}}`, bootID)
	if _, err := s.Kube.CoreV1().Nodes().Patch(s.Ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		s.Fatal(err)
	}
}

// conditions are the lifecycle conditions that are True on a node.
func conditions(s *site.Site, node string) []string {
	var all []string
	for _, c := range s.Node(node).Status.Conditions {
		if strings.HasPrefix(string(c.Type), "Maintenance") || strings.HasPrefix(string(c.Type), "Drain") {
			if c.Status == corev1.ConditionTrue {
				all = append(all, string(c.Type))
			}
		}
	}
	slices.Sort(all)
	return all
}

func showsConditions(s *site.Site, node string, want ...string) {
	s.Helper()
	s.Eventually(fmt.Sprintf("node %s shows %v", node, want), func() error {
		if got := conditions(s, node); !slices.Equal(got, want) {
			return fmt.Errorf("it shows %v", got)
		}
		return nil
	})
}

const burnIn = `apiVersion: batch/v1
kind: Job
spec:
  backoffLimit: 0
  template:
    metadata:
      annotations: {devcluster.drydock.dev/completion-delay: 1s}
    spec:
      restartPolicy: Never
      securityContext: {runAsNonRoot: true, runAsUser: 65534, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: burn-in
        image: registry.example/burn-in:v1
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// TestSlowANodeReturnsToProductionOnlyWhenItIsGood goes from the notice to the audit record: conditions, hooks with their
// closings, a validation by every kind of look, a failure of it, and what is kept of all that.
func TestSlowANodeReturnsToProductionOnlyWhenItIsGood(t *testing.T) {
	s := site.Prepare(t, "")
	const token = "canary-of-a-check"
	r := s.Receivers("whsec_c2lnbmVk", "unused")
	audit := filepath.Join(s.Options.Dir, "audit.jsonl")
	s.Options.Kubeconfig = checksKubeconfig(s)
	s.Options.Config += fmt.Sprintf(`
kubernetes: {nodeConditions: true}
audit: {file: {path: %[2]s}}
checks:
  smoke: {http: {url: "%[1]s/smoke/{{.Node}}", bearerToken: %[3]s, expectBody: good}}
  burn-in: {job: {templateFile: %[4]s, namespace: drydock-jobs, deadline: 1m}}
hooks:
  silence:
    http: {url: "%[1]s/silences", body: '{"node": "{{.Node}}"}', capture: '"silenceID": *"([^"]+)"'}
    closing: {http: {url: "%[1]s/unsilence/{{.Captured}}", method: DELETE}}
  move-storage: {signal: {}, deadline: 5m}
`, r.HTTP.URL, audit, r.Secret("token", token), s.File("burn-in.yaml", burnIn))
	s.StartWorker()

	const node = "worker-01"
	ns := s.Namespace()
	s.Deployment(ns, "web", 1, site.On(node))
	s.DaemonSet(ns, "agent")
	reboot(s, node, "boot-1")
	before := s.Imprint(node)
	notBefore := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	run := s.BeginWith(node, fmt.Sprintf(`"notBefore":%q,"reason":"firmware","drain":{"plan":{"include":["Default","DaemonSet"]}},
		"hooks":{"beforeCordon":["silence"],"afterDrain":["move-storage"]},
		"validation":{"conditions":[{"type":"Ready"}],"newBootID":true,"daemonSets":"all","checks":["smoke","burn-in"],
			"allocatable":[{"name":"cpu","atLeast":"1"}],"soak":"2s","every":"1s","deadline":"40s"}`, notBefore))
	showsConditions(s, node, "MaintenancePlanned")
	if n := s.Node(node); n.Spec.Unschedulable {
		t.Error("cordoned before its time")
	}
	s.MustDrydock("reschedule", node, "--not-before", "0s", "--comment", "now")
	s.UntilStatus(run, "the hook is waited for", func(status api.Status) bool { return slices.Contains(status.OpenHooks, "move-storage") })
	s.Exits(s.Drydock("hook", "done", node, "other"), 1, "move-storage")
	s.MustDrydock("hook", "skip", node, "move-storage", "--comment", "no storage here")
	s.Until(run, api.Ready)
	showsConditions(s, node, "Drained", "MaintenanceInProgress")
	if silenced := r.Requests("/silences"); len(silenced) != 1 || !strings.Contains(silenced[0].Body, node) || len(r.Requests("/unsilence/silence-1")) != 0 {
		t.Errorf("silenced %+v", silenced)
	}
	waits := s.Spawn("done", node, "--wait")

	s.Sub("not restarted, and not good", func(s *site.Site) {
		status := s.UntilStatus(run, "the validation fails", func(status api.Status) bool { return strings.Contains(status.Failure, "newBootID") })
		if status.Phase != api.Validating || !strings.Contains(status.Failure, "smoke") {
			s.Errorf("%s: %s", status.Phase, status.Failure)
		}
		if !s.Node(node).Spec.Unschedulable || !slices.Equal(s.Holders(), []string{node}) {
			s.Error("the node or its slot was given back")
		}
		s.Exits(s.Drydock("status", node), 0, "newBootID", "no", "a decision")
		s.Exits(s.Drydock("cancel", node), 1, "--release")
		s.Exits(waits.End(), 1, "stays out of service", "newBootID", "retry")
	})
	reboot(s, node, "boot-2")
	r.Good.Store(true)
	s.MustDrydock("retry", node)
	result := s.MustEnd(run, api.Completed)
	s.Back(node, before)
	showsConditions(s, node)
	s.Eventually("the closing is called", func() error {
		if n := len(r.Requests("/unsilence/silence-1")); n != 1 {
			return fmt.Errorf("%d calls", n)
		}
		return nil
	})
	if smoke := r.Requests("/smoke/" + node); len(smoke) == 0 || smoke[0].Header.Get("Authorization") != "Bearer "+token {
		t.Errorf("smoke %+v", smoke)
	}
	jobsWerePinned(s, node)

	var kept record.Record
	s.Eventually("the audit record is kept", func() error {
		data, err := os.ReadFile(audit)
		if err == nil {
			err = json.Unmarshal(data, &kept)
		}
		return err
	})
	if kept.RunID != result.RunID || kept.Phase != "Completed" || len(kept.Hooks) != 3 || len(kept.Validation) != 6 || len(kept.States) < 7 {
		t.Errorf("kept %+v", kept)
	}
	for _, from := range [][]string{nil, {"--from", audit}} {
		for _, form := range []struct{ name, want string }{
			{"table", "firmware"}, {"markdown", "| "}, {"json", `"skipped: no storage here"`},
		} {
			s.UntilSays(append([]string{"history", node, "-o", form.name}, from...), form.want)
		}
		s.UntilSays(append([]string{"report", "--since", "1h"}, from...), "Completed", "Validating")
	}
	s.MustNotLeak(s.Written(2), map[string]string{"the token of a check": token})
}

func jobsWerePinned(s *site.Site, node string) {
	s.Helper()
	pinned := 0
	for _, r := range s.Requests("/jobs", func(r site.Request) bool { return r.Verb == "create" && r.Object.Namespace == "drydock-jobs" }) {
		if r.Status.Code < 300 {
			pinned++
		}
	}
	if pinned != 2 {
		s.Errorf("%d Jobs were created, want one for each validation", pinned)
	}
	list, err := s.Kube.CoreV1().Pods("drydock-jobs").List(s.Ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel})
	if err != nil {
		s.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != node {
			s.Errorf("pod %s of a check ran on %q", pod.Name, pod.Spec.NodeName)
		}
	}
}

// TestADeadChannelIsSeenByTheDoctor has a channel that refuses for good, and one that is not there.
func TestADeadChannelIsSeenByTheDoctor(t *testing.T) {
	s := site.Prepare(t, "")
	r := s.Receivers("whsec_c2lnbmVk", "unused")
	s.Options.Config += fmt.Sprintf(`
channels:
  unsigned: {webhook: {url: "%s/events"}, filter: {events: [%s]}}
  away: {webhook: {url: "http://127.0.0.1:1/"}}
`, r.HTTP.URL, notices.MaintenanceUnknown)
	s.StartWorker()
	s.Exits(s.Drydock("start", "worker-01", "--requestor", "ops", "--notify", "pager", "--wait"), 2, `no channel "pager"`)
	run := s.BeginWith("worker-01", `"notify":["unsigned","away"]`)
	s.Until(run, api.Ready)
	s.Done(run)
	s.Within(2*site.Patience, "the doctor sees both", func() error {
		found := site.Found(s.Doctored())
		if len(found) != 2 || !strings.HasPrefix(found[0], "DeliveryFailing") || !strings.HasPrefix(found[1], "DeliveryGivenUp") {
			return fmt.Errorf("found %q", found)
		}
		return nil
	})
}

// TestPeopleDecide has somebody approve, end a hook, and judge the node.
func TestPeopleDecide(t *testing.T) {
	s := site.New(t, "hooks: {move-storage: {signal: {}}}")
	run := s.BeginWith("worker-01", `"approval":true,"hooks":{"beforeRelease":["move-storage"]},"validation":{"signal":true}`)
	s.Until(run, api.AwaitingApproval)
	if touched := s.Touched(); len(touched) > 0 {
		t.Errorf("touched before the approval: %+v", touched)
	}
	s.MustDrydock("approve", "worker-01", "--comment", "go")
	s.Until(run, api.Ready)
	s.MustDrydock("done", "worker-01")
	s.Until(run, api.Validating)
	s.MustDrydock("validation", "fail", "worker-01", "--comment", "fan is loud")
	s.Exits(s.Drydock("validation", "fail", "worker-01"), 0, "already")
	s.MustBeHeld("worker-01", run.GetRunID())
	s.MustDrydock("validation", "pass", "worker-01", "--comment", "fan replaced")
	s.UntilStatus(run, "the hook is waited for", func(status api.Status) bool { return slices.Contains(status.OpenHooks, "move-storage") })
	s.MustDrydock("hook", "done", "worker-01", "move-storage")
	s.MustEnd(run, api.Completed)
	s.UntilSays([]string{"history", "worker-01", "--details"}, "go", "fan is loud", "fan replaced", "move-storage")
}
