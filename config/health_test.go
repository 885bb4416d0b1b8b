package config

import (
	"encoding/json"
	"testing"

	"drydock.dev/drydock/rules/health"
)

func TestAHealthCheckTakesTheDefaultsThatItDoesNotGive(t *testing.T) {
	const selector = `"selector":{"matchLabels":{"pool":"workers"}},"minHealthy":"51%",` +
		`"unhealthyConditions":[{"type":"Ready","status":"Unknown","duration":"5m"}],"maintenance":{"input":{}}`
	defaults := Health{Etcd: &health.Etcd{Namespace: "etcd"}, ControlPlane: &health.ControlPlane{Allow: health.AllowAlways}}
	for name, c := range map[string]struct {
		given, etcd, allow string
		defaults           Health
	}{
		"both are the worker's": {"", "etcd", health.AllowAlways, defaults},
		"its own etcd":          {`,"etcd":{"namespace":"mine"}`, "mine", health.AllowAlways, defaults},
		"its own control plane": {`,"controlPlane":{"allow":"healthy"}`, "etcd", health.AllowHealthy, defaults},
		"no defaults":           {"", "", "", Health{}},
	} {
		t.Run(name, func(t *testing.T) {
			given := json.RawMessage("{" + selector + c.given + "}")
			text, err := Config{Health: c.defaults, HealthChecks: HealthChecks{"workers": given}}.HealthSpec("workers")
			if err != nil {
				t.Fatal(err)
			}
			s, err := health.Decode(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if namespace := s.Etcd; (namespace != nil) != (c.etcd != "") || namespace != nil && namespace.Namespace != c.etcd {
				t.Errorf("etcd %+v, want %q", namespace, c.etcd)
			}
			if p := s.ControlPlane; (p != nil) != (c.allow != "") || p != nil && p.Allow != c.allow {
				t.Errorf("control plane %+v, want %q", p, c.allow)
			}
		})
	}
}
