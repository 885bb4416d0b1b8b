package e2e

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
	"drydock.dev/drydock/rules/setup"
)

// inNamespace is the site in a Temporal namespace of its own, which need not be there yet.
func (s *site) inNamespace(name string) {
	s.Helper()
	own, err := client.NewClientFromExisting(s.temporal, client.Options{Namespace: name})
	if err != nil {
		s.Fatal(err)
	}
	s.temporal = own
	s.environment = append(s.environment, "TEMPORAL_NAMESPACE="+name)
	s.options.Environment = append(s.options.Environment, "TEMPORAL_NAMESPACE="+name)
}

// asAdmin is the site at which somebody sits who may do everything in the cluster.
func (s *site) asAdmin() *site {
	admin := *s
	admin.environment = append(append([]string{}, s.environment...), "KUBECONFIG="+s.lane.cluster.Kubeconfig)
	return &admin
}

// setup runs drydock setup for programs, and expects an exit status.
func (s *site) setup(status int, args ...string) setup.Report {
	s.Helper()
	r := s.drydock(append([]string{"setup", "-o", "json"}, args...)...)
	s.exits(r, status)
	schematest.Holds(s.T, "setup", []byte(r.stdout))
	var report setup.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		s.Fatalf("%v\n%s", err, r.out())
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
	s := prepareSite(t, "")
	name := "setup-" + s.name
	s.inNamespace(name)
	admin := s.asAdmin()
	account := []string{"--as", accountUser, "--with", "daemonsets"}
	t.Cleanup(func() {
		// No other test's worker has this permission.
		roles := s.kube.RbacV1()
		if err := errors.Join(
			roles.ClusterRoleBindings().Delete(s.ctx, "drydock-worker-daemonsets", metav1.DeleteOptions{}),
			roles.ClusterRoles().Delete(s.ctx, "drydock-worker-daemonsets", metav1.DeleteOptions{}),
		); err != nil {
			t.Error(err)
		}
	})
	attributes := "SearchAttribute DrydockNode, SearchAttribute DrydockRequestor, SearchAttribute DrydockPhase, SearchAttribute DrydockCluster, SearchAttribute DrydockKind"
	missing := "Namespace " + name + ", " + attributes + ", Permissions daemonsets"

	s.exits(admin.drydock(append([]string{"setup"}, account...)...), 1, "MISSING", "--apply creates namespace "+name, "--apply applies the manifests of permissions daemonsets")
	if got := inState(admin.setup(1, account...), setup.Missing); got != missing {
		t.Errorf("missing are %s, want %s", got, missing)
	}
	printed := admin.drydock(append([]string{"setup", "--print"}, account...)...)
	s.exits(printed, 0, "temporal operator namespace create --namespace "+name+" --retention 30d\n",
		"temporal operator search-attribute create --namespace "+name+" --name DrydockNode --type Keyword", "apply -f deploy/kubernetes/rbac-daemonsets.yaml\n")
	if _, err := namespace.Describe(s.ctx, s.temporal, name); !namespace.Absent(err) {
		t.Fatalf("somebody has made the namespace: %v", err)
	}
	s.exits(s.drydock("list"), 1, `no namespace "`+name+`"`, "setup --apply")

	first := admin.setup(0, append(account, "--apply")...)
	if got := inState(first, setup.Made); got != missing || !first.Ready || first.Account != accountUser {
		t.Errorf("made are %s, want %s; ready %v, account %s", got, missing, first.Ready, first.Account)
	}
	is := s.described(name)
	role := s.resourceVersion("drydock-worker-daemonsets")
	s.exits(admin.drydock(append([]string{"setup", "--apply"}, account...)...), 0, "nothing was changed")
	if got := inState(admin.setup(0, append(account, "--apply")...), setup.Made); got != "" || s.described(name) != is || s.resourceVersion("drydock-worker-daemonsets") != role {
		t.Errorf("a second time made %s; the namespace is %s, was %s", got, s.described(name), is)
	}

	// The worker's own account sees the same, and may change nothing of it.
	if mine := s.setup(0); mine.Account != accountUser || inState(mine, setup.Optional) == "" {
		t.Errorf("the worker is %s, without %s", mine.Account, inState(mine, setup.Optional))
	}
	s.shorten(name, 72*time.Hour)
	for range 2 {
		if got := inState(s.setup(1), setup.Missing); got != "Retention" || !strings.Contains(s.described(name), "72h") {
			t.Errorf("missing is %s, the namespace is %s", got, s.described(name))
		}
	}
	if got := inState(s.setup(0, "--apply"), setup.Made); got != "Retention" || s.described(name) != is {
		t.Errorf("made is %s, the namespace is %s, was %s", got, s.described(name), is)
	}
	s.exits(s.drydock("setup", "--retention", "7d"), 2, "--retention", "30d")
	s.exits(s.drydock("setup", "--with", "volume"), 2, `"volume"`, "volumes")

	s.startWorker()
	before := s.imprint("worker-01")
	s.mustDrydock("start", "worker-01", "--wait")
	s.mustDrydock("done", "worker-01", "--wait")
	s.back("worker-01", before)
	s.eventually("the maintenance is found by its node", func() error {
		query := fmt.Sprintf("%s = 'worker-01' AND %s = '%s'", api.AttributeNode.GetName(), api.AttributeKind.GetName(), api.KindMaintenance)
		answer, err := s.temporal.CountWorkflow(s.ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: name, Query: query})
		if err == nil && answer.GetCount() != 1 {
			err = fmt.Errorf("%d are", answer.GetCount())
		}
		return err
	})
	s.exits(s.drydock("setup", "--address", "127.0.0.1:1", "--skip-kubernetes"), 1, "127.0.0.1:1 is not reachable")
	s.exits(s.drydock("setup", "--print", "--address", "127.0.0.1:1", "--skip-kubernetes"), 1, "# Temporal: the Temporal server at 127.0.0.1:1 is not reachable")
}

// described is what the server says of a namespace that a setup must not change unasked.
func (s *site) described(name string) string {
	s.Helper()
	is, err := namespace.Describe(s.ctx, s.temporal, name)
	if err != nil {
		s.Fatal(err)
	}
	return is.ID + " " + is.Retention.String()
}

func (s *site) shorten(name string, retention time.Duration) {
	s.Helper()
	if _, err := s.temporal.WorkflowService().UpdateNamespace(s.ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: name, Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
	}); err != nil {
		s.Fatal(err)
	}
}

func (s *site) resourceVersion(clusterRole string) string {
	s.Helper()
	role, err := s.kube.RbacV1().ClusterRoles().Get(s.ctx, clusterRole, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return role.ResourceVersion
}
