// Package markdown keeps texts from outside from being read as Markdown.
package markdown

import (
	"strings"

	"drydock.dev/drydock/rules/visible"
)

// escapes make each character that has a meaning in Markdown, in a table of it or in HTML stand for itself. The ones of HTML are escaped
// as HTML has it, since not everything that renders Markdown knows the backslash in front of them.
var escapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `|`, `\|`, `~`, `\~`, `#`, `\#`, `!`, `\!`, `$`, `\$`,
	`<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, `://`, `\://`,
)

// Text is a text as one line of Markdown that shows it as it is: without emphasis, links, HTML or headings of its own, at the beginning of
// a line, within one, and in a table.
func Text(text string) string {
	text = strings.Join(strings.Fields(visible.Line(text)), " ")
	escaped := withoutWWW(escapes.Replace(text))
	if text != "" && strings.ContainsRune("+-=", rune(text[0])) {
		return `\` + escaped
	}
	return numbered(escaped)
}

// withoutWWW escapes the dot that ends "www.", which begins a link.
func withoutWWW(text string) string {
	var out strings.Builder
	for i, r := range text {
		if r == '.' && i >= 3 && strings.EqualFold(text[i-3:i], "www") {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// numbered keeps a text that begins with a number from being an entry of a list.
func numbered(text string) string {
	digits := strings.TrimLeft(text, "0123456789")
	if n := len(text) - len(digits); n > 0 && (strings.HasPrefix(digits, ".") || strings.HasPrefix(digits, ")")) {
		return text[:n] + "\\" + digits
	}
	return text
}
