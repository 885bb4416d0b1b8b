package notify

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minPart is how long a part of a secret has to be to count as secret by itself. A shorter one is too common a word.
const minPart = 6

// disclosed are the secret values that one delivery has read, so that they can be taken out of what it reports.
type disclosed struct{ values []string }

// read reads a secret and remembers it. The error says which field it is of.
func (d *disclosed) read(field string, s Secret) (string, error) {
	value, err := s.Value()
	if err != nil {
		return "", &failure{err: err, doing: field}
	}
	d.add(value)
	return value, nil
}

// address reads a URL; one that is not secret needs no hiding.
func (d *disclosed) address(field string, a Address) (string, error) {
	if a.Secret.IsZero() {
		return a.URL, nil
	}
	return d.read(field, a.Secret)
}

func (d *disclosed) add(values ...string) {
	for _, value := range values {
		if value != "" {
			d.values = append(d.values, value)
		}
	}
}

var wordRuns = regexp.MustCompile(`[\pL\pN]+`)

// redacted is the text without the secrets: neither as they are nor as URLs, JSON, Go or base64 write them. Libraries take
// secrets apart and put the parts elsewhere (a token out of one URL into another), so that their parts count too.
func (d *disclosed) redacted(text string) string {
	var forms []string
	for _, value := range d.values {
		quoted := strconv.Quote(value)
		asJSON, _ := json.Marshal(value) // a string always marshals
		forms = append(forms, value, url.QueryEscape(value), url.PathEscape(value),
			quoted[1:len(quoted)-1], string(asJSON[1:len(asJSON)-1]),
			base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)))
		for _, part := range parts(value) {
			forms = append(forms, part, url.QueryEscape(part), url.PathEscape(part))
		}
	}
	if len(forms) == 0 {
		return text
	}
	// The longest first, so that a part does not take a piece out of the whole.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	for i, form := range forms {
		forms[i] = regexp.QuoteMeta(form)
	}
	pattern, err := regexp.Compile("(?i)" + strings.Join(slices.Compact(forms), "|"))
	if err != nil {
		// A secret that is not UTF-8 is no pattern. Nothing is shown rather than too much.
		return hidden
	}
	return pattern.ReplaceAllLiteralString(text, hidden)
}

// parts are the pieces of a secret that are secret by themselves. The host of an http URL is not: it says which receiver
// an error is about. That of any other URL is, because there it often is a key.
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
