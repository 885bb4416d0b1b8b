// Package schematest holds outputs and inputs to the published schemas.
package schematest

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/docs/schemas"
)

// Holds fails a test whose output, JSON or YAML, is not as its schema says, or has a field that the schema does not know.
func Holds(t testing.TB, name string, output []byte) {
	t.Helper()
	text, err := schemas.Of(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(t, text, refuseOthers, output); err != nil {
		t.Errorf("the output is not as the schema %s says: %v\n%s", name, err, output)
	}
}

// CheckInput is what the schema of an input says of one, JSON or YAML: what an editor shows.
func CheckInput(t testing.TB, name string, input []byte) error {
	t.Helper()
	text, err := schemas.OfInput(name)
	if err != nil {
		t.Fatal(err)
	}
	return validate(t, text, func(any) {}, input)
}

func validate(t testing.TB, text []byte, change func(schema any), document []byte) error {
	t.Helper()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	change(schema)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("schema.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(value)
}

// refuseOthers makes a schema refuse fields that it does not name, which those of later versions may be to others.
func refuseOthers(schema any) {
	switch node := schema.(type) {
	case map[string]any:
		if _, named := node["properties"].(map[string]any); named {
			node["additionalProperties"] = false
		}
		for _, part := range node {
			refuseOthers(part)
		}
	case []any:
		for _, part := range node {
			refuseOthers(part)
		}
	}
}
