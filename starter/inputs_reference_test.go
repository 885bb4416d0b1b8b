package starter

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/docs/schemas"
)

// tableOfFields is a table of the reference: of an input, or of a section of one.
var tableOfFields = regexp.MustCompile(`(?s)<!-- fields of ([\w.]+): made of its schema -->\n.*?<!-- end of fields -->\n`)

// listedAt are sections whose fields another table lists: theirs has those that are otherwise.
var listedAt = map[string]struct{ path, link string }{
	"config.scheduler":           {"limits", "Its fields are those of [limits](#the-scheduler), and"},
	"config.quotas":              {"limits.quotas", "Its fields are those of `quotas` in [limits](#the-scheduler)"},
	"config.health.etcd":         {"health.etcd", "Its fields are those of a check"},
	"config.health.controlPlane": {"health.controlPlane", "Its fields are those of a check"},
	"plan.drainPlan":             {"maintenance.drain.plan", "Its fields are those of `drain.plan`, but"},
	"health.escalatingRemediations[].remediationTemplate": {"health.remediationTemplate", ""},
	"health.escalatingRemediations[].maintenance":         {"health.maintenance", ""},
}

// TestTheReferenceListsTheFields keeps the reference's tables of fields what the schemas say; UPDATE_GOLDEN=1 writes them. A section that has
// a table of its own is one row in the table of its input.
func TestTheReferenceListsTheFields(t *testing.T) {
	pages, err := filepath.Glob("../docs/reference/*.md")
	if err != nil {
		t.Fatal(err)
	}
	contents, tables := map[string]string{}, map[string]bool{}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		contents[page] = string(content)
		for _, found := range tableOfFields.FindAllStringSubmatch(contents[page], -1) {
			tables[found[1]] = true
		}
	}
	inputs := map[string]schemas.Field{}
	for name := range inputTypes {
		if !tables[name] {
			t.Errorf("the reference has no table of the fields of %s", name)
		}
		if inputs[name], err = schemas.Read(name, readable(t, inputSchema(t, name))); err != nil {
			t.Fatal(err)
		}
	}
	r := reference{t: t, inputs: inputs, tables: tables}
	for page, content := range contents {
		text := tableOfFields.ReplaceAllStringFunc(content, func(table string) string {
			path := tableOfFields.FindStringSubmatch(table)[1]
			name, _, _ := strings.Cut(path, ".")
			field := r.at(path)
			begin, _, _ := strings.Cut(table, "\n")
			return begin + "\n| field | default | meaning |\n| --- | --- | --- |\n" +
				schemas.Linked(r.rows(field, field, name), strings.TrimSuffix(filepath.Base(page), ".md")) + "<!-- end of fields -->\n"
		})
		if text == content {
			continue
		}
		if os.Getenv("UPDATE_GOLDEN") == "" {
			t.Errorf("%s is not what the schemas say: make it anew with UPDATE_GOLDEN=1 go test ./starter/", page)
			continue
		}
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// reference are the inputs, and which of their sections have a table.
type reference struct {
	t      *testing.T
	inputs map[string]schemas.Field
	tables map[string]bool
}

// at is the field at a path that begins with the input's name.
func (r reference) at(path string) schemas.Field {
	r.t.Helper()
	name, rest, _ := strings.Cut(path, ".")
	field, found := below(r.inputs[name], rest)
	if !found {
		r.t.Fatalf("there is no field %s, which the reference lists", path)
	}
	return field
}

// below is the field at a path below another.
func below(field schemas.Field, path string) (schemas.Field, bool) {
	for name := range strings.SplitSeq(path, ".") {
		at := slices.IndexFunc(field.Fields, func(f schemas.Field) bool { return f.Name == name })
		if name == "" {
			continue
		}
		if at < 0 {
			return field, false
		}
		field = field.Fields[at]
	}
	return field, true
}

// rows are those of the fields below a field, as one writes them in the section that the table is of.
func (r reference) rows(field, section schemas.Field, input string) (rows string) {
	for _, f := range field.Fields {
		path := input + "." + f.Path
		meaning, there := f.Row()+others(f), listedAt[path]
		if there.link != "" && !r.tables[path] {
			meaning += ". " + there.link
		}
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", section.Within(f), defaultOf(f), meaning)
		if !f.Shared && !r.tables[path] {
			rows += r.rows(r.without(f, there.path), section, input)
		}
	}
	return rows
}

// without is a field without those below it that another place lists in the same words.
func (r reference) without(field schemas.Field, path string) schemas.Field {
	if path == "" {
		return field
	}
	var own []schemas.Field
	for _, f := range field.Fields {
		if there, found := below(r.at(path), f.Name); !found || there.Row() != f.Row() || there.DefaultText() != f.DefaultText() {
			own = append(own, f)
		}
	}
	field.Fields = own
	return field
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
