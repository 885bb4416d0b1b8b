package preflight

import (
	"strings"
	"testing"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/spec"
)

// What is about to be started hears of every permission that it lacks, with the command that grants it.
func TestPermissionsThatAreMissingNameTheCommand(t *testing.T) {
	server := k8stest.New()
	server.Deny("list", "leases")
	server.Deny("create", "pods/eviction")
	p := &Activities{Client: server.Client(t), LeaseNamespace: "leases-of-ours"}
	for name, c := range map[string]struct {
		in   PermissionsInput
		want []string
	}{
		"a health check": {PermissionsInput{HealthCheck: true}, []string{"list leases in API group coordination.k8s.io (namespace leases-of-ours)"}},
		"one that drains": {
			PermissionsInput{HealthCheck: true, Drains: []PlannedDrain{{Drain: spec.Drain{Mode: spec.ModeEvict}}, {Drain: spec.Drain{Mode: spec.ModeEvict}}}},
			[]string{"list leases in API group coordination.k8s.io (namespace leases-of-ours)", "create pods/eviction in the core API group: grant it with `kubectl apply -f deploy/kubernetes/rbac.yaml`"},
		},
		"a plan that only waits": {PermissionsInput{Drains: []PlannedDrain{{Drain: spec.Drain{Mode: spec.ModeWait}}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := activitytest.Call(t, p.CheckPermissions, c.in)
			if err != nil || len(report.Missing) != len(c.want) {
				t.Fatalf("%+v, %v", report, err)
			}
			for i, want := range c.want {
				if got := report.Missing[i].Message; !strings.Contains(got, want) || !strings.Contains(got, "grant it with") {
					t.Errorf("%s\nlacks %s", got, want)
				}
			}
		})
	}
}
