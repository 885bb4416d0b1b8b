package record

import (
	"strings"

	"drydock.dev/drydock/rules/visible"
)

// markdownEscapes make each character that has a meaning in Markdown, in a table of it or in HTML stand for itself. The
// ones of HTML are escaped as HTML has it, since not everything that renders Markdown knows the backslash in front of them.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `|`, `\|`, `~`, `\~`, `#`, `\#`, `!`, `\!`, `$`, `\$`,
	`<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`,
)

// inMarkdown is text that shows as it is, in one line: of a paragraph that has begun already, or of a table.
func inMarkdown(text string) string {
	return markdownEscapes.Replace(strings.TrimSpace(visible.Line(text)))
}

// joined joins the parts that are not empty.
func joined(separator string, parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, separator)
}
