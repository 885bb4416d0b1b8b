package bridge

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/migration"
)

// left is the state of a name.
func left(name string) leftState {
	return leftStates[slices.IndexFunc(leftStates, func(s leftState) bool { return s.name == name })]
}

// asAdministrator has command lines run as the cluster's administrator, and not as the worker.
func (p *peer) asAdministrator() {
	p.Environment = append(p.Environment, "KUBECONFIG="+p.Lane.Cluster.Kubeconfig)
}

// comes has an object come to a reason, as the operator would.
func (p *peer) comes(name, reason string) {
	p.Helper()
	var conditions []metav1.Condition
	meta.SetStatusCondition(&conditions, metav1.Condition{Type: objects.ConditionReady, Status: metav1.ConditionFalse, Reason: reason})
	if err := p.send("status", "nodemaintenances", name, map[string]any{"status": map[string]any{"conditions": conditions}}, nil); err != nil {
		p.Fatal(err)
	}
}

// Beside maintenance-operator Drydock says what becomes of it, and of each of its decisions what it would have decided. It changes nothing.
func TestMigrateBesideMaintenanceOperator(t *testing.T) {
	p := preparePeer(t)
	p.create("maintenanceoperatorconfigs", "MaintenanceOperatorConfig", map[string]any{"name": "default"}, map[string]any{"maxParallelOperations": 1, "logLevel": "info"})
	p.asAdministrator()
	nodes := p.Nodes()
	p.leave(left("draining"), nodes[0].Name)
	p.leave(left("pending"), nodes[1].Name)

	var report migration.Report
	if err := json.Unmarshal([]byte(p.MustDrydock("migrate", "--from", "maintenance-operator", "-o", "json")), &report); err != nil {
		t.Fatal(err)
	}
	out := func(node string) bool {
		return slices.ContainsFunc(report.Claims, func(c migration.Claim) bool { return c.Node == node && c.Out })
	}
	if len(report.Claims) != 2 || !out(nodes[0].Name) || out(nodes[1].Name) || len(report.Translated) == 0 || len(report.Without) == 0 {
		t.Errorf("%+v", report)
	}
	p.Exits(p.Drydock("migrate", "--from", "maintenance-operator"), 0, nodes[0].Name, "maxParallelOperations", "To go back:")

	shadow := p.Spawn("migrate", "--from", "maintenance-operator", "--shadow", "-o", "json")
	shadow.Says(`"difference":"waits"`)
	p.comes("pending", objects.Scheduled)
	shadow.Says(`"difference":"later"`)
	p.delete("draining")
	if err := p.send("patch", "nodemaintenances", "draining", map[string]any{"metadata": map[string]any{"finalizers": nil}}, nil); err != nil {
		t.Fatal(err)
	}
	shadow.Says(`"ended":`)
	shadow.Interrupt()
	p.Exits(shadow.End(), 0, "out of service before the comparison began", "Drydock would have let it wait")
	all := p.RequestsBy("drydock", "", func(r site.Request) bool { return r.Answered() })
	if changes := func(r site.Request) bool { return r.Verb != "list" && r.Verb != "watch" }; len(all) == 0 || slices.ContainsFunc(all, changes) {
		t.Errorf("it did %+v", all)
	}
}

// Each system is asked for what the cluster has of it, be it nothing.
func TestMigrateFromEachSystem(t *testing.T) {
	p := preparePeer(t)
	// An account that may not list the objects gets an error that says so.
	p.Exits(p.Drydock("migrate", "--from", "maintenance-operator"), 0, "NodeMaintenance objects cannot be read", "forbidden")
	p.Exits(p.Drydock("migrate", "--from", "maintenance-operator", "--shadow"), 1, "forbidden")
	p.asAdministrator()
	for _, system := range migration.Names() {
		p.Exits(p.Drydock("migrate", "--from", system), 0, "To take over:", "To go back:")
	}
	p.Exits(p.Drydock("migrate", "--from", "pika", "--back"), 0, "No object has a mark")
	p.Exits(p.Drydock("migrate", "--from", "puppet"), 2, "--from", "kured")
	p.Exits(p.Drydock("migrate"), 2, "missing --from")
}
