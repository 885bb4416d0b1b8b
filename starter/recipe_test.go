package starter

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/docs/schemas"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/input"
)

// withAField is the input of a maintenance once somebody has added a field to it.
type withAField struct {
	spec.Maintenance
	Aisle string `json:"aisle,omitempty" jsonschema:"enum=north,enum=south,default=north" jsonschema_extras:"x-flag=aisle"`
}

// TestAFieldIsMadeOfItsDeclaration follows the recipe "A field" of CONTRIBUTING.md: from the field, its comment and its tags come its schema,
// its flag with help and completion, its row in the reference and what drydock explain says, and nothing else of the input changes.
func TestAFieldIsMadeOfItsDeclaration(t *testing.T) {
	of := inputTypes["maintenance"]
	of.of = withAField{}
	inputTypes["recipe"] = of
	reflector(t) // reads the comments, of what is no test
	comment := reflect.TypeFor[withAField]().PkgPath() + ".withAField.Aisle"
	comments[comment] = "Aisle is where the node stands, as the people who work on it call it."
	t.Cleanup(func() {
		delete(inputTypes, "recipe")
		delete(comments, comment)
	})
	text := readable(t, inputSchema(t, "recipe"))
	made, err := schemas.Read("maintenance", text)
	if err != nil {
		t.Fatal(err)
	}

	at := slices.IndexFunc(made.Fields, func(f schemas.Field) bool { return f.Name == "aisle" })
	if at < 0 {
		t.Fatalf("the schema has no field aisle:\n%s", text)
	}
	others := made
	others.Fields = slices.Delete(slices.Clone(made.Fields), at, at+1)
	if was := schemas.InputOf("maintenance"); fmt.Sprintf("%+v", others) != fmt.Sprintf("%+v", was) {
		t.Errorf("the other fields are %+v, were %+v", others, was)
	}

	cmd, flags := &cobra.Command{Use: "start"}, &input.FieldFlags{}
	flags.Register(cmd, []schemas.Field{made.Fields[at]}, nil)
	flag := cmd.Flags().Lookup("aisle")
	if flag == nil || !strings.Contains(flag.Usage, "where the node stands") {
		t.Fatalf("the flag is %+v", flag)
	}
	complete, ok := cmd.GetFlagCompletionFunc("aisle")
	if !ok {
		t.Fatal("the flag has no completion")
	}
	if words, _ := complete(cmd, nil, ""); !slices.Equal(words, []string{"north", "south"}) {
		t.Errorf("the flag completes %q", words)
	}
	if err := cmd.Flags().Set("aisle", "south"); err != nil {
		t.Fatal(err)
	}
	put := map[string]any{}
	if err := flags.Put(put); err != nil || put["aisle"] != "south" {
		t.Errorf("the flag makes of the input %v, %v", put, err)
	}

	row := reference{t: t, inputs: map[string]schemas.Field{"maintenance": made}}.rows(schemas.Field{Fields: made.Fields[at : at+1]}, made, "maintenance")
	for _, want := range []string{"| `aisle` | `north` |", "where the node stands", "`south`"} {
		if !strings.Contains(row, want) {
			t.Errorf("%q is not in the row of the reference: %s", want, row)
		}
	}

	var out bytes.Buffer
	explain(&out, "maintenance.aisle", made.Fields[at], false)
	for _, want := range []string{"maintenance.aisle", "where the node stands", "--aisle", "north", "south"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in what is explained:\n%s", want, out.String())
		}
	}
}
