package monitoring_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// rare are series of Temporal's SDK that are there only once something happened that does not happen here: workflows or
// workflow tasks fail, one is too long, a long poll fails, or the worker's memory of workflows is full.
var rare = []string{
	"temporal_workflow_failed", "temporal_workflow_canceled", "temporal_workflow_continue_as_new", "temporal_workflow_task_execution_failed",
	"temporal_long_request_failure", "temporal_activity_execution_failed", "temporal_request_failure",
}

// query is one of a panel or of an alert, ready to be asked.
type query struct{ where, text string }

// dashboard is what Grafana draws.
type dashboard struct {
	Title  string
	Panels []panel
}

// panel is a part of a dashboard. Its place is in columns, of which there are 24, and in rows.
type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct {
		Expr, LegendFormat string
		Instant            bool
	}
}

// dashboards are all, by the names of their files.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob("../dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all
}

// queries are those of all dashboards and of all alerts.
func queries(t *testing.T) (all []query) {
	t.Helper()
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				all = append(all, query{file + ": " + p.Title, filled(target.Expr)})
			}
		}
	}
	for _, group := range read(t, "../rules.yaml").Groups {
		for _, rule := range group.Rules {
			all = append(all, query{rule.Alert, rule.Expr})
		}
	}
	return all
}

// filled is a query as Grafana sends it, over a few minutes of scrapes that are a second apart.
func filled(expr string) string {
	return strings.NewReplacer("$__rate_interval", "10s", "$__range", "10m", "$job", ".*").Replace(expr)
}

// selectors are the series that a query names, without what matches their values: those change.
func selectors(text string) ([]string, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return nil, err
	}
	var all []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			var matchers []string
			for _, m := range s.LabelMatchers {
				matchers = append(matchers, m.String())
			}
			all = append(all, "{"+strings.Join(matchers, ",")+"}")
		}
		return nil
	})
	return all, nil
}

// feed is the program that gives a Prometheus something to see.
type feed struct {
	lines *json.Decoder
	goOn  io.WriteCloser
}

// line is what the feed tells: see its command.
type line struct {
	Worker, Step string
	Shows        []string
	Last         bool
}

func startFeed(t *testing.T) (feed, string) {
	t.Helper()
	cmd := exec.Command("go", "run", "./deploy/monitoring/feed")
	cmd.Dir, cmd.Stderr = "../../..", os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the feed: %v", err)
		}
	})
	f := feed{json.NewDecoder(bufio.NewReader(out)), in}
	first := f.next(t)
	return f, first.Worker
}

// next is what it tells next.
func (f feed) next(t *testing.T) (l line) {
	t.Helper()
	if err := f.lines.Decode(&l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestEveryQueryFindsWhatItNames scrapes a worker while maintenances go through everything that they go through, sees each
// step in Prometheus, and asks then for everything that dashboards show and alerts look at.
func TestEveryQueryFindsWhatItNames(t *testing.T) {
	began := time.Now()
	f, worker := startFeed(t)
	s := startPrometheus(t, worker)
	scraped := time.Now()
	for {
		step := f.next(t)
		for _, shown := range step.Shows {
			s.eventually(t, fmt.Sprintf("%s, which shows by %s", step.Step, shown), func() error {
				found, err := s.now(t.Context(), shown)
				if err == nil && len(found.Result) == 0 {
					err = errors.New("no series")
				}
				return err
			})
		}
		t.Logf("%5.1fs %s", time.Since(began).Seconds(), step.Step)
		if step.Last {
			break // it runs on, to be asked
		}
		if _, err := io.WriteString(f.goOn, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	asked, named := 0, map[string]bool{}
	for _, q := range queries(t) {
		asked++
		if _, err := s.between(t.Context(), q.text, began, time.Now()); err != nil {
			t.Errorf("%s: %s: %v", q.where, q.text, err)
			continue
		}
		wanted, err := selectors(q.text)
		if err != nil {
			t.Errorf("%s: %s: %v", q.where, q.text, err)
		}
		for _, selector := range wanted {
			found, err := s.series(t.Context(), selector)
			isRare := slices.ContainsFunc(rare, func(name string) bool { return strings.Contains(selector, `"`+name+`"`) })
			if err != nil || len(found) == 0 && !isRare {
				t.Errorf("%s: %s names no series that there is (%v)", q.where, selector, err)
			}
			for _, series := range found {
				named[series["__name__"]] = true
			}
		}
	}
	t.Logf("%d queries name %d metrics", asked, len(named))
	s.shows(t, began)
	s.alerts(t)
	for file, d := range dashboards(t) {
		s.draw(t, file, d, scraped)
	}
}

// shows checks panels that are to have something to show of what happened.
func (s server) shows(t *testing.T, began time.Time) {
	t.Helper()
	for _, q := range queries(t) {
		if !slices.ContainsFunc([]string{": By phase", ": Blocked pods by reason", ": Requests a second, by answer", ": Deliveries", ": Drains, by how long they took"},
			func(panel string) bool { return strings.HasSuffix(q.where, panel) }) {
			continue
		}
		found, err := s.between(t.Context(), "("+q.text+") > 0", began, time.Now())
		if err != nil || len(found.Result) == 0 && !strings.Contains(q.text, "given_up") && !strings.Contains(q.text, "refused") {
			t.Errorf("%s shows nothing (%v): %s", q.where, err, q.text)
		}
	}
	native := `histogram_count(drydock_phase_duration_seconds{phase="Draining"}) > 0`
	if found, err := s.now(t.Context(), native); err != nil || len(found.Result) == 0 {
		t.Errorf("there is no native histogram (%v): %s", err, native)
	}
}

// alerts checks that the rules are evaluated, and that nothing critical is said of what went as it should.
func (s server) alerts(t *testing.T) {
	t.Helper()
	rules, err := get[struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}](t.Context(), s, "rules", url.Values{})
	if err != nil || len(rules.Groups) == 0 {
		t.Fatalf("%d groups of rules, %v", len(rules.Groups), err)
	}
	var firing []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				t.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
			if rule.State == "firing" {
				firing = append(firing, rule.Name)
			}
		}
	}
	slices.Sort(firing)
	if want := []string{"DrydockSLAExpired"}; !slices.Equal(firing, want) {
		t.Errorf("it says %v, want %v", firing, want)
	}
}
