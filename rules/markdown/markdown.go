// Package markdown keeps texts from outside from being read as Markdown.
package markdown

import (
	"strings"

	"drydock.dev/drydock/rules/visible"
)

// marks make something of the text around them, wherever they stand: emphasis, code, links, tables, HTML.
const marks = "\\`*_[]<>~|&"

// Text is a text as one line of Markdown that shows it as it is: without emphasis, links, HTML or headings of its own.
func Text(text string) string {
	text = strings.Join(strings.Fields(visible.Line(text)), " ")
	var out strings.Builder
	for i, r := range text {
		if strings.ContainsRune(marks, r) || i == 0 && strings.ContainsRune("#+-=!", r) ||
			strings.HasPrefix(text[i:], "://") || startsWWW(text, i) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return numbered(out.String())
}

// startsWWW reports whether the dot ends "www.", which makes a link.
func startsWWW(text string, dot int) bool {
	return text[dot] == '.' && dot >= 3 && strings.EqualFold(text[dot-3:dot], "www")
}

// numbered keeps a text that begins with a number from being an entry of a list.
func numbered(text string) string {
	digits := strings.TrimLeft(text, "0123456789")
	if n := len(text) - len(digits); n > 0 && (strings.HasPrefix(digits, ".") || strings.HasPrefix(digits, ")")) {
		return text[:n] + "\\" + digits
	}
	return text
}
