package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minPart is how many bytes a part of a secret must have to be secret by itself. A shorter one is too common a word.
const minPart = 6

// Redactor takes secrets out of texts. Its zero value knows none. It is not safe for concurrent use.
type Redactor struct{ values []string }

// Read reads a secret and remembers it.
func (r *Redactor) Read(v Value) (string, error) {
	value, err := v.Read()
	if err == nil {
		r.Add(value)
	}
	return value, err
}

// Add remembers secrets; an empty one is none.
func (r *Redactor) Add(values ...string) {
	for _, value := range values {
		if value != "" && !slices.Contains(r.values, value) {
			r.values = append(r.values, value)
		}
	}
}

// Redact is the text without the secrets: neither as they are nor as URLs, JSON, Go or base64 write them, in capitals or
// small letters. Libraries take secrets apart and put the parts elsewhere (a token out of one URL into another), so that
// their long parts count too.
func (r *Redactor) Redact(text string) string {
	var forms []string
	for _, value := range r.values {
		forms = append(forms, formsOf(value)...)
		for _, part := range parts(value) {
			forms = append(forms, part, url.QueryEscape(part), url.PathEscape(part))
		}
	}
	return replaced(text, forms)
}

// RedactWhole is Redact for a text that is used and not shown: the parts of secrets stay, which may be words that it has by
// itself.
func (r *Redactor) RedactWhole(text string) string {
	var forms []string
	for _, value := range r.values {
		forms = append(forms, formsOf(value)...)
	}
	return replaced(text, forms)
}

func replaced(text string, forms []string) string {
	if len(forms) == 0 {
		return text
	}
	// The longest first, so that a part does not take a piece out of the whole.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	for i, form := range forms {
		forms[i] = regexp.QuoteMeta(form)
	}
	// What was taken out before stays as it is, though a secret may have the word in it.
	forms = append([]string{regexp.QuoteMeta(Hidden)}, forms...)
	pattern, err := regexp.Compile("(?i)" + strings.Join(forms, "|"))
	if err != nil {
		// A secret that is not UTF-8 is no pattern. Nothing is shown rather than too much.
		return Hidden
	}
	return pattern.ReplaceAllLiteralString(text, Hidden)
}

// Error is the error without the secrets. Where it shows one, what it wraps is lost with it, since that shows it too.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	if text := r.Redact(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// formsOf are the ways in which a secret is written.
func formsOf(value string) []string {
	quoted := strconv.Quote(value)
	data := []byte(value)
	forms := []string{
		value, url.QueryEscape(value), url.PathEscape(value), quoted[1 : len(quoted)-1],
		base64.StdEncoding.EncodeToString(data), base64.URLEncoding.EncodeToString(data),
		base64.RawStdEncoding.EncodeToString(data), base64.RawURLEncoding.EncodeToString(data),
	}
	return append(forms, jsonForms(value)...)
}

// jsonForms are the insides of the JSON strings: with and without HTML's characters escaped, and as Python and others write
// it, in ASCII.
func jsonForms(value string) []string {
	escaped, _ := json.Marshal(value) // a string always marshals
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // as above
	inside := func(text string) string { return strings.TrimSuffix(strings.TrimPrefix(text, `"`), `"`) }
	unescaped := inside(strings.TrimSuffix(plain.String(), "\n"))
	var ascii strings.Builder
	for _, c := range unescaped {
		switch {
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&ascii, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		case c > 0x7e:
			fmt.Fprintf(&ascii, `\u%04x`, c)
		default:
			ascii.WriteRune(c)
		}
	}
	return []string{inside(string(escaped)), unescaped, ascii.String()}
}

var wordRuns = regexp.MustCompile(`[\pL\pN]+`)

// parts are the pieces of a secret that are secret by themselves. The host of an http URL is not: it says which server an
// error is about. That of any other URL is, because there it often is a key.
func parts(value string) []string {
	var all []string
	rest := value
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		if password, ok := u.User.Password(); ok && password != "" {
			basic := u.User.Username() + ":" + password // as a client sends it
			all = append(all, password, base64.StdEncoding.EncodeToString([]byte(basic)))
		}
		if scheme := u.Scheme; scheme == "http" || scheme == "https" {
			u.Host, u.Scheme = "", ""
			rest = u.String()
		} else {
			rest = strings.TrimPrefix(value, scheme)
		}
		for _, values := range u.Query() {
			all = append(all, values...)
		}
	}
	for _, text := range []string{rest, unescaped(rest)} {
		all = append(all, wordRuns.FindAllString(text, -1)...)
	}
	return slices.DeleteFunc(all, func(part string) bool { return len(part) < minPart })
}

func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
