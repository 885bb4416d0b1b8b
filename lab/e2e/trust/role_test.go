package trust

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/lab/e2e/site"
)

func TestTheWorkersRoleRefusesWhatItDoesNotNeed(t *testing.T) {
	t.Parallel()
	account, err := site.ClientOf(site.Shared.Lanes.Take(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if ok, err := site.May(ctx, account, authorizationv1.ResourceAttributes{Resource: "pods", Subresource: "eviction", Verb: "create"}); !ok {
		t.Fatalf("it may not evict: %v", err)
	}
	for _, what := range []string{
		"* *", "nodes create", "nodes update", "nodes delete", "nodes deletecollection", "nodes/status patch", "nodes/proxy get",
		"pods get", "pods create", "pods update", "pods patch", "pods deletecollection", "pods/exec create", "pods/ephemeralcontainers patch",
		"pods/log get", "secrets get", "secrets list", "configmaps list", "serviceaccounts/token create", "namespaces delete",
		"persistentvolumeclaims delete", "events delete",
		"daemonsets.apps patch", "deployments.apps patch", "replicasets.apps delete", "statefulsets.apps patch",
		"poddisruptionbudgets.policy patch", "poddisruptionbudgets.policy delete", "volumeattachments.storage.k8s.io delete",
		"clusterroles.rbac.authorization.k8s.io bind", "clusterroles.rbac.authorization.k8s.io create",
	} {
		object, verb, _ := strings.Cut(what, " ")
		object, group, _ := strings.Cut(object, ".")
		resource, sub, _ := strings.Cut(object, "/")
		ok, err := site.May(ctx, account, authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: sub, Verb: verb})
		if err != nil || ok {
			t.Errorf("%s: allowed %v, %v", what, ok, err)
		}
	}
	if _, err := account.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("secrets: %v", err)
	}
	dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if err := account.CoreV1().Nodes().Delete(ctx, "worker-01", dry); !apierrors.IsForbidden(err) {
		t.Errorf("deleting a node: %v", err)
	}
}
