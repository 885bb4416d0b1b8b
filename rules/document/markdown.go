package document

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/rules/markdown"
)

// Markdown is a document for a ticket, in the dialect that GitHub, GitLab and most trackers share.
func Markdown(d Document) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n", markdown.Text(d.Title))
	for _, part := range d.Parts {
		b.WriteString("\n")
		switch p := part.(type) {
		case Facts:
			b.WriteString(p.markdown())
		case Line:
			fmt.Fprintf(&b, "%s\n", markdown.Text(p.Text))
		case Table:
			if p.Title != "" {
				fmt.Fprintf(&b, "### %s\n\n", markdown.Text(p.Title))
			}
			b.WriteString(p.markdown())
		}
	}
	return b.String()
}

func (f Facts) markdown() string {
	var b strings.Builder
	for _, fact := range f {
		fmt.Fprintf(&b, "- **%s:** %s\n", markdown.Text(fact.Name), markdown.Text(fact.Value))
	}
	return b.String()
}

func (t Table) markdown() string {
	if len(t.Rows) == 0 {
		return markdown.Text(t.None) + "\n"
	}
	if len(t.Header) == 0 {
		return t.list() // a table of this dialect has to have a header
	}
	var b strings.Builder
	markdownRow(&b, t.Header)
	b.WriteString(strings.Repeat("| --- ", len(t.Header)) + "|\n")
	for _, row := range t.Rows {
		markdownRow(&b, row.Cells)
	}
	if t.More != "" {
		fmt.Fprintf(&b, "\n%s\n", markdown.Text(t.More))
	}
	return b.String()
}

func markdownRow(b *strings.Builder, cells []string) {
	for _, cell := range cells {
		b.WriteString("| " + markdown.Text(cell) + " ")
	}
	b.WriteString("|\n")
}

// Details is a document for the details of a workflow in the Temporal UI, which shows CommonMark and nothing beyond it: tables become lists.
func Details(d Document) string {
	var paragraphs []string
	if d.Title != "" {
		paragraphs = append(paragraphs, "**"+markdown.Text(d.Title)+"**")
	}
	for _, part := range d.Parts {
		text := ""
		switch p := part.(type) {
		case Facts:
			text = p.markdown()
		case Line:
			text = markdown.Text(p.Text)
		case Table:
			if p.Title != "" {
				text = markdown.Text(p.Title) + ":\n\n"
			}
			text += p.list()
		}
		paragraphs = append(paragraphs, strings.TrimSuffix(text, "\n"))
	}
	return strings.Join(paragraphs, "\n\n")
}

// list writes an entry for each row, each cell but the first behind the name of its column.
func (t Table) list() string {
	if len(t.Rows) == 0 {
		return markdown.Text(t.None) + "\n"
	}
	var b strings.Builder
	for i, row := range t.Rows {
		if i > 0 && len(row.Cells) > 0 && row.Cells[0] == "" {
			b.WriteString("  ")
		}
		fmt.Fprintf(&b, "- %s\n", strings.Join(t.entry(row), "; "))
	}
	if t.More != "" {
		fmt.Fprintf(&b, "- %s\n", markdown.Text(t.More))
	}
	return b.String()
}

func (t Table) entry(row Row) []string {
	var parts []string
	for i, cell := range row.Cells {
		text := markdown.Text(cell)
		switch {
		case text == "":
			continue
		case i > 0 && i < len(t.Header) && t.Header[i] != "":
			text = markdown.Text(t.Header[i]) + ": " + text
		}
		parts = append(parts, text)
	}
	return parts
}
