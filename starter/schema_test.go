package starter

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	generator "github.com/invopop/jsonschema"
	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/docs/schemas/schematest"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// comments are those of the types of inputs and outputs: to read them takes a while.
var comments = map[string]string{}

// reflector makes schemas of types, with the comments in the code.
func reflector(t *testing.T) *generator.Reflector {
	t.Helper()
	r := &generator.Reflector{
		Anonymous: true,
		Namer: func(t reflect.Type) string {
			if t.Name() == "" || t.PkgPath() == "" {
				return ""
			}
			return path.Base(t.PkgPath()) + "." + t.Name()
		},
	}
	if len(comments) == 0 {
		for _, sources := range []string{".", "../api", "../bridge", "../rules", "../config", "../secret", "../sections", "../notify", "../checks", "../audit"} {
			if err := r.AddGoComments("drydock.dev/drydock/starter", sources, generator.WithFullComment()); err != nil {
				t.Fatal(err)
			}
		}
		for at, comment := range r.CommentMap {
			comments[at] = strings.Join(strings.Fields(comment), " ")
		}
	}
	r.CommentMap = maps.Clone(comments)
	return r
}

// schemaOf generates the schema of an output from its type and the comments in the code.
func schemaOf(t *testing.T, name string, of any) []byte {
	t.Helper()
	r := reflector(t)
	// Later versions may add fields.
	r.AllowAdditionalProperties = true
	r.Mapper = func(t reflect.Type) *generator.Schema {
		switch t {
		case reflect.TypeFor[time.Time]():
			return &generator.Schema{Type: "string", Format: "date-time", Pattern: "Z$"}
		case reflect.TypeFor[period.Duration]():
			return &generator.Schema{Type: "string", Pattern: `^([0-9.]+(h|m|s|ms|µs|ns))+$`}
		case reflect.TypeFor[health.SignedDuration]():
			return &generator.Schema{Type: "string", Pattern: `^-?([0-9.]+(h|m|s|ms|µs|ns))+$`}
		case reflect.TypeFor[schedule.Amount]():
			return &generator.Schema{OneOf: []*generator.Schema{{Type: "integer"}, {Type: "string"}}}
		case reflect.TypeFor[api.List[api.Holder]]():
			return &generator.Schema{}
		}
		return nil
	}
	schema := r.Reflect(of)
	if root := schema.Definitions[strings.TrimPrefix(schema.Ref, "#/$defs/")]; root != nil {
		root.Required = slices.DeleteFunc(root.Required, func(name string) bool { return isOptional(reflect.TypeOf(of), name) })
	}
	schema.ID, schema.Title = "", "drydock "+strings.Join(outputs[name].commands, ", drydock ")
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	forInputsOnly(plain)
	return readable(t, plain)
}

// forInputsOnly takes off what the fields of inputs declare beside their types: what an output says may not be valid, and later
// versions may say more.
func forInputsOnly(schema any) {
	switch node := schema.(type) {
	case map[string]any:
		for _, keyword := range []string{
			"default", "enum", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "uniqueItems",
			"x-env", "x-flag", "x-required", "x-shared",
		} {
			if _, field := node[keyword].(map[string]any); !field {
				delete(node, keyword)
			}
		}
		if word, _ := node["format"].(string); formats[word].pattern != "" {
			delete(node, "format")
		}
		for _, part := range node {
			forInputsOnly(part)
		}
	case []any:
		for _, part := range node {
			forInputsOnly(part)
		}
	}
}

func readable(t *testing.T, value any) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestSchemasAreThoseOfTheOutputs compares the published schemas with the code; UPDATE_GOLDEN=1 writes them instead.
func TestSchemasAreThoseOfTheOutputs(t *testing.T) {
	want := map[string][]byte{}
	for name, output := range outputs {
		want[name] = schemaOf(t, name, output.of)
	}
	published(t, filepath.Join("..", "docs", "schemas"), want)
}

// published compares the schemas in a folder with those of the code; UPDATE_GOLDEN=1 writes them instead.
func published(t *testing.T, folder string, schemas map[string][]byte) {
	t.Helper()
	var files []string
	for name, want := range schemas {
		file := filepath.Join(folder, name+".schema.json")
		files = append(files, file)
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not that of the code (UPDATE_GOLDEN=1 writes it): want - got +\n%s", file, diff)
		}
	}
	slices.Sort(files)
	if there, _ := filepath.Glob(filepath.Join(folder, "*.schema.json")); !slices.Equal(there, files) {
		t.Errorf("published are %v, want %v", there, files)
	}
}

// isOptional reports whether the field of a JSON name may be absent. Of several fields the least embedded counts, as for encoding/json.
func isOptional(of reflect.Type, name string) (optional bool) {
	if of.Kind() != reflect.Struct {
		return false
	}
	depth := 0
	for _, f := range reflect.VisibleFields(of) {
		tag := strings.Split(f.Tag.Get("json"), ",")
		if tag[0] == name && (depth == 0 || len(f.Index) < depth) {
			depth, optional = len(f.Index), len(tag) > 1
		}
	}
	return optional
}

func TestEveryOutputHasASchema(t *testing.T) {
	known := map[string]bool{}
	for _, output := range outputs {
		for _, command := range output.commands {
			known[command] = true
		}
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "drydock ")
		if c.Flags().Lookup("output") != nil && c.GroupID != "tell" && (!c.HasParent() || c.Parent().GroupID != "tell") && !known[name] {
			t.Errorf("%s has an output and no schema", name)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(invocation.New(invocation.Process{Args: []string{"drydock"}})))
}

func TestSchemasFromTheCommandLine(t *testing.T) {
	code, out, _ := runHere(t, "drydock", "schema")
	if code != 0 || !strings.Contains(out, "status") || !strings.Contains(out, "audit verify") {
		t.Errorf("code %d\n%s", code, out)
	}
	if code, out, _ = runHere(t, "drydock", "schema", "status"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("code %d\n%s", code, out)
	}
	if code, _, said := runHere(t, "drydock", "schema", "nothing"); code != 2 || !strings.Contains(said, "want one of") {
		t.Errorf("code %d, %s", code, said)
	}
}

func aPlan(t *testing.T, now time.Time) api.Plan {
	t.Helper()
	p, err := plan.Decode("kernel", []byte(`{"nodes":["a"],"maintenance":{"priority":3},"strategy":{"maxParallel":"10%","canary":{"nodes":1,"soak":"1h"},"onBlocked":"skip"}}`))
	if err != nil {
		t.Fatal(err)
	}
	all := api.PlanOf(api.PlanStatus{Plan: p, Nodes: []api.PlanNode{{Node: "a", State: "held", Since: now}}})
	all.MoreNodes, all.Slowest = 1, []api.SlowNode{views.SlowNode(startertest.Draining().Known())}
	return all
}

// TestOutputsHoldToTheirSchemas has values with as much in them as the tests have.
func TestOutputsHoldToTheirSchemas(t *testing.T) {
	seen := []client.View{past("1", 30), past("2", 3), startertest.View(api.Ready)}
	ended := past("3", 2)
	now := startertest.Noon
	values := map[string][]any{
		"summaries": {client.Summaries(seen), client.Summaries(nil)},
		"summary":   {seen[0].Summary()},
		"status":    {seen[0].Known(), seen[2].Known(), client.View{}.Known()},
		"limits":    {api.SchedulerOf(api.State{ObservedAt: &now}), api.SchedulerOf(api.State{Holders: make([]api.Holder, api.PackAbove+1)})},
		"freezes":   {[]schedule.Freeze(nil), []schedule.Freeze{{By: "ann", At: now}}},
		"preflight": {[]any{startertest.StoppedReport()}},
		"doctor":    {startertest.SickReport()},
		"history":   {[]record.Record(nil), []record.Record{ended.Record("", now)}},
		"report":    {record.Summarize([]record.Record{ended.Record("", now)}, now.Add(-24*time.Hour), now)},
		"plan": {
			aPlan(t, now), client.PlanView{}.Known(),
		},
		"plans":        {api.Plans{client.PlanView{}.Summary()}, api.Plans(nil)},
		"plan-summary": {client.PlanView{Result: &api.PlanResult{Phase: api.PlanCompleted}}.Summary()},
		"plan-preview": {api.PlanPreview{Spec: *aPlan(t, now).Spec, Waves: []api.PlanWave{{Nodes: []string{"a"}}}, Estimate: &api.PlanEstimate{}}},
		"version":      {api.Versions{Client: "v1", Go: "go1"}},
	}
	for name, all := range values {
		for _, value := range all {
			for _, format := range []string{terminal.FormatJSON, terminal.FormatYAML} {
				var out bytes.Buffer
				o := terminal.Output{Format: format}
				if err := o.Write(&out, value); err != nil {
					t.Fatal(err)
				}
				schematest.Holds(t, name, out.Bytes())
			}
		}
	}
}

// TestOutputsHaveTheNamesOfTheQueries: whoever reads the answer to a query and the output of a command finds one fact under one name.
func TestOutputsHaveTheNamesOfTheQueries(t *testing.T) {
	// Plans and checks have parts of their answers in a form of their own. What a check counts is in counts.
	elsewhere := map[string][]string{
		"plan": {"failure", "troubles", "nextOffset", "cells"},
		"health": {
			"inFlightRemediations", "nextOffset",
			"observedNodes", "healthyNodes", "minHealthy", "soon", "unhealthy", "remediating",
		},
	}
	for name, answer := range map[string]any{
		"status": api.Status{}, "limits": api.State{}, "plan": api.PlanStatus{}, "health": api.HealthStatus{},
	} {
		output := propertiesOf(t, schemaOf(t, name, outputs[name].of))
		for _, field := range propertiesOf(t, schemaOf(t, name, answer)) {
			if !slices.Contains(output, field) && !slices.Contains(elsewhere[name], field) {
				t.Errorf("%s -o json has no %s, which the query's answer has", name, field)
			}
		}
	}
}

// propertiesOf are the names of a schema's own properties.
func propertiesOf(t *testing.T, schema []byte) []string {
	t.Helper()
	var of struct {
		Ref         string `json:"$ref"`
		Definitions map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(schema, &of); err != nil {
		t.Fatal(err)
	}
	names := slices.Collect(maps.Keys(of.Definitions[strings.TrimPrefix(of.Ref, "#/$defs/")].Properties))
	if len(names) == 0 {
		t.Fatalf("%s has no properties", of.Ref)
	}
	return names
}
