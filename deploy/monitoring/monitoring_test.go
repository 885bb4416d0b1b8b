package monitoring_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/deploy/monitoring"
)

// rules is what of a rules file is looked at here.
type rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

func read(t *testing.T) rules {
	t.Helper()
	var r rules
	if err := yaml.Unmarshal(monitoring.Rules, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Groups) == 0 {
		t.Fatal("there are no rules")
	}
	return r
}

func TestTheManifestIsMadeOfTheRules(t *testing.T) {
	want, err := monitoring.PrometheusRule()
	if err != nil {
		t.Fatal(err)
	}
	const file = "prometheusrule.yaml"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s is not what is made of rules.yaml (%v): UPDATE_GOLDEN=1 go test ./deploy/monitoring", file, err)
	}
}

const runbooks = "../../docs/runbooks"

// Whoever is woken by an alert finds a page that says what it means, where to look and what to do.
func TestEveryAlertHasARunbook(t *testing.T) {
	pages := map[string]bool{}
	files, err := filepath.Glob(runbooks + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		pages[filepath.Base(file)] = true
	}
	delete(pages, "README.md")
	index, err := os.ReadFile(runbooks + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range read(t).Groups {
		for _, rule := range group.Rules {
			page := rule.Alert + ".md"
			text, err := os.ReadFile(filepath.Join(runbooks, page))
			if err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
				continue
			}
			delete(pages, page)
			for _, part := range []string{"# " + rule.Alert + "\n", "\n## What it means\n", "\n## Where to look\n", "\n## What to do\n"} {
				if !strings.Contains(string(text), part) {
					t.Errorf("%s lacks %q", page, part)
				}
			}
			if !strings.Contains(string(index), fmt.Sprintf("[%s](%s)", rule.Alert, page)) {
				t.Errorf("README.md does not list %s", page)
			}
			if want := "docs/runbooks/" + page; rule.Annotations["runbook_url"] != want { // who installs it says where the pages are
				t.Errorf("%s: runbook_url %q: want %s", rule.Alert, rule.Annotations["runbook_url"], want)
			}
			if !regexp.MustCompile(`^(critical|warning|info)$`).MatchString(rule.Labels["severity"]) {
				t.Errorf("%s: severity %q", rule.Alert, rule.Labels["severity"])
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s says nothing", rule.Alert)
			}
		}
	}
	for page := range pages {
		t.Errorf("%s is of no alert", page)
	}
}
