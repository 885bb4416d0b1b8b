package checks

import (
	"strings"
	"unicode"

	"drydock/config/secret"
)

// secrets are those that one call has read, so that they can be taken out of what it tells.
type secrets struct{ secret.Redactor }

// excerpt is that of a text without the secrets.
func (s *secrets) excerpt(text string, n int) string { return excerpt(s.Redact(text), n) }

// excerpt is the beginning of a text from outside, on one line: at most n bytes of it.
func excerpt(text string, n int) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
