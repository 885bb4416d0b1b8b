package checks

import (
	"strings"
	"text/template"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/sections"
)

// functions are what templates may call: "after" is a time, in RFC 3339, that far from now.
var functions = template.FuncMap{
	"after": func(text string) (string, error) {
		d, err := period.ParseDuration(text)
		if err != nil {
			return "", err
		}
		return time.Now().Add(d.Std()).UTC().Format(time.RFC3339), nil
	},
}

// ParseTemplate parses a template over Subject, and tries it.
func ParseTemplate(text string) (*template.Template, error) {
	t, err := template.New("template").Funcs(functions).Parse(text)
	if err != nil {
		return nil, sections.TemplateError(err)
	}
	_, err = Render(t, Sample)
	return t, err
}

// Render fills a template in. Values that need escaping where they stand are escaped in the subject.
func Render(t *template.Template, s Subject) (string, error) {
	var out strings.Builder
	if err := t.Execute(&out, s); err != nil {
		return "", sections.TemplateError(err)
	}
	return out.String(), nil
}
