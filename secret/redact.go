package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// minPart is how many bytes a part of a secret must have to be secret by itself. A shorter one is too common a word.
const minPart = 6

// minWord is how many bytes a user or a password must have to be looked for, as a word by itself; minWithin how many characters
// base64 must have of a secret.
const (
	minWord   = 3
	minWithin = 8
)

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

// Redact is the text without the secrets: neither as they are nor as URLs, JSON, Go, HTML or base64 write them, in capitals
// or small letters. Who gets a secret takes it apart and shows the parts: the token of a header without its scheme, the
// password of a URL, the signature of a JWT. Their long parts count too, in every form, and the user and the password of
// Basic however short they are, as words.
func (r *Redactor) Redact(text string) string { return replaced(text, len(text), r.forms()) }

// RedactStart is Redact for the first n bytes of a text; whole says that it has no more. A secret that begins within them
// is taken out though it ends behind them.
func (r *Redactor) RedactStart(text string, n int) (start string, whole bool) {
	if n >= len(text) {
		return r.Redact(text), true
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	forms, behind := r.forms(), utf8.UTFMax
	for _, f := range forms {
		behind = max(behind, utf8.UTFMax*len(f.text)) // other cases of a character may be longer
	}
	return replaced(text[:min(n+behind, len(text))], n, forms), false
}

// RedactWhole is Redact for a text that is used and not shown: the parts of secrets stay, which may be words that it has by
// itself.
func (r *Redactor) RedactWhole(text string) string {
	var forms []form
	for _, value := range r.values {
		for _, whole := range wholes(value) {
			forms = appendForms(forms, formsOf(whole)...)
		}
	}
	return replaced(text, len(text), forms)
}

func (r *Redactor) forms() []form {
	var forms []form
	for _, value := range r.values {
		for _, whole := range wholes(value) {
			forms = appendForms(forms, formsOf(whole)...)
		}
		for _, part := range parts(value) {
			if len(part) >= minPart {
				forms = appendForms(forms, formsOf(part)...)
			} else {
				forms = append(forms, word(part))
			}
		}
	}
	return forms
}

// form is how something secret is written, and the pattern that finds it.
type form struct{ pattern, text string }

func appendForms(all []form, texts ...string) []form {
	for _, text := range texts {
		all = append(all, form{regexp.QuoteMeta(text), text})
	}
	return all
}

// word is a part that is too short to be looked for within words.
func word(part string) form {
	pattern := regexp.QuoteMeta(part)
	if isWord.MatchString(part) {
		pattern = `\b` + pattern + `\b`
	}
	return form{pattern, part}
}

var isWord = regexp.MustCompile(`^\w(.*\w)?$`)

// replaced is the text up to its end, which may have more behind it, without what begins there of the forms.
func replaced(text string, end int, forms []form) string {
	if len(forms) == 0 {
		return text[:end]
	}
	if slices.ContainsFunc(forms, func(f form) bool { return !utf8.ValidString(f.text) }) {
		// A secret that is not UTF-8 is no pattern. Nothing is shown rather than too much.
		return Hidden
	}
	if forms = occurring(text, forms); len(forms) == 0 {
		return text[:end]
	}
	// The longest first, so that a part does not take a piece out of the whole.
	slices.SortStableFunc(forms, func(a, b form) int { return len(b.text) - len(a.text) })
	// What was taken out before stays as it is, though a secret may have the word in it.
	patterns := []string{regexp.QuoteMeta(Hidden)}
	for _, f := range forms {
		patterns = append(patterns, f.pattern)
	}
	pattern, err := regexp.Compile("(?i)" + strings.Join(patterns, "|"))
	if err != nil {
		return Hidden
	}
	var out strings.Builder
	shown := 0
	for _, found := range pattern.FindAllStringIndex(text, -1) {
		if found[0] >= end {
			break
		}
		out.WriteString(text[shown:found[0]] + Hidden)
		shown = found[1]
	}
	return out.String() + text[min(shown, end):end]
}

// occurring are the forms that a text has, each once. A token has more than a thousand forms, and the time that a pattern
// takes grows with them.
func occurring(text string, forms []form) []form {
	folded, seen := foldedCase(text), map[string]bool{}
	return slices.DeleteFunc(forms, func(f form) bool {
		again := seen[f.pattern]
		seen[f.pattern] = true
		return again || !strings.Contains(folded, foldedCase(f.text))
	})
}

// foldedCase is a text with one of the cases of every character, the same for all that (?i) takes for the same.
func foldedCase(text string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, text)
}

// Error is the error without the secrets. If it shows one, what it wraps is lost with it, since that shows it too.
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
		value, url.QueryEscape(value), url.PathEscape(value), quoted[1 : len(quoted)-1], html.EscapeString(value),
		base64.StdEncoding.EncodeToString(data), base64.URLEncoding.EncodeToString(data),
		base64.RawStdEncoding.EncodeToString(data), base64.RawURLEncoding.EncodeToString(data),
	}
	return append(append(forms, jsonForms(value)...), within(value)...)
}

// within are what base64 of a longer text has of a secret in it, wherever in that text it begins.
func within(value string) []string {
	var all []string
	for before := range 3 {
		data := append(make([]byte, before), value...)
		first, last := (8*before+5)/6, 8*len(data)/6
		if last-first < minWithin {
			continue
		}
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, encoding.EncodeToString(data)[first:last])
		}
	}
	return all
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

// schemes begin the value of a header whose rest is the secret; they are no secret themselves.
var schemes = []string{"bearer", "basic", "digest", "token", "apikey", "genie-key", "geniekey", "splunk", "negotiate"}

// credentials are what stands behind the scheme of a header, and the scheme; both are empty if there is none.
func credentials(value string) (scheme, rest string) {
	scheme, rest, _ = strings.Cut(strings.TrimSpace(value), " ")
	if rest = strings.TrimSpace(rest); rest == "" || !slices.Contains(schemes, strings.ToLower(scheme)) {
		return "", ""
	}
	return scheme, rest
}

// basic are the user and the password of Basic, in a header or in a URL.
func basic(value string) (user, password string) {
	if scheme, rest := credentials(value); strings.EqualFold(scheme, "basic") {
		if plain, err := base64.StdEncoding.DecodeString(rest); err == nil {
			user, password, _ = strings.Cut(string(plain), ":")
		}
		return user, password
	}
	if u, err := url.Parse(value); err == nil && u.Host != "" && u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	return user, password
}

// wholes are a secret, and what of it is as good as the whole: the credentials without their scheme, and user and password as
// Basic has them.
func wholes(value string) []string {
	all := []string{value}
	if _, rest := credentials(value); len(rest) >= minPart {
		all = append(all, rest)
	}
	if user, password := basic(value); password != "" {
		all = append(all, user+":"+password)
		if len(password) >= minPart {
			all = append(all, password)
		}
	}
	return all
}

// words are runs of letters and digits, tokens what stands between the signs that tokens do not have.
var (
	words  = regexp.MustCompile(`[\pL\pN]+`)
	tokens = regexp.MustCompile(`[^\s/?&=@:;,."'<>(){}\[\]]+`)
)

// parts are the pieces of a secret that are secret by themselves. The host of an http URL is not: it says which server an
// error is about. That of any other URL is, because there it often is a key. Shorter ones than minPart are users and
// passwords.
func parts(value string) []string {
	var all []string
	rest := value
	if _, behind := credentials(value); behind != "" {
		rest = behind
	}
	user, password := basic(value)
	if u, err := url.Parse(value); err == nil && u.Host != "" {
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
		all = append(all, words.FindAllString(text, -1)...)
		all = append(all, tokens.FindAllString(text, -1)...)
	}
	all = slices.DeleteFunc(all, func(part string) bool { return len(part) < minPart })
	for _, name := range []string{user, password} {
		if len(name) >= minWord {
			all = append(all, name)
		}
	}
	return all
}

func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
