package checks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"
)

// concealed stands for a secret wherever one would be shown.
const concealed = "(secret)"

// maxSecret bounds what is read of a secret's file.
const maxSecret = 64 << 10

// Secret is where a secret is kept: exactly one of its fields. It is read at each use, so that a rotated one needs no
// restart, and never printed.
type Secret struct {
	File string `json:"file,omitempty"`
	Env  string `json:"env,omitempty"`
}

// value is the secret without the newline at its end. Errors: it cannot be read, or is empty.
func (s Secret) value() (string, error) {
	if s.File == "" {
		if value := os.Getenv(s.Env); value != "" {
			return value, nil
		}
		return "", fmt.Errorf("the environment variable %s is empty: set it for the worker", s.Env)
	}
	file, err := os.Open(s.File)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	value := strings.TrimRight(string(data), "\r\n")
	switch {
	case len(data) > maxSecret:
		return "", fmt.Errorf("the secret's file %s has more than %d bytes", s.File, maxSecret)
	case value == "":
		return "", fmt.Errorf("the secret's file %s is empty", s.File)
	}
	return value, nil
}

func (s Secret) validate() error {
	if (s.File == "") == (s.Env == "") {
		return errors.New("want exactly one of file and env")
	}
	return nil
}

// String conceals the secret.
func (Secret) String() string { return concealed }

// GoString conceals the secret.
func (Secret) GoString() string { return concealed }

// MarshalJSON conceals the secret.
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(concealed) }

// LogValue conceals the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(concealed) }

// concealer takes secrets out of texts.
type concealer []string

// add remembers a secret in the forms in which an answer or an error may echo it.
func (c *concealer) add(secret string) {
	quoted, _ := json.Marshal(secret)
	for _, form := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(string(quoted), `"`), strings.Trim(fmt.Sprintf("%q", secret), `"`),
	} {
		if form != "" && !slices.Contains(*c, form) {
			*c = append(*c, form)
		}
	}
}

func (c concealer) conceal(text string) string {
	// The longest first, so that no form uncovers the rest of a longer one.
	forms := slices.SortedFunc(slices.Values(c), func(a, b string) int { return len(b) - len(a) })
	for _, form := range forms {
		text = strings.ReplaceAll(text, form, concealed)
	}
	return text
}

// excerpt is the beginning of a text from outside, on one line and without secrets: at most n bytes of it.
func (c concealer) excerpt(text string, n int) string {
	text = strings.ToValidUTF8(c.conceal(text), "�")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
