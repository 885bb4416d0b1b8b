package monitoring_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/deploy/monitoring"
)

// dashboard is what Grafana's schema, in the version of schemaVersion, has of a dashboard. Fields that it does not know Grafana
// ignores without a word, and they are an error here.
type dashboard struct {
	UID           string            `json:"uid"`
	Title         string            `json:"title"`
	Description   string            `json:"description"`
	Tags          []string          `json:"tags"`
	SchemaVersion int               `json:"schemaVersion"`
	Version       int               `json:"version"`
	Editable      bool              `json:"editable"`
	GraphTooltip  int               `json:"graphTooltip"`
	Refresh       string            `json:"refresh"`
	Timezone      string            `json:"timezone"`
	Time          map[string]string `json:"time"`
	Annotations   map[string][]any  `json:"annotations"`
	Links         []json.RawMessage `json:"links"`
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type variable struct {
	Name       string          `json:"name"`
	Label      string          `json:"label"`
	Type       string          `json:"type"`
	Datasource datasource      `json:"datasource"`
	Query      json.RawMessage `json:"query"`
	Definition string          `json:"definition"`
	Refresh    int             `json:"refresh"`
	Multi      bool            `json:"multi"`
	IncludeAll bool            `json:"includeAll"`
	AllValue   string          `json:"allValue"`
	Current    map[string]any  `json:"current"`
	Options    []any           `json:"options"`
	Regex      string          `json:"regex"`
	Sort       int             `json:"sort"`
	Hide       int             `json:"hide"`
}

type panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  datasource `json:"datasource"`
	GridPos     struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []struct {
		RefID        string     `json:"refId"`
		Datasource   datasource `json:"datasource"`
		Expr         string     `json:"expr"`
		LegendFormat string     `json:"legendFormat"`
		Format       string     `json:"format"`
		Instant      bool       `json:"instant"`
		Range        bool       `json:"range"`
	} `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit       string           `json:"unit"`
			Min        *float64         `json:"min"`
			Mappings   []map[string]any `json:"mappings"`
			Custom     map[string]any   `json:"custom"`
			Thresholds struct {
				Mode  string `json:"mode"`
				Steps []struct {
					Color string   `json:"color"`
					Value *float64 `json:"value"`
				} `json:"steps"`
			} `json:"thresholds"`
		} `json:"defaults"`
		Overrides []any `json:"overrides"`
	} `json:"fieldConfig"`
	Options   map[string]any `json:"options"`
	Collapsed bool           `json:"collapsed"`
	Panels    []panel        `json:"panels"`
}

// options are those that Grafana's panels of a type have, as far as they are used.
var options = map[string][]string{
	"row":            nil,
	"stat":           {"reduceOptions", "colorMode", "graphMode", "justifyMode", "orientation", "textMode"},
	"bargauge":       {"displayMode", "orientation", "reduceOptions", "showUnfilled"},
	"timeseries":     {"legend", "tooltip"},
	"state-timeline": {"mergeValues", "showValue", "alignValue", "rowHeight", "legend", "tooltip"},
	"heatmap":        {"calculate", "yAxis", "color", "tooltip", "legend", "cellGap"},
}

// custom are the field options that a panel's type adds.
var custom = map[string][]string{
	"timeseries":     {"drawStyle", "fillOpacity", "lineWidth", "showPoints", "spanNulls", "stacking"},
	"state-timeline": {"fillOpacity", "lineWidth"},
}

// units are Grafana's names of what is measured.
var units = []string{"", "none", "short", "s", "bytes", "percentunit", "ops", "reqps"}

func readDashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := monitoring.Dashboards.ReadDir("dashboards")
	if err != nil || len(files) != 3 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		text, err := monitoring.Dashboards.ReadFile("dashboards/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&d); err != nil {
			t.Errorf("%s: %v", file.Name(), err)
		}
		all[file.Name()] = d
	}
	return all
}

func TestDashboardsAreInOrder(t *testing.T) {
	uids := map[string]bool{}
	for file, d := range readDashboards(t) {
		if uids[d.UID] || len(d.UID) > 40 || !strings.HasPrefix(d.UID, "drydock-") || !strings.HasPrefix(d.Title, "Drydock / ") {
			t.Errorf("%s: uid %q, title %q", file, d.UID, d.Title)
		}
		uids[d.UID] = true
		if d.SchemaVersion < 36 || d.Refresh == "" || d.Time["from"] == "" || d.Time["to"] == "" || len(d.Panels) == 0 {
			t.Errorf("%s: schema %d, refresh %q, time %v, %d panels", file, d.SchemaVersion, d.Refresh, d.Time, len(d.Panels))
		}
		titles := map[string]bool{}
		for _, p := range d.Panels {
			switch {
			case p.Type == "row":
				titles = map[string]bool{}
			case p.Title == "" || titles[p.Title]:
				t.Errorf("%s: panel %d has no title of its own in its row: %q", file, p.ID, p.Title)
			default:
				titles[p.Title] = true
			}
			for _, problem := range p.problems() {
				t.Errorf("%s: panel %d, %s: %s", file, p.ID, p.Title, problem)
			}
		}
	}
}

// problems are what Grafana would draw wrong, or not at all.
func (p panel) problems() (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	known, ok := options[p.Type]
	if !ok {
		add("no panel is of type %q", p.Type)
	}
	for name := range p.Options {
		if !slices.Contains(known, name) {
			add("%s has no option %s", p.Type, name)
		}
	}
	field := p.FieldConfig.Defaults
	for name := range field.Custom {
		if !slices.Contains(custom[p.Type], name) {
			add("fields of %s have no option %s", p.Type, name)
		}
	}
	if !slices.Contains(units, field.Unit) {
		add("unit %q", field.Unit)
	}
	for i, step := range field.Thresholds.Steps {
		// Grafana takes the first, which has no value, for everything below the second.
		before := field.Thresholds.Steps[max(i-1, 0)].Value
		if step.Color == "" || (step.Value == nil) != (i == 0) || i > 1 && *step.Value <= *before {
			add("threshold %d is out of order", i)
		}
	}
	if p.Type == "row" {
		return all
	}
	refs := map[string]bool{}
	for _, target := range p.Targets {
		if target.RefID == "" || refs[target.RefID] {
			add("query %q is there twice", target.RefID)
		}
		refs[target.RefID] = true
		if target.Instant == target.Range || target.Instant != (p.Type == "stat" || p.Type == "bargauge") {
			add("%s asks for instant %t, range %t", p.Type, target.Instant, target.Range)
		}
		if (target.Format == "heatmap") != (p.Type == "heatmap") {
			add("%s is drawn of format %q", p.Type, target.Format)
		}
	}
	if len(refs) == 0 {
		add("it asks nothing")
	}
	return all
}

func TestPanelsHaveNumbersAndPlacesOfTheirOwn(t *testing.T) {
	for file, d := range readDashboards(t) {
		numbers, taken := map[int]string{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if other, is := numbers[p.ID]; is || p.ID < 1 {
				t.Errorf("%s: %q and %q are both panel %d", file, p.Title, other, p.ID)
			}
			numbers[p.ID] = p.Title
			at := p.GridPos
			if at.W < 1 || at.H < 1 || at.X < 0 || at.Y < 0 || at.X+at.W > 24 {
				t.Errorf("%s: %q is at %+v, and a dashboard is 24 wide", file, p.Title, at)
			}
			for x := at.X; x < at.X+at.W; x++ {
				for y := at.Y; y < at.Y+at.H; y++ {
					if other, is := taken[[2]int{x, y}]; is {
						t.Fatalf("%s: %q is drawn over %q", file, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

var usesVariable = regexp.MustCompile(`\$\{?(\w+)`)

// Whoever imports a dashboard chooses the data source and the jobs: everything has to ask those.
func TestDashboardsAskTheirVariables(t *testing.T) {
	prometheus := datasource{Type: "prometheus", UID: "${datasource}"}
	for file, d := range readDashboards(t) {
		declared := map[string]variable{}
		for _, v := range d.Templating.List {
			declared[v.Name] = v
		}
		source, job := declared["datasource"], declared["job"]
		if source.Type != "datasource" || string(source.Query) != `"prometheus"` {
			t.Errorf("%s: its data source is %s %s", file, source.Type, source.Query)
		}
		if job.Type != "query" || job.Datasource != prometheus || !job.Multi || !job.IncludeAll || job.Refresh != 2 {
			t.Errorf("%s: its jobs are not those that are there: %+v", file, job)
		}
		for _, p := range d.Panels {
			if p.Type != "row" && p.Datasource != prometheus {
				t.Errorf("%s: %s is of data source %v", file, p.Title, p.Datasource)
			}
			for _, target := range p.Targets {
				if target.Datasource != prometheus || !strings.Contains(target.Expr, `job=~"$job"`) {
					t.Errorf("%s: %s: a query of another data source or of all jobs: %s", file, p.Title, target.Expr)
				}
				for _, used := range usesVariable.FindAllStringSubmatch(target.Expr+target.LegendFormat, -1) {
					if _, ok := declared[used[1]]; !ok && used[1] != "__rate_interval" && used[1] != "__range" {
						t.Errorf("%s: %s asks for variable %s, which there is not", file, p.Title, used[1])
					}
				}
			}
		}
	}
}
