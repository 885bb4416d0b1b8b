// Package monitoring_test holds alerts and dashboards to a real Prometheus: its own rule tests, and every query against what
// it scrapes of a worker that works.
package monitoring_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// tool is the path of a binary that `make test-monitoring` built.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("DRYDOCK_BIN"), "tools", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make test-monitoring, which builds it and sets DRYDOCK_BIN", err)
	}
	return path
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), tool(t, "promtool"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

func TestRulesAreInOrder(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "../rules.yaml")
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool(t, "test", "rules", "rules.test.yaml")
}

// alerts is what of a rules file, and of the tests of one, is looked at here.
type alerts struct {
	Groups []struct {
		Rules []struct {
			Alert string `yaml:"alert"`
			Expr  string `yaml:"expr"`
		} `yaml:"rules"`
	} `yaml:"groups"`
	Tests []struct {
		Cases []struct {
			Alert string `yaml:"alertname"`
			Fires []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func read(t *testing.T, path string) (a alerts) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &a); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return a
}

func TestEveryAlertHasATestOfSilenceAndOneOfFiring(t *testing.T) {
	silent, firing := map[string]bool{}, map[string]bool{}
	for _, test := range read(t, "rules.test.yaml").Tests {
		for _, c := range test.Cases {
			if len(c.Fires) > 0 {
				firing[c.Alert] = true
			} else {
				silent[c.Alert] = true
			}
		}
	}
	all := 0
	for _, group := range read(t, "../rules.yaml").Groups {
		for _, rule := range group.Rules {
			all++
			if !silent[rule.Alert] || !firing[rule.Alert] {
				t.Errorf("%s: tested silent %t, firing %t", rule.Alert, silent[rule.Alert], firing[rule.Alert])
			}
		}
	}
	if all == 0 {
		t.Error("there are no alerts")
	}
}
