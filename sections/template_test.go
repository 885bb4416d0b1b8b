package sections_test

import (
	"errors"
	"strings"
	"testing"
	"text/template"

	"drydock.dev/drydock/sections"
)

func TestTheErrorOfATemplateSpeaksOfNoGo(t *testing.T) {
	for text, want := range map[string]string{
		"{{":                        "line 1: unclosed action",
		"a\n{{.Raeson}}":            "line 2, {{.Raeson}}: there is no field Raeson",
		"{{nosuch}}":                `line 1: function "nosuch" not defined`,
		"{{range .Reason}}{{end}":   `line 1: bad character U+007D '}'`,
		"{{if .Reason}}":            "line 1: unexpected EOF",
		"{{slice .Reason 9}}":       "line 1, {{slice .Reason 9}}: error calling slice: index out of range: 9",
		"{{.Reason}} of {{.Ticket}": `line 1: bad character U+007D '}'`,
	} {
		parsed, err := template.New("template.text").Parse(text)
		if err == nil {
			err = parsed.Execute(&strings.Builder{}, struct{ Reason, Ticket string }{})
		}
		if got := sections.TemplateError(err); got == nil || got.Error() != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
	other := errors.New("another")
	if got := sections.TemplateError(other); !errors.Is(got, other) {
		t.Error(got)
	}
	if sections.TemplateError(nil) != nil {
		t.Error("no error became one")
	}
}
