package starter

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"drydock.dev/drydock/docs/schemas"
)

// tableOfFields is a table of docs/reference.md: of an input, or of a section of one.
var tableOfFields = regexp.MustCompile(`(?s)<!-- fields of ([\w.]+): made of its schema -->\n.*?<!-- end of fields -->\n`)

// TestTheReferenceListsTheFields keeps the reference's tables of fields what the schemas say; UPDATE_GOLDEN=1 writes them. A section that has
// a table of its own is one row in the table of its input.
func TestTheReferenceListsTheFields(t *testing.T) {
	file := filepath.Join("..", "docs", "reference.md")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]bool{}
	for _, found := range tableOfFields.FindAllStringSubmatch(string(content), -1) {
		tables[found[1]] = true
	}
	inputs := map[string]schemas.Field{}
	for name := range inputTypes {
		if !tables[name] {
			t.Errorf("%s has no table of the fields of %s", file, name)
		}
		if inputs[name], err = schemas.Read(name, readable(t, inputSchema(t, name))); err != nil {
			t.Fatal(err)
		}
	}
	text := tableOfFields.ReplaceAllStringFunc(string(content), func(table string) string {
		path := tableOfFields.FindStringSubmatch(table)[1]
		name, _, _ := strings.Cut(path, ".")
		field := fieldAt(t, inputs[name], path)
		begin, _, _ := strings.Cut(table, "\n")
		return begin + "\n| field | default | meaning |\n| --- | --- | --- |\n" + rowsOf(field, field, name, tables) + "<!-- end of fields -->\n"
	})
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

// fieldAt is the field at a path that begins with the input's name.
func fieldAt(t *testing.T, input schemas.Field, path string) schemas.Field {
	t.Helper()
	for _, name := range strings.Split(path, ".")[1:] {
		found := false
		for _, f := range input.Fields {
			if f.Name == name {
				input, found = f, true
				break
			}
		}
		if !found {
			t.Fatalf("there is no field %s, of which the reference has a table", path)
		}
	}
	return input
}

// rowsOf are the rows of the fields below a field, as one writes them in the section that the table is of.
func rowsOf(field, section schemas.Field, input string, tables map[string]bool) (rows string) {
	for _, f := range field.Fields {
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", section.Within(f), defaultOf(f), f.Row()+others(f))
		if !f.Shared && !tables[input+"."+f.Path] {
			rows += rowsOf(f, section, input, tables)
		}
	}
	return rows
}

// others are the other ways to set a field of the worker's configuration.
func others(f schemas.Field) string {
	switch {
	case f.Env == "":
		return ""
	case f.Flag == "":
		return fmt.Sprintf(" (`%s`)", f.Env)
	}
	return fmt.Sprintf(" (`%s`, `--%s`)", f.Env, f.Flag)
}

func defaultOf(f schemas.Field) string {
	switch text := f.DefaultText(); {
	case f.Required:
		return "required"
	case text != "":
		return "`" + text + "`"
	case f.Type == "boolean" && !f.Map:
		return "`false`"
	}
	return ""
}
