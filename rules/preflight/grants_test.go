package preflight_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
)

func TestMissingPermissionsByWhatGrantsThem(t *testing.T) {
	denied := slices.Concat(
		preflight.LeaseNeeds("kube-system", "get", "patch"), preflight.JobNeeds("own"),
		preflight.LeaseNeeds("default", "get"), preflight.LeaseNeeds("kube-system", "create"),
		preflight.Needs(spec.Drain{}, false)[3:4],
	)
	want := []string{
		"get, patch, create leases in API group coordination.k8s.io (namespace kube-system); get leases in API group coordination.k8s.io (namespace default)",
		"by `kubectl apply -f deploy/kubernetes/rbac-profiles.yaml`, or profiles in the chart's rbac.features",
		" jobs in API group batch (namespace own)", "by a Role like that of deploy/kubernetes/rbac-jobs.yaml in namespace own",
		"patch nodes in the core API group", "by `kubectl apply -f deploy/kubernetes/rbac.yaml`, or the chart's rbac.create: true",
	}
	all := preflight.ByGrant(denied)
	if len(all) != len(want)/2 {
		t.Fatalf("%q", all)
	}
	for i, one := range all {
		if !strings.Contains(one.Permissions, want[2*i]) || "by "+one.By != want[2*i+1] {
			t.Errorf("%d: %q", i, one)
		}
	}
	if none := preflight.ByGrant(nil); none == nil || len(none) != 0 {
		t.Errorf("%#v", none)
	}
}

// What one command grants may not fit into one text: no namespace is left out.
func TestManyMissingPermissionsAreAllNamed(t *testing.T) {
	var denied []preflight.Need
	for i := range 100 {
		denied = append(denied, preflight.LeaseNeeds(fmt.Sprintf("namespace-%02d", i), "get", "list", "create", "patch")...)
	}
	told := ""
	for _, one := range preflight.ByGrant(denied) {
		if bounds.Cut(one.Permissions, bounds.Text) != one.Permissions || !strings.Contains(one.By, "rbac-profiles.yaml") {
			t.Errorf("%d bytes by %s", len(one.Permissions), one.By)
		}
		told += one.Permissions + "\n"
	}
	for _, need := range denied {
		if !strings.Contains(told, "(namespace "+need.Namespace+")") {
			t.Errorf("%s is left out", need)
		}
	}
}
