package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	strictjson "sigs.k8s.io/json"

	"drydock.dev/drydock/rules/nearest"
	"drydock.dev/drydock/rules/validation"
)

// MaxInput bounds the JSON of a maintenance's input, in bytes: it is carried from run to run and shown in the status.
const MaxInput = 64 << 10

// Decode reads a maintenance's JSON input strictly, fills what is absent from defaults (the worker's, may be empty)
// and from Defaults, and validates the whole. The error names every field that is wrong. Objects are merged field
// by field, so that a field of drain can be set without losing the default of another; lists are replaced.
func Decode(input, defaults []byte) (Maintenance, error) {
	var m Maintenance
	if len(input) > MaxInput {
		return m, fmt.Errorf("the input has %d bytes: at most %d are taken", len(input), MaxInput)
	}
	input, err := normalize(input)
	if err != nil {
		return m, err
	}
	if err := DecodeStrict(input, &m); err != nil {
		return m, errors.Join(err, restOf(input, defaults, err))
	}
	if len(defaults) > 0 {
		if defaults, err = normalize(defaults); err != nil {
			return m, err
		}
	}
	merged := []byte(Defaults)
	if len(defaults) > 0 {
		if merged, err = jsonpatch.MergePatch(merged, defaults); err != nil {
			return m, fmt.Errorf("merging defaults: %w", err)
		}
	}
	if m.Lockstep {
		if merged, err = sharedDefaults(merged); err != nil {
			return m, fmt.Errorf("defaults: %w", err)
		}
	}
	if m.Remediation != nil && CheckName(m.Remediation.Check) == nil {
		if merged, err = remediationDefaults(merged, m.Remediation.Check); err != nil {
			return m, fmt.Errorf("defaults: %w", err)
		}
	}
	if merged, err = jsonpatch.MergePatch(merged, input); err != nil {
		return m, fmt.Errorf("merging defaults: %w", err)
	}
	if merged, err = withSectionDefaults(merged); err != nil {
		return m, err
	}
	m = Maintenance{}
	if err := DecodeStrict(merged, &m); err != nil {
		return m, err
	}
	return m, m.Validate()
}

// restOf is what else is wrong with an input: with the sections that the error does not name. Without one that it names, nothing is said of
// what has to be there.
func restOf(input, defaults []byte, err error) error {
	var rest map[string]json.RawMessage
	if json.Unmarshal(input, &rest) != nil {
		return nil //nolint:nilerr // the error that the caller has says so
	}
	before := len(rest)
	for line := range strings.Lines(err.Error()) {
		if end := strings.IndexAny(line, ".[:"); end >= 0 {
			delete(rest, line[:end])
		}
	}
	if len(rest) == before {
		return nil
	}
	if _, given := rest["node"]; !given {
		rest["node"] = json.RawMessage(`"any"`)
	}
	data, err := json.Marshal(rest)
	if err == nil {
		_, err = Decode(data, defaults)
	}
	return err
}

// withSectionDefaults fills the defaults of what is absent by default: of a validation, and of an approval.
func withSectionDefaults(merged []byte) ([]byte, error) {
	given := fieldsOf(merged)
	under := map[string]json.RawMessage{}
	if len(given["validation"]) > 0 {
		under["validation"] = json.RawMessage(validation.Defaults)
	}
	if string(given["approval"]) == "true" {
		under["approvalReminder"] = json.RawMessage(`"24h"`)
	}
	if len(under) == 0 {
		return merged, nil
	}
	defaults, err := json.Marshal(under)
	if err == nil {
		merged, err = jsonpatch.MergePatch(defaults, merged)
	}
	if err != nil {
		return nil, fmt.Errorf("merging defaults: %w", err)
	}
	return merged, nil
}

// normalize brings a layer into the form that is decoded. What it re-writes no longer shows a null or a duplicate field,
// so those are refused first.
func normalize(layer []byte) ([]byte, error) {
	var object map[string]any
	if err := DecodeStrict(layer, &object); err != nil {
		return nil, err
	}
	return normalizePlan(layer)
}

// Identities are the fields of a Maintenance that identify one.
func Identities() []string {
	return []string{"node", "requestor", "additionalRequestors", "lockstep", "remediation", "object", "reportTo"}
}

// CheckDefaults validates the worker's defaults: a Maintenance without the fields that identify one.
func CheckDefaults(defaults []byte) error {
	var given map[string]any
	if err := DecodeStrict(defaults, &given); err != nil {
		return err
	}
	for _, identity := range Identities() {
		if _, ok := given[identity]; ok {
			return fmt.Errorf("%s: identifies one maintenance and cannot have a default", identity)
		}
	}
	_, err := Decode([]byte(`{"node":"any"}`), defaults)
	return err
}

// DecodeStrict decodes one JSON object into v and refuses what a typo or a wrong type would otherwise hide: unknown
// and duplicate fields, null, and empty words where a word is expected.
func DecodeStrict(data []byte, v any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New(`no input: want a JSON object, at least {"node": "<name>"}`)
	}
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	object, ok := raw.(map[string]any)
	if !ok {
		return fmt.Errorf("want a JSON object, got %s", kind(raw))
	}
	problems := append(refuseNulls("", object), checkTimes(object, reflect.TypeOf(v))...)
	strict, err := strictjson.UnmarshalStrict(data, v)
	if err != nil {
		if problems = append(problems, misfits(object, reflect.TypeOf(v))...); len(problems) == 0 {
			return typeError(err)
		}
		return errors.Join(problems...)
	}
	for _, s := range strict {
		problems = append(problems, fieldFirst(s, reflect.TypeOf(v)))
	}
	return errors.Join(problems...)
}

func refuseNulls(path string, value any) []error {
	var problems []error
	switch value := value.(type) {
	case nil:
		problems = append(problems, fmt.Errorf("%s: null is not a value; leave the field out to get its default", path))
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			problems = append(problems, refuseNulls(join(path, key), value[key])...)
		}
	case []any:
		for i, item := range value {
			problems = append(problems, refuseNulls(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
	}
	return problems
}

// typeError names the field of a value of the wrong type, which the decoder's own text buries among Go types.
func typeError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("%s: %s", wrong.Field, wanted(wrong))
}

func wanted(wrong *json.UnmarshalTypeError) string {
	return fmt.Sprintf("want %s, got %s", jsonType(wrong.Type.String()), wrong.Value)
}

func jsonType(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "*int"), strings.HasPrefix(goType, "uint"):
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case goType == "bool":
		return "true or false"
	case goType == "string":
		return "a string"
	default:
		return "an object"
	}
}

// fieldFirst turns `unknown field "drain.mod"` into `drain.mod: unknown field; did you mean "mode"?`.
func fieldFirst(err error, t reflect.Type) error {
	text, field, found := strings.Cut(err.Error(), ` "`)
	if !found {
		return err
	}
	field = strings.TrimSuffix(field, `"`)
	if text != "unknown field" {
		return fmt.Errorf("%s: %s", field, text)
	}
	parent, name := "", field
	if at := strings.LastIndex(field, "."); at >= 0 {
		parent, name = field[:at], field[at+1:]
	}
	var known []string
	for _, f := range fieldsAt(t, parent) {
		known = append(known, f.name)
	}
	return UnknownField(field, name, known)
}

// UnknownField refuses a field by its path and its name, and says which of those that are known was meant, where one is near.
func UnknownField(path, name string, known []string) error {
	if meant := nearest.To(name, known); meant != "" {
		return fmt.Errorf("%s: unknown field; did you mean %q?", path, meant)
	}
	return fmt.Errorf("%s: unknown field", path)
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	default:
		return "a number"
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
