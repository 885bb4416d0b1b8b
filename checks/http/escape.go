package http

import (
	"encoding/json"
	"mime"
	"net/url"
	"strings"
	"unicode"
)

// escapeURL encodes all but RFC 3986's unreserved characters, so that a value ends neither a path's segment nor a query's
// parameter.
func escapeURL(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

// escapeJSON writes a value as the inside of a JSON string.
func escapeJSON(value string) string {
	quoted, _ := json.Marshal(value) // a string is always JSON
	return string(quoted[1 : len(quoted)-1])
}

// escapeText keeps a value on its line.
func escapeText(value string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, value)
}

// escapeFor is how values are escaped in a body.
func escapeFor(contentType string) func(string) string {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil, media == "application/json", strings.HasSuffix(media, "+json"):
		return escapeJSON
	case media == "application/x-www-form-urlencoded":
		return escapeURL
	default:
		return escapeText
	}
}
