package starter

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	generator "github.com/invopop/jsonschema"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/docs/schemas"
	"drydock.dev/drydock/rules/health"
)

// crd is a CustomResourceDefinition. Its spec is the input of a workflow, and its status a type.
type crd struct {
	plural, short, input string
	of, status           any
	// left are fields of the input that an object does not have.
	left []string
	// changing are fields of the spec that may change while the object is there; all may where it is nil.
	changing []string
	// root and spec are rules of the whole object, and of its spec beside those of the input.
	root, spec []rule
	columns    []column
}

// column is what kubectl get shows; wide with -o wide alone.
type column struct {
	name, of, path string
	wide           bool
}

var age = column{name: "Age", of: "date", path: ".metadata.creationTimestamp"}

// drydocks are fields of a maintenance that Drydock alone sets.
var drydocks = slices.DeleteFunc(slices.Clone(shared.left), func(name string) bool { return name == "node" || name == "requestor" })

var crds = map[string]crd{
	"NodeMaintenance": {
		plural: "nodemaintenances", short: "nm", input: "maintenance", of: v1alpha1.NodeMaintenance{}, status: v1alpha1.NodeMaintenanceStatus{},
		left: drydocks, changing: []string{}, root: rulesOfNames,
		columns: []column{
			{name: "Node", of: "string", path: ".spec.node"},
			{name: "Phase", of: "string", path: ".status.phase"},
			{name: "Requestor", of: "string", path: ".status.requestors[0].name"},
			{name: "Ready", of: "string", path: `.status.conditions[?(@.type=="Ready")].status`},
			age,
			{name: "Reason", of: "string", path: ".spec.reason", wide: true},
			{name: "Message", of: "string", path: ".status.message", wide: true},
		},
	},
	"MaintenancePlan": {
		plural: "maintenanceplans", short: "mp", input: "plan", of: v1alpha1.MaintenancePlan{}, status: v1alpha1.MaintenancePlanStatus{},
		left: []string{"object", "reportTo"}, root: []rule{shortName("a plan", 53)},
		changing: []string{"nodes", "selector", "nodeSelector", "all", "exclude", "stage", "strategy.maxParallel"}, spec: rulesOfStages,
		columns: []column{
			{name: "Phase", of: "string", path: ".status.phase"},
			{name: "Nodes", of: "integer", path: ".status.counts.total"},
			{name: "Done", of: "integer", path: ".status.counts.done"},
			{name: "Running", of: "integer", path: ".status.counts.running"},
			{name: "Failed", of: "integer", path: ".status.counts.failed"},
			age,
			{name: "Waiting", of: "integer", path: ".status.counts.waiting", wide: true},
			{name: "Held", of: "integer", path: ".status.counts.held", wide: true},
			{name: "Stage", of: "string", path: ".status.stage", wide: true},
			{name: "Reason", of: "string", path: ".spec.reason", wide: true},
			{name: "Message", of: "string", path: ".status.message", wide: true},
		},
	},
	"HealthCheck": {
		plural: "healthchecks", short: "hc", input: "health", of: v1alpha1.HealthCheck{}, status: v1alpha1.HealthCheckStatus{},
		left: []string{"name", "object"}, root: []rule{shortName("a health check", health.MaxName)},
		columns: []column{
			{name: "Phase", of: "string", path: ".status.phase"},
			{name: "Nodes", of: "integer", path: ".status.counts.observedNodes"},
			{name: "Healthy", of: "integer", path: ".status.counts.healthyNodes"},
			{name: "Unhealthy", of: "integer", path: ".status.counts.unhealthy"},
			{name: "Remediating", of: "integer", path: ".status.counts.remediating"},
			age,
			{name: "Message", of: "string", path: ".status.message", wide: true},
		},
	},
}

// inObjects is what descriptions say otherwise in a CustomResourceDefinition: it knows no flags, and names no commands.
var inObjects = []struct{ said, says string }{
	{" The command line says your user name.", " If absent, it is the name of the object, which then has 2 to 63 letters."},
	{" The flag also takes how long from now.", ""},
	{", which is `--window none`", ""},
	{", which is `--notify none`", ""},
	{" KEP-4212's own form, a list of tiers, is taken too, and includes all pod types.", ""},
	{" `plan create` warns of those that no node has.", ""},
	{", with `--strategy all-at-once` (`allAtOnce`)", ", with strategy `allAtOnce`"},
}

// schemaMaker makes structural schemas of those of inputs and of types.
type schemaMaker struct {
	*testing.T
	// input is the one that paths and rules are of; empty for none.
	input string
	// said are the texts of inObjects that were found.
	said map[string]bool
}

// of is the structural schema of a field at a path.
func (m schemaMaker) of(s *generator.Schema, path string) map[string]any {
	m.Helper()
	made := map[string]any{}
	if s.Description != "" {
		made["description"] = m.described(s.Description)
	}
	if real, ok := selectors[m.input+":"+path]; ok {
		for keyword, value := range real {
			made[keyword] = value
		}
		return m.ruled(made, path)
	}
	switch {
	case s.Extras["x-type"] == "amount":
		for keyword, value := range m.amount(path) {
			made[keyword] = value
		}
		return made
	case s.OneOf != nil:
		m.Fatalf("%s is one of several: say here which structural schema that has", path)
	case s.Type == "" && s.Properties == nil: // text or an object
		made["x-kubernetes-preserve-unknown-fields"] = true
		return made
	case s.Type == "":
		made["type"] = "object"
	default:
		made["type"] = s.Type
	}
	m.put(made, s, path)
	switch {
	case s.Properties != nil && s.Properties.Len() > 0:
		m.putFields(made, s, path)
	case s.AdditionalProperties != nil && s.AdditionalProperties != generator.FalseSchema:
		made["additionalProperties"] = m.of(s.AdditionalProperties, path+"."+schemas.AnyName)
	case made["type"] == "object":
		m.Fatalf("%s is an object without fields: say here which they are", path)
	}
	if s.Items != nil {
		made["items"] = m.of(s.Items, path+"[]")
		m.putKind(made, s, path)
	}
	return m.ruled(made, path)
}

// put takes over what values are taken.
func (m schemaMaker) put(made map[string]any, s *generator.Schema, path string) {
	for keyword, number := range map[string]*uint64{
		"minLength": s.MinLength, "maxLength": s.MaxLength, "minItems": s.MinItems, "maxItems": s.MaxItems,
	} {
		if number != nil {
			made[keyword] = *number
		}
	}
	for keyword, number := range map[string]json.Number{"minimum": s.Minimum, "maximum": s.Maximum} {
		if number != "" {
			n, err := number.Int64()
			if err != nil {
				m.Fatal(err)
			}
			made[keyword] = n
		}
	}
	for keyword, text := range map[string]string{"pattern": s.Pattern, "format": s.Format} {
		if text != "" {
			made[keyword] = text
		}
	}
	if len(s.Enum) > 0 {
		made["enum"] = s.Enum
	}
	if s.Extras["x-type"] == "duration" {
		made["maxLength"] = 64
	}
	if most, ok := bounded[m.input+":"+path]; ok {
		made["maxItems"] = most
	}
}

// putFields puts the fields of an object, and which of them it has to have.
func (m schemaMaker) putFields(made map[string]any, s *generator.Schema, path string) {
	fields, required := map[string]any{}, slices.Clone(s.Required)
	for name, field := range s.Properties.FromOldest() {
		fields[name] = m.of(field, strings.TrimPrefix(path+"."+name, "."))
		if field.Extras["x-required"] == true && !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	made["properties"] = fields
	if len(required) > 0 {
		slices.Sort(required)
		made["required"] = required
	}
}

// putKind says how lists are merged: one of unique values whose order does not count is a set.
func (m schemaMaker) putKind(made map[string]any, s *generator.Schema, path string) {
	switch {
	case s.UniqueItems && !slices.Contains(rulesAt(m.input, path), unique):
		made["x-kubernetes-list-type"] = "set"
	case m.input == "" && path == "conditions":
		made["x-kubernetes-list-type"], made["x-kubernetes-list-map-keys"] = "map", []string{"type"}
	case m.input == "" && path == "requestors":
		made["x-kubernetes-list-type"], made["x-kubernetes-list-map-keys"] = "map", []string{"name"}
	}
}

// ruled puts the rules in CEL.
func (m schemaMaker) ruled(made map[string]any, path string) map[string]any {
	var rules []any
	for _, r := range rulesAt(m.input, path) {
		rules = append(rules, r.written())
	}
	if len(rules) > 0 {
		made["x-kubernetes-validations"] = rules
	}
	return made
}

// described is a description as an object has it: without links.
func (m schemaMaker) described(text string) string {
	for _, in := range inObjects {
		if strings.Contains(text, in.said) {
			m.said[in.said], text = true, strings.ReplaceAll(text, in.said, in.says)
		}
	}
	return schemas.Plain(text)
}

// specOf is the schema of a spec: the input, and where it comes from.
func (m schemaMaker) specOf(c crd) map[string]any {
	schema := inputSchema(m.T, c.input)
	for _, name := range c.left {
		if _, there := schema.Properties.Delete(name); !there {
			m.Errorf("the input %s has no field %s", c.input, name)
		}
	}
	for name, field := range reflected(m.T, v1alpha1.Origin{}).Properties.FromOldest() {
		schema.Properties.Set(name, field)
	}
	nameFields(schema)
	spec := m.of(schema, "")
	rules, _ := spec["x-kubernetes-validations"].([]any)
	for _, r := range append(slices.Clone(c.spec), constant(schema, c.changing)) {
		rules = append(rules, r.written())
	}
	spec["x-kubernetes-validations"] = rules
	return spec
}

// aboutField is the comment of a field.
func aboutField(of reflect.Type, field string) string {
	return strings.ToLower(field[:1]) + field[1:] + strings.TrimPrefix(comments[of.PkgPath()+"."+of.Name()+"."+field], field)
}

// definition is the CustomResourceDefinition of a kind.
func (m schemaMaker) definition(kind string, c crd) map[string]any {
	m.input = c.input
	spec := m.specOf(c)
	of := reflect.TypeOf(c.of)
	spec["description"] = aboutField(of, "Spec")
	m.input = ""
	says := reflected(m.T, c.status)
	nameFields(says)
	status := m.of(says, "")
	status["description"] = aboutField(of, "Status")
	root := map[string]any{
		"description": comments[of.PkgPath()+"."+of.Name()], "type": "object", "required": []string{"spec"},
		"properties": map[string]any{
			"apiVersion": map[string]any{"type": "string"}, "kind": map[string]any{"type": "string"}, "metadata": map[string]any{"type": "object"},
			"spec": spec, "status": status,
		},
	}
	var rules []any
	for _, r := range c.root {
		rules = append(rules, r.written())
	}
	if len(rules) > 0 {
		root["x-kubernetes-validations"] = rules
	}
	var columns []any
	for _, column := range c.columns {
		written := map[string]any{"name": column.name, "type": column.of, "jsonPath": column.path}
		if column.wide {
			written["priority"] = 1
		}
		columns = append(columns, written)
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": c.plural + "." + v1alpha1.GroupVersion.Group},
		"spec": map[string]any{
			"group": v1alpha1.GroupVersion.Group, "scope": "Cluster",
			"names": map[string]any{
				"kind": kind, "listKind": kind + "List", "plural": c.plural, "singular": strings.ToLower(kind), "shortNames": []string{c.short},
				"categories": []string{"drydock"},
			},
			"versions": []any{map[string]any{
				"name": v1alpha1.GroupVersion.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"additionalPrinterColumns": columns, "schema": map[string]any{"openAPIV3Schema": root},
			}},
		},
	}
}

// largestAnnotations bounds what the annotations of an object have, in bytes. kubectl apply keeps the whole object in one.
const largestAnnotations = 256 << 10

// TestTheDefinitionsAreThoseOfTheInputs compares the published CustomResourceDefinitions with the code; UPDATE_GOLDEN=1 writes them instead.
func TestTheDefinitionsAreThoseOfTheInputs(t *testing.T) {
	const begin = "# Made of the types of the input and the comments of their fields: UPDATE_GOLDEN=1 go test ./starter/\n"
	m := schemaMaker{T: t, said: map[string]bool{}}
	folder := filepath.Join("..", "deploy", "kubernetes", "crds")
	var files []string
	for kind, c := range crds {
		definition := m.definition(kind, c)
		if text, err := json.Marshal(definition); err != nil || len(text) > largestAnnotations-1024 {
			t.Errorf("%s has %d bytes, which kubectl apply cannot keep: %v", kind, len(text), err)
		}
		text, err := yaml.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		want := begin + string(text)
		file := filepath.Join(folder, fmt.Sprintf("%s_%s.yaml", v1alpha1.GroupVersion.Group, c.plural))
		files = append(files, file)
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not that of the code (UPDATE_GOLDEN=1 writes it): want - got +\n%s", file, diff)
		}
	}
	slices.Sort(files)
	if there, _ := filepath.Glob(filepath.Join(folder, "*")); !slices.Equal(there, files) {
		t.Errorf("published are %v, want %v", there, files)
	}
	for _, in := range inObjects {
		if !m.said[in.said] {
			t.Errorf("no description says %q", in.said)
		}
	}
}
