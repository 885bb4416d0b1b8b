package starter

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	generator "github.com/invopop/jsonschema"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/docs/schemas"

	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/starter/input"
)

// inputTypes are what the workflows take: a value of its type, and the defaults that are merged under it.
var inputTypes = map[string]struct {
	of       any
	title    string
	defaults map[string]string
	// looser are fields that are taken in another form too, parts those that are inputs of maintenances.
	looser, parts []string
	// narrower are values of fields that are all this input takes.
	narrower map[string][]any
}{
	"maintenance": {
		spec.Maintenance{}, "The input of a NodeMaintenance", map[string]string{
			"": spec.Defaults, "validation": validation.Defaults, "drain.plan": `{"include": ["Default"], "static": "skip"}`,
		},
		[]string{"drain.plan", "drain.plan.tiers[].podSelector"}, nil, nil,
	},
	"plan": {
		plan.Plan{}, "The input of a MaintenancePlan", map[string]string{
			"": plan.Defaults, "drainPlan": `{"include": ["Default", "DaemonSet", "Static"], "static": "skip"}`,
		},
		[]string{"drainPlan", "drainPlan.tiers[].podSelector"}, []string{"maintenance"},
		map[string][]any{"drainPlan.static": {spec.SkipStatic}},
	},
	"health": {
		health.Spec{}, "The input of a HealthCheck", nil, nil, []string{"maintenance.input", "escalatingRemediations[].maintenance.input"}, nil,
	},
}

// inputSchema generates the schema of an input: strict, in one tree, in the order of the declarations.
func inputSchema(t *testing.T, name string) *generator.Schema {
	t.Helper()
	r := reflector(t)
	r.DoNotReference, r.ExpandedStruct, r.RequiredFromJSONSchemaTags = true, true, true
	r.Mapper = func(t reflect.Type) *generator.Schema {
		switch t {
		case reflect.TypeFor[time.Time]():
			return &generator.Schema{Type: "string", Format: "date-time"}
		case reflect.TypeFor[period.Duration]():
			return &generator.Schema{Type: "string", Format: "duration", Pattern: `^` + duration + `$`}
		case reflect.TypeFor[health.SignedDuration]():
			return &generator.Schema{Type: "string", Format: "duration", Pattern: `^-?` + duration + `$`}
		case reflect.TypeFor[schedule.Amount]():
			return &generator.Schema{OneOf: []*generator.Schema{{Type: "integer"}, {Type: "string"}}, Format: "amount"}
		case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[corev1.NodeSelector](), reflect.TypeFor[metav1.LabelSelector]():
			return &generator.Schema{Type: "object"}
		}
		return nil
	}
	// A field is described by its own comment, not by that of its type.
	maps.DeleteFunc(r.CommentMap, func(at, _ string) bool { return strings.Count(path.Base(at), ".") == 1 })
	schema := r.Reflect(inputTypes[name].of)
	schema.ID, schema.Title = "", inputTypes[name].title
	for _, looser := range inputTypes[name].looser {
		at(t, schema, looser).Type = ""
	}
	for under, defaults := range inputTypes[name].defaults {
		setDefaults(t, at(t, schema, under), defaults)
	}
	for field, values := range inputTypes[name].narrower {
		at(t, schema, field).Enum = values
	}
	nameFields(schema)
	for _, part := range inputTypes[name].parts {
		putMaintenance(t, at(t, schema, part))
	}
	return schema
}

// duration is a pattern of Go's durations, and days before them.
const duration = `(0|[0-9]+d([0-9.]+(h|m|s|ms|us|µs|ns))*|([0-9.]+(h|m|s|ms|us|µs|ns))+)`

// nameFields begins the descriptions of fields with their names in JSON, where the comments have those in Go.
func nameFields(schema *generator.Schema) {
	if schema.Items != nil {
		nameFields(schema.Items)
	}
	if schema.Properties == nil {
		return
	}
	for field := schema.Properties.Oldest(); field != nil; field = field.Next() {
		if first, rest, _ := strings.Cut(field.Value.Description, " "); strings.EqualFold(first, field.Key) {
			field.Value.Description = field.Key + " " + rest
		}
		nameFields(field.Value)
	}
}

// putMaintenance makes a schema that of a part of a maintenance's input. Its flags are those of the maintenance.
func putMaintenance(t *testing.T, schema *generator.Schema) {
	t.Helper()
	of := inputSchema(t, "maintenance")
	for _, identity := range spec.Identities() {
		if identity != "additionalRequestors" {
			of.Properties.Delete(identity)
		}
	}
	schema.Properties, schema.AdditionalProperties, schema.Extras = of.Properties, of.AdditionalProperties, map[string]any{"x-input": "maintenance"}
}

// at is the schema of a field, or of the entries of a list, by its path.
func at(t *testing.T, schema *generator.Schema, path string) *generator.Schema {
	t.Helper()
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		name, list := strings.CutSuffix(name, "[]")
		found, ok := schema.Properties.Get(name)
		if !ok {
			t.Fatalf("there is no field %s", name)
		}
		if schema = found; list {
			schema = found.Items
		}
	}
	return schema
}

// setDefaults puts the values of an object into the schemas of its fields.
func setDefaults(t *testing.T, schema *generator.Schema, defaults string) {
	t.Helper()
	var values map[string]json.RawMessage
	if err := json.Unmarshal([]byte(defaults), &values); err != nil {
		t.Fatal(err)
	}
	for name, value := range values {
		if field := at(t, schema, name); field.Properties != nil && field.Properties.Len() > 0 {
			setDefaults(t, field, string(value))
		} else {
			field.Default = value
		}
	}
}

// TestSchemasAreThoseOfTheInputs compares the published schemas with the code; UPDATE_GOLDEN=1 writes them instead.
func TestSchemasAreThoseOfTheInputs(t *testing.T) {
	want := map[string][]byte{}
	for name := range inputTypes {
		want[name] = readable(t, inputSchema(t, name))
	}
	published(t, filepath.Join("..", "docs", "schemas", "inputs"), want)
}

// TestTheReferenceListsTheFields keeps the reference's tables of fields what the schemas say; UPDATE_GOLDEN=1 writes them.
func TestTheReferenceListsTheFields(t *testing.T) {
	file := filepath.Join("..", "docs", "reference.md")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for name := range inputTypes {
		begin, end := fmt.Sprintf("<!-- fields of %s: made of its schema -->\n", name), "<!-- end of fields -->\n"
		before, rest, found := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no %q up to %q", file, begin, end)
		}
		table := "| field | default | meaning |\n| --- | --- | --- |\n"
		input, err := schemas.Read(name, readable(t, inputSchema(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range input.Below() {
			table += fmt.Sprintf("| `%s` | %s | %s |\n", f.Path, defaultOf(f), f.Row())
		}
		text = before + begin + table + end + after
	}
	if text == string(content) {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Fatalf("%s is not what the schemas say: make it anew with UPDATE_GOLDEN=1 go test ./starter/", file)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func defaultOf(f schemas.Field) string {
	switch text := f.DefaultText(); {
	case f.Required:
		return "required"
	case text != "":
		return "`" + text + "`"
	case f.Type == "boolean":
		return "`false`"
	}
	return ""
}

// TestValuesOfFieldsAreThoseThatAreTaken holds the enumerations that the types declare to what the rules refuse.
func TestValuesOfFieldsAreThoseThatAreTaken(t *testing.T) {
	for _, f := range schemas.InputOf("maintenance").Below() {
		if len(f.Values) == 0 || strings.Contains(f.Path, "[]") || f.List {
			continue
		}
		values := map[string]any{"node": "n"}
		if err := input.SetField(values, f.Path, "no such value"); err != nil {
			t.Fatal(err)
		}
		_, err := spec.Decode(readable(t, values), nil)
		if want := fmt.Sprintf("is not one of %s", strings.Join(f.Values, ", ")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", f.Path, err, want)
		}
		for _, value := range f.Values {
			values := map[string]any{"node": "n", "sla": map[string]any{"after": "10m"}}
			if err := input.SetField(values, f.Path, value); err != nil {
				t.Fatal(err)
			}
			if _, err := spec.Decode(readable(t, values), nil); err != nil {
				t.Errorf("%s: %s is declared and refused: %v", f.Path, value, err)
			}
		}
	}
}

func TestExplain(t *testing.T) {
	for path, want := range map[string][]string{
		"":                                   {"maintenance", "plan", "The input of a NodeMaintenance"},
		"maintenance":                        {"readyTimeout", "duration", "node", "required"},
		"maintenance.drain.escalation":       {"list of objects", `[{"after":"1h","do":"giveBack"}]`, "--escalation", "docs/reference.md#the-escalation", "after"},
		"maintenance.DRAIN.Escalation[0].do": {"notify, bypassBudget, kill, giveBack, fail"},
		"plan.strategy.onBlocked":            {"wait, skip, abort", "--on-blocked"},
		"plan.maintenance.drain.mode":        {"evict, wait, external, none", "--drain-mode"},
	} {
		args := []string{"explain"}
		if path != "" {
			args = append(args, path)
		}
		code, out, said := runHere(t, "drydock", args...)
		for _, w := range want {
			if code != 0 || !strings.Contains(out, w) {
				t.Errorf("%v: code %d, want %q in\n%s%s", args, code, w, out, said)
			}
		}
	}
	if code, _, said := runHere(t, "drydock", "explain", "plan.strategy.speed"); code != 2 || !strings.Contains(said, "there is no plan.strategy.speed: want one of type, maxParallel") {
		t.Errorf("code %d, %s", code, said)
	}
	if code, out, said := runHere(t, "drydock", "schema", "input-plan"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("code %d, %s", code, said)
	}
}
