package api_test

import (
	"testing"

	"drydock.dev/drydock/api"
)

func TestHealthIDs(t *testing.T) {
	for _, cluster := range []string{"", "east"} {
		id := api.HealthCheckID(cluster, "workers")
		if gotCluster, name, err := api.ParseHealthCheckID(id); err != nil || gotCluster != cluster || name != "workers" {
			t.Errorf("%s is read as %q, %q, %v", id, gotCluster, name, err)
		}
		id = api.RemediationID(cluster, "workers", "worker-1.example")
		if gotCluster, check, node, err := api.ParseRemediationID(id); err != nil || gotCluster != cluster || check != "workers" || node != "worker-1.example" {
			t.Errorf("%s is read as %q, %q, %q, %v", id, gotCluster, check, node, err)
		}
	}
	for _, id := range []string{
		"", "health-check", "health-check/", "health-check/A", "health-check/a/b", "a/b/health-check/c", "EAST/health-check/a",
		"node-remediation/a/b", api.PlanID("", "a"), "/health-check/a/",
	} {
		if _, _, err := api.ParseHealthCheckID(id); err == nil {
			t.Errorf("%q is taken for a health check's", id)
		}
	}
	for _, id := range []string{
		"", "node-remediation/a", "node-remediation//n", "node-remediation/a/N", "node-remediation/.a/n", "EAST/node-remediation/a/n",
		"node-remediation/a/b/c", api.MaintenanceID("", "n", "health-a"), api.HealthCheckID("", "a"),
	} {
		if _, _, _, err := api.ParseRemediationID(id); err == nil {
			t.Errorf("%q is taken for a remediation's", id)
		}
	}
}
