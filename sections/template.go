package sections

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	// inTemplate is how Go begins the error of a template: its name, the line, and where it is executed the column.
	inTemplate = regexp.MustCompile(`^template: [^:]*:(\d+)(?::(\d+))?: `)
	// executing names the template once more, and the part of it.
	executing = regexp.MustCompile(`^executing "[^"]*" at <(.*?)>: `)
	noField   = regexp.MustCompile(`^can't evaluate field (\S+) in type .+$`)
	noKey     = regexp.MustCompile(`^map has no entry for key "(.*)"$`)
)

// TemplateError is the error of a template in the words of those who write one: with the line, and without the name and the
// types that Go gives it.
func TemplateError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	found := inTemplate.FindStringSubmatch(text)
	if found == nil {
		return err
	}
	place, text := "line "+found[1], text[len(found[0]):]
	if part := executing.FindStringSubmatch(text); part != nil {
		place, text = fmt.Sprintf("%s, {{%s}}", place, part[1]), text[len(part[0]):]
	}
	for _, missing := range []*regexp.Regexp{noField, noKey} {
		if field := missing.FindStringSubmatch(text); field != nil {
			text = fmt.Sprintf("there is no field %s", field[1])
		}
	}
	return errors.New(place + ": " + strings.TrimSpace(text))
}
