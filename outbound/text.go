package outbound

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode"

	"drydock.dev/drydock/secret"
)

// looked is how much of a text, beyond what it shows, an excerpt looks at, in bytes: blanks and secrets are taken out of that.
const looked = 16 << 10

// Excerpt is the beginning of a text from outside, on one line and without the secrets: at most n bytes of it. The secrets
// are taken out first, since half of one is no longer recognized and still says too much.
func Excerpt(known *secret.Redactor, text string, n int) string {
	if known == nil {
		known = &secret.Redactor{}
	}
	text, whole := known.RedactStart(text, n+looked)
	text = strings.ToValidUTF8(text, "�")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if len(text) > n {
		text, whole = strings.ToValidUTF8(text[:n], ""), false
	}
	if !whole {
		text += "…"
	}
	return text
}

// ReadBody reads what the client's limit lets it read of an answer. More than that is no error: it is left out.
func ReadBody(response *http.Response) (string, error) {
	body, err := io.ReadAll(response.Body)
	if _, more := errors.AsType[*http.MaxBytesError](err); more {
		err = nil
	}
	return string(body), err
}
