package monitoring_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"drydock/deploy/monitoring"
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
			if want := "/docs/runbooks/" + page; !strings.HasSuffix(rule.Annotations["runbook_url"], want) {
				t.Errorf("%s: runbook_url %q does not end in %s", rule.Alert, rule.Annotations["runbook_url"], want)
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

// dashboard is what of a dashboard is looked at here.
type dashboard struct {
	UID    string `json:"uid"`
	Title  string `json:"title"`
	Panels []struct {
		ID      int            `json:"id"`
		Type    string         `json:"type"`
		Title   string         `json:"title"`
		GridPos map[string]int `json:"gridPos"`
		Targets []struct {
			Expr       string            `json:"expr"`
			Datasource map[string]string `json:"datasource"`
		} `json:"targets"`
	} `json:"panels"`
}

func TestDashboardsAreInOrder(t *testing.T) {
	files, err := monitoring.Dashboards.ReadDir("dashboards")
	if err != nil || len(files) != 3 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	uids := map[string]bool{}
	for _, file := range files {
		text, err := monitoring.Dashboards.ReadFile("dashboards/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file.Name(), err)
		}
		if uids[d.UID] || !strings.HasPrefix(d.UID, "drydock-") || !strings.HasPrefix(d.Title, "Drydock / ") {
			t.Errorf("%s: uid %q, title %q", file.Name(), d.UID, d.Title)
		}
		uids[d.UID] = true
		taken, titles := map[[2]int]string{}, map[string]bool{}
		for _, p := range d.Panels {
			if p.Type == "row" {
				titles = map[string]bool{}
				continue
			}
			if p.Title == "" || titles[p.Title] || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d, %q, has no title of its own or no query", file.Name(), p.ID, p.Title)
			}
			titles[p.Title] = true
			for _, target := range p.Targets {
				if target.Datasource["uid"] != "${datasource}" || !strings.Contains(target.Expr, `job=~"$job"`) {
					t.Errorf("%s: %s: a query of another data source or of all jobs: %s", file.Name(), p.Title, target.Expr)
				}
			}
			at := p.GridPos
			for x := at["x"]; x < at["x"]+at["w"]; x++ {
				for y := at["y"]; y < at["y"]+at["h"]; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: %q is drawn over %q", file.Name(), p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}
