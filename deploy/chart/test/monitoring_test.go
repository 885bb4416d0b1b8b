package chart_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const monitoringDir = "../../monitoring"

// rulesWith are the rules of the PrometheusRule that some values make.
func rulesWith(t *testing.T, text string) any {
	t.Helper()
	for _, d := range render(t, values(t, text)) {
		if d.Object.GetKind() == "PrometheusRule" {
			return d.Object.Object["spec"]
		}
	}
	t.Fatal("there is no PrometheusRule")
	return nil
}

// The rules are those of the file, which Prometheus' own tests know; where the runbooks are is the installation's to say.
func TestTheRulesAreThoseOfTheFile(t *testing.T) {
	text, err := os.ReadFile(monitoringDir + "/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "https://drydock") {
		t.Error("the rules link a host that nobody has")
	}
	linked := strings.ReplaceAll(string(text), "runbook_url: ", "runbook_url: https://git.example.com/drydock/blob/main/")
	for set, want := range map[string]string{
		"prometheusRule: {enabled: true}": string(text),
		"prometheusRule: {enabled: true, runbookURL: 'https://git.example.com/drydock/blob/main'}":  linked,
		"prometheusRule: {enabled: true, runbookURL: 'https://git.example.com/drydock/blob/main/'}": linked,
	} {
		rules := map[string]any{}
		if err := yaml.Unmarshal([]byte(want), &rules); err != nil {
			t.Fatal(err)
		}
		if got := rulesWith(t, set); !reflect.DeepEqual(got, any(rules)) {
			t.Errorf("%s: rules %v\nwant %v", set, got, rules)
		}
	}
}

// A sidecar of Grafana's finds each dashboard by its label, as it is in the file.
func TestDashboardsAreThoseOfTheFiles(t *testing.T) {
	files, err := filepath.Glob(monitoringDir + "/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	if all := findAll[*corev1.ConfigMap](t, render(t, nil)); len(all) != 1 {
		t.Errorf("%d ConfigMaps without dashboards.enabled", len(all))
	}
	found := map[string]*corev1.ConfigMap{}
	for _, one := range findAll[*corev1.ConfigMap](t, render(t, values(t, "dashboards: {enabled: true, namespace: monitoring}"))) {
		for file := range one.Data {
			found[file] = one
		}
	}
	for _, path := range files {
		name := "drydock-" + filepath.Base(path)
		one := found[name]
		if one == nil {
			t.Errorf("no ConfigMap has %s", name)
			continue
		}
		if one.Labels["grafana_dashboard"] != "1" || one.Namespace != "monitoring" {
			t.Errorf("%s: labels %v in namespace %s", name, one.Labels, one.Namespace)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(one.Data[name]), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is not the file (%v)", name, err)
		}
	}
}
