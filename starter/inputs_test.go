package starter

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	generator "github.com/invopop/jsonschema"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/audit"
	auditkinds "drydock.dev/drydock/audit/kinds"
	"drydock.dev/drydock/checks"
	checkkinds "drydock.dev/drydock/checks/kinds"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/docs/schemas"
	"drydock.dev/drydock/notify"
	notifykinds "drydock.dev/drydock/notify/kinds"
	"drydock.dev/drydock/notify/webhook"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
	"drydock.dev/drydock/starter/input"
)

// inputTypes are what the workflows and the worker take: a value of its type, and the defaults that are merged under it.
var inputTypes = map[string]struct {
	of       any
	title    string
	defaults map[string]string
	// looser are fields that are taken in another form too.
	looser []string
	// narrower are values of fields that are all this input takes, left those that it does not take at all.
	narrower map[string][]any
	left     []string
	// parts are fields that are inputs themselves, or all of them but some.
	parts map[string]part
}{
	"maintenance": {
		of: spec.Maintenance{}, title: "The input of a NodeMaintenance", defaults: map[string]string{
			"": spec.Defaults, "validation": validation.Defaults, "drain.plan": `{"include": ["Default"], "static": "skip"}`,
		},
		looser: []string{"drain.plan", "drain.plan.tiers[].podSelector"},
	},
	"plan": {
		of: plan.Plan{}, title: "The input of a MaintenancePlan", defaults: map[string]string{
			"": plan.Defaults, "drainPlan": `{"include": ["Default", "DaemonSet", "Static"], "static": "skip"}`,
		},
		looser:   []string{"drainPlan", "drainPlan.tiers[].podSelector"},
		narrower: map[string][]any{"drainPlan.static": {spec.SkipStatic}},
		parts:    map[string]part{"maintenance": shared},
	},
	"health": {
		of: health.Spec{}, title: "The input of a HealthCheck",
		parts: map[string]part{"maintenance.input": repair, "escalatingRemediations[].maintenance.input": repair},
	},
	"limits": {
		of: schedule.Limits{}, title: "The limits of the Scheduler, as drydock limits set takes them",
		defaults: map[string]string{"": asJSON(schedule.Limits{}.WithDefaults())},
	},
	"config": {
		of: config.Config{}, title: "The configuration of a worker: the file for drydock-worker --config",
		defaults: map[string]string{"": asJSON(config.Default())}, left: []string{"scheduler.quotas"},
		parts: map[string]part{"defaults": {"maintenance", spec.Identities()}, "healthChecks." + schemas.AnyName: {"health", []string{"name", "object"}}},
	},
}

// part is an input as a field of another one, without some of its fields.
type part struct {
	input string
	left  []string
}

// shared is what maintenances that are begun for somebody share, and repair what those that a health check begins do.
var (
	shared = part{"maintenance", slices.DeleteFunc(spec.Identities(), func(name string) bool { return name == "additionalRequestors" })}
	repair = part{"maintenance", append(spec.Identities(), "type", "approval", "notBefore")}
)

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// inputSchema generates the schema of an input: strict, in one tree, in the order of the declarations.
func inputSchema(t *testing.T, name string) *generator.Schema {
	t.Helper()
	of := inputTypes[name]
	schema := reflected(t, of.of)
	schema.Version, schema.Title = generator.Version, of.title
	for _, looser := range of.looser {
		at(t, schema, looser).Type = ""
	}
	for under, defaults := range of.defaults {
		setDefaults(t, at(t, schema, under), defaults)
	}
	for field, values := range of.narrower {
		at(t, schema, field).Enum = values
	}
	for _, path := range of.left {
		above, field, _ := strings.Cut(path, ".")
		at(t, schema, above).Properties.Delete(field)
	}
	if name == "config" {
		// The flags of limits are those of drydock limits set: drydock-worker takes none of them.
		for _, field := range at(t, schema, "scheduler").Properties.FromOldest() {
			delete(field.Extras, "x-flag")
		}
	}
	putTags(schema, reflect.TypeOf(of.of))
	nameFields(schema)
	for path, part := range of.parts {
		putPart(t, at(t, schema, path), part)
	}
	if name == "health" {
		schema.Properties.Set("name", &generator.Schema{
			Type: "string", Description: "name is the name of the check, in a file of the command line alone. The workflow has it in its ID.",
		})
	}
	return schema
}

// reflected is the schema of a type, without references.
func reflected(t *testing.T, of any) *generator.Schema {
	t.Helper()
	r := reflector(t)
	r.DoNotReference, r.RequiredFromJSONSchemaTags = true, true
	r.Mapper = func(of reflect.Type) *generator.Schema { return ownSchema(t, of) }
	// A field is described by its own comment, not by that of its type.
	maps.DeleteFunc(r.CommentMap, func(at, _ string) bool { return strings.Count(path.Base(at), ".") == 1 })
	schema := r.Reflect(of)
	schema.ID, schema.Version = "", ""
	putPatterns(schema)
	return schema
}

// label and subdomain are patterns of DNS names, as Kubernetes has them.
const (
	label     = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	subdomain = label + `(\.` + label + `)*`
)

// formats are what the tag format of a field stands for.
var formats = map[string]struct {
	pattern     string
	least, most uint64
}{
	"apiVersion":  {pattern: `^[^/]*(/[^/]*)?$`},
	"key":         {pattern: `^(` + subdomain + `/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`, most: 317},
	"label":       {pattern: `^` + label + `$`, most: 63},
	"labelOrNone": {pattern: `^(` + label + `)?$`, most: 63},
	"node":        {pattern: `^` + subdomain + `$`, most: 253},
	"quantity":    {pattern: `^\+?(0*[1-9][0-9]*\.?[0-9]*|0*\.0*[1-9][0-9]*)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$`},
	"requestor":   {pattern: `^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`, least: 2, most: 63},
	"template":    {pattern: `^.+Template$`},
	"words":       {pattern: `[^ \t\r\n]`},
}

// putPatterns puts patterns and lengths in place of formats.
func putPatterns(schema *generator.Schema) {
	if f, known := formats[schema.Format]; known {
		schema.Format, schema.Pattern = "", f.pattern
		if f.least > 0 {
			schema.MinLength = &f.least
		}
		if f.most > 0 {
			schema.MaxLength = &f.most
		}
	}
	for _, below := range []*generator.Schema{schema.Items, schema.AdditionalProperties} {
		if below != nil && below != generator.FalseSchema {
			putPatterns(below)
		}
	}
	if schema.Properties != nil {
		for _, field := range schema.Properties.FromOldest() {
			putPatterns(field)
		}
	}
}

// ownSchema is the schema of a type that reads itself; nil for any other.
func ownSchema(t *testing.T, of reflect.Type) *generator.Schema {
	t.Helper()
	switch of {
	case reflect.TypeFor[time.Time]():
		return &generator.Schema{Type: "string", Format: "date-time", Pattern: dateTime, Extras: map[string]any{"x-type": "time"}}
	case reflect.TypeFor[metav1.Time]():
		return &generator.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[metav1.Condition]():
		return conditionSchema()
	case reflect.TypeFor[period.Duration]():
		return &generator.Schema{Type: "string", Pattern: `^` + duration + `$`, Extras: map[string]any{"x-type": "duration"}}
	case reflect.TypeFor[health.SignedDuration]():
		return &generator.Schema{Type: "string", Pattern: `^-?` + duration + `$`, Extras: map[string]any{"x-type": "duration"}}
	case reflect.TypeFor[schedule.Amount]():
		return &generator.Schema{OneOf: []*generator.Schema{{Type: "integer"}, {Type: "string"}}, Extras: map[string]any{"x-type": "amount"}}
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[corev1.NodeSelector](), reflect.TypeFor[metav1.LabelSelector]():
		return &generator.Schema{Type: "object"}
	case reflect.TypeFor[notices.State]():
		schema := &generator.Schema{Type: "string"}
		for _, state := range notices.States() {
			schema.Enum = append(schema.Enum, state)
		}
		return schema
	case reflect.TypeFor[secret.Value]():
		return secretSchema()
	case reflect.TypeFor[webhook.Address]():
		return &generator.Schema{OneOf: []*generator.Schema{{Type: "string"}, secretSchema()}, Extras: map[string]any{"x-type": "address"}}
	case reflect.TypeFor[notify.Channel]():
		return entry(t, notify.Settings{}, kindsOf(notifykinds.All()), false)
	case reflect.TypeFor[checks.Check]():
		return entry(t, none{}, actions[checks.Checkable](), false)
	case reflect.TypeFor[checks.Hook]():
		return entry(t, checks.HookSettings{}, actions[checks.Callable](), true, "signal")
	case reflect.TypeFor[checks.Cleanup]():
		return entry(t, none{}, actions[checks.Callable](), true)
	case reflect.TypeFor[checks.Work]():
		return entry(t, checks.WorkSettings{}, actions[checks.Callable](), true, "signal")
	case reflect.TypeFor[checks.Section]():
		return reflected(t, checkkinds.All()[slices.IndexFunc(checkkinds.All(), func(k checks.Kind) bool { return k.Shared != nil })].Shared)
	case reflect.TypeFor[audit.Config]():
		schema := entry(t, audit.Settings{}, kindsOf(auditkinds.All()), false)
		schema.OneOf = nil // there may be several
		return schema
	}
	return nil
}

// secretSchema is that of where a secret is.
func secretSchema() *generator.Schema {
	properties := generator.NewProperties()
	for _, place := range []string{"File", "Env"} {
		properties.Set(strings.ToLower(place), &generator.Schema{Type: "string", Description: comments[reflect.TypeFor[secret.Value]().PkgPath()+".Value."+place]})
	}
	return &generator.Schema{
		Type: "object", Properties: properties, AdditionalProperties: generator.FalseSchema, MinProperties: new(uint64(1)), MaxProperties: new(uint64(1)),
		Extras: map[string]any{"x-type": "secret", "x-shared": true},
	}
}

// none are the settings of an entry that has none but its kind.
type none struct{}

// kind is a field of an entry whose value is the configuration of a kind.
type kind struct {
	name string
	of   any
}

func kindsOf[C any](all []sections.Kind[C]) []kind {
	var kinds []kind
	for _, k := range all {
		kinds = append(kinds, kind{k.Name, k.Config})
	}
	return kinds
}

// actions are the kinds of checks, or of what can be called.
func actions[A checks.Action]() []kind {
	var kinds []kind
	for _, k := range checkkinds.All() {
		if _, can := k.Config.(A); can {
			kinds = append(kinds, kind{k.Name, k.Config})
		}
	}
	return kinds
}

// entry is the schema of a channel, a check and so on: its settings, and exactly one of the kinds or of what stands in place of one.
func entry(t *testing.T, settings any, kinds []kind, shared bool, others ...string) *generator.Schema {
	t.Helper()
	schema := reflected(t, settings)
	for _, k := range kinds {
		of := reflected(t, k.of)
		about := reflect.TypeOf(k.of).Elem()
		of.Description = k.name + strings.TrimPrefix(comments[about.PkgPath()+"."+about.Name()], about.Name())
		if shared {
			of.Extras = map[string]any{"x-shared": true}
		}
		schema.Properties.Set(k.name, of)
		others = append(others, k.name)
	}
	for _, name := range others {
		schema.OneOf = append(schema.OneOf, &generator.Schema{Required: []string{name}})
	}
	return schema
}

// putTags takes over the flags and variables of the environment that a type names beside its fields.
func putTags(schema *generator.Schema, of reflect.Type) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		property, ok := schema.Properties.Get(name)
		if !ok {
			continue
		}
		for _, tag := range []string{"env", "flag"} {
			if value := field.Tag.Get(tag); value != "" && property.Extras == nil {
				property.Extras = map[string]any{"x-" + tag: value}
			} else if value != "" {
				property.Extras["x-"+tag] = value
			}
		}
		if field.Type.Kind() == reflect.Struct && property.Properties != nil {
			putTags(property, field.Type)
		}
	}
}

// dateTime is a pattern of RFC 3339, which the format date-time of some readers is wider than.
const dateTime = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})$`

// duration is a pattern of Go's durations, and days before them.
const (
	duration = `(0|[0-9]{1,5}d` + times + `*|` + times + `+)`
	times    = `(([0-9]+\.?[0-9]*|\.[0-9]+)(h|m|s|ms|us|µs|ns))`
)

// nameFields begins the descriptions of fields with their names in JSON, where the comments have those in Go.
func nameFields(schema *generator.Schema) {
	for _, below := range []*generator.Schema{schema.Items, schema.AdditionalProperties} {
		if below != nil && below != generator.FalseSchema {
			nameFields(below)
		}
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

// putPart makes a schema that of an input without some of its fields. Its flags are those of that input.
func putPart(t *testing.T, schema *generator.Schema, p part) {
	t.Helper()
	of := inputSchema(t, p.input)
	for _, name := range p.left {
		of.Properties.Delete(name)
	}
	of.Required = slices.DeleteFunc(of.Required, func(name string) bool { return slices.Contains(p.left, name) })
	schema.Properties, schema.Required, schema.AdditionalProperties = of.Properties, of.Required, of.AdditionalProperties
	schema.Extras = map[string]any{"x-shared": true}
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
		if rest, inMap := strings.CutPrefix(path, schemas.AnyName); inMap {
			schema, path = found.AdditionalProperties, strings.TrimPrefix(rest, ".")
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
		} else if string(value) != `""` {
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

// TestValuesOfFieldsAreThoseThatAreTaken holds the enumerations that the types declare to what is refused.
func TestValuesOfFieldsAreThoseThatAreTaken(t *testing.T) {
	for name, refusal := range map[string]func(text []byte) error{
		"maintenance": func(text []byte) error {
			_, err := spec.Decode(text, []byte(`{"sla": {"after": "10m"}}`))
			return err
		},
		"config": func(text []byte) error {
			c := config.Default()
			if err := config.Parse(text, &c, config.Kinds{Channels: notifykinds.All(), Checks: checkkinds.All(), Sinks: auditkinds.All()}); err != nil {
				return err
			}
			return c.Validate()
		},
	} {
		for _, f := range schemas.InputOf(name).Below() {
			if len(f.Values) == 0 || strings.Contains(f.Path, "[]") || f.List {
				continue
			}
			path := strings.ReplaceAll(f.Path, schemas.AnyName, "some")
			for _, value := range append([]string{"no such value"}, f.Values...) {
				values := map[string]any{}
				if name == "maintenance" {
					values["node"] = "n"
				}
				if err := input.SetField(values, path, value); err != nil {
					t.Fatal(err)
				}
				err := refusal(readable(t, values))
				wrong := fmt.Sprintf("%s: %q is not one of %s", path, value, strings.Join(f.Values, ", "))
				refused := err != nil && strings.Contains(err.Error(), wrong)
				if refused != (value == "no such value") || !refused && err != nil && name == "maintenance" {
					t.Errorf("%s: %s: %v", path, value, err)
				}
			}
		}
	}
}
