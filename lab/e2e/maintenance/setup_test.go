package maintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/config/namespace"
	"drydock.dev/drydock/docs/schemas/schematest"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/setup"
)

// inNamespace is the site in a Temporal namespace of its own, which need not be there yet.
func inNamespace(s *site.Site, name string) {
	s.Helper()
	own, err := client.NewClientFromExisting(s.Temporal, client.Options{Namespace: name})
	if err != nil {
		s.Fatal(err)
	}
	s.Temporal = own
	s.Environment = append(s.Environment, "TEMPORAL_NAMESPACE="+name)
	s.Options.Environment = append(s.Options.Environment, "TEMPORAL_NAMESPACE="+name)
}

// asAdmin is the site at which somebody sits who may do everything in the cluster.
func asAdmin(s *site.Site) *site.Site {
	admin := *s
	admin.Environment = append(append([]string{}, s.Environment...), "KUBECONFIG="+s.Lane.Cluster.Kubeconfig)
	return &admin
}

// setUp runs drydock setup for programs, and expects an exit status.
func setUp(s *site.Site, status int, args ...string) setup.Report {
	s.Helper()
	r := s.Drydock(append([]string{"setup", "-o", "json"}, args...)...)
	s.Exits(r, status)
	schematest.Holds(s.T, "setup", []byte(r.Stdout))
	var report setup.Report
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
		s.Fatalf("%v\n%s", err, r.Out())
	}
	return report
}

// inState are the items of a report in a state, by kind and name.
func inState(r setup.Report, state setup.State) string {
	var all []string
	for _, i := range r.Items {
		if i.State == state {
			all = append(all, strings.TrimSpace(string(i.Kind)+" "+i.Name))
		}
	}
	return strings.Join(all, ", ")
}

func TestSetupFromNothingToAMaintenance(t *testing.T) {
	s := site.Prepare(t, "")
	name := "setup-" + s.ID
	inNamespace(s, name)
	admin := asAdmin(s)
	account := []string{"--as", site.AccountUser, "--with", "daemonsets"}
	t.Cleanup(func() {
		// No other test's worker has this permission.
		roles := s.Kube.RbacV1()
		if err := errors.Join(
			roles.ClusterRoleBindings().Delete(s.Ctx, "drydock-worker-daemonsets", metav1.DeleteOptions{}),
			roles.ClusterRoles().Delete(s.Ctx, "drydock-worker-daemonsets", metav1.DeleteOptions{}),
		); err != nil {
			t.Error(err)
		}
	})
	attributes := "SearchAttribute DrydockNode, SearchAttribute DrydockRequestor, SearchAttribute DrydockPhase, SearchAttribute DrydockCluster, SearchAttribute DrydockKind"
	missing := "Namespace " + name + ", " + attributes + ", Permissions daemonsets"

	s.Exits(admin.Drydock(append([]string{"setup"}, account...)...), 1, "MISSING", "--apply creates namespace "+name, "--apply applies the manifests of permissions daemonsets")
	if got := inState(setUp(admin, 1, account...), setup.Missing); got != missing {
		t.Errorf("missing are %s, want %s", got, missing)
	}
	printed := admin.Drydock(append([]string{"setup", "--print"}, account...)...)
	s.Exits(printed, 0, "temporal operator namespace create --namespace "+name+" --retention 30d\n",
		"temporal operator search-attribute create --namespace "+name+" --name DrydockNode --type Keyword", "apply -f deploy/kubernetes/rbac-daemonsets.yaml\n")
	if _, err := namespace.Describe(s.Ctx, s.Temporal, name); !namespace.Absent(err) {
		t.Fatalf("somebody has made the namespace: %v", err)
	}
	s.Exits(s.Drydock("list"), 1, `no namespace "`+name+`"`, "setup --apply")

	first := setUp(admin, 0, append(account, "--apply")...)
	if got := inState(first, setup.Made); got != missing || !first.Ready || first.Account != site.AccountUser {
		t.Errorf("made are %s, want %s; ready %v, account %s", got, missing, first.Ready, first.Account)
	}
	is := described(s, name)
	role := resourceVersion(s, "drydock-worker-daemonsets")
	s.Exits(admin.Drydock(append([]string{"setup", "--apply"}, account...)...), 0, "nothing was changed")
	if got := inState(setUp(admin, 0, append(account, "--apply")...), setup.Made); got != "" || described(s, name) != is || resourceVersion(s, "drydock-worker-daemonsets") != role {
		t.Errorf("a second time made %s; the namespace is %s, was %s", got, described(s, name), is)
	}

	// The worker's own account sees the same, and may change nothing of it.
	if mine := setUp(s, 0); mine.Account != site.AccountUser || inState(mine, setup.Optional) == "" {
		t.Errorf("the worker is %s, without %s", mine.Account, inState(mine, setup.Optional))
	}
	shorten(s, name, 72*time.Hour)
	for range 2 {
		if got := inState(setUp(s, 1), setup.Missing); got != "Retention" || !strings.Contains(described(s, name), "72h") {
			t.Errorf("missing is %s, the namespace is %s", got, described(s, name))
		}
	}
	if got := inState(setUp(s, 0, "--apply"), setup.Made); got != "Retention" || described(s, name) != is {
		t.Errorf("made is %s, the namespace is %s, was %s", got, described(s, name), is)
	}
	s.Exits(s.Drydock("setup", "--retention", "7d"), 2, "--retention", "30d")
	s.Exits(s.Drydock("setup", "--with", "volume"), 2, `"volume"`, "volumes")

	s.StartWorker()
	before := s.Imprint("worker-01")
	s.MustDrydock("start", "worker-01", "--wait")
	s.MustDrydock("done", "worker-01", "--wait")
	s.Back("worker-01", before)
	s.Eventually("the maintenance is found by its node", func() error {
		query := fmt.Sprintf("%s = 'worker-01' AND %s = '%s'", api.AttributeNode.GetName(), api.AttributeKind.GetName(), api.KindMaintenance)
		answer, err := s.Temporal.CountWorkflow(s.Ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: name, Query: query})
		if err == nil && answer.GetCount() != 1 {
			err = fmt.Errorf("%d are", answer.GetCount())
		}
		return err
	})
	s.Exits(s.Drydock("setup", "--address", "127.0.0.1:1", "--skip-kubernetes"), 1, "127.0.0.1:1 is not reachable")
	s.Exits(s.Drydock("setup", "--print", "--address", "127.0.0.1:1", "--skip-kubernetes"), 1, "# Temporal: the Temporal server at 127.0.0.1:1 is not reachable")
}

// described is what the server says of a namespace that a setup must not change unasked.
func described(s *site.Site, name string) string {
	s.Helper()
	is, err := namespace.Describe(s.Ctx, s.Temporal, name)
	if err != nil {
		s.Fatal(err)
	}
	return is.ID + " " + is.Retention.String()
}

func shorten(s *site.Site, name string, retention time.Duration) {
	s.Helper()
	if _, err := s.Temporal.WorkflowService().UpdateNamespace(s.Ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: name, Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
	}); err != nil {
		s.Fatal(err)
	}
}

func resourceVersion(s *site.Site, clusterRole string) string {
	s.Helper()
	role, err := s.Kube.RbacV1().ClusterRoles().Get(s.Ctx, clusterRole, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return role.ResourceVersion
}
