package record

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/visible"
)

// document is what is shown, before it is text or Markdown.
type document struct {
	title  string
	facts  []fact
	tables []table
}

type fact struct{ name, value string }

type table struct {
	title  string
	header []string
	rows   [][]string
	// none is said where there are no rows; without it such a table is left out.
	none string
	// more says what was left out.
	more string
}

func (d *document) fact(name, value string) {
	if value != "" {
		d.facts = append(d.facts, fact{name, value})
	}
}

func (d *document) table(t table) {
	if len(t.rows) > 0 || t.none != "" {
		d.tables = append(d.tables, t)
	}
}

// Align puts rows, and a header where there is one, into the columns of a terminal.
type Align func(header []string, rows [][]string) string

// text is for a terminal; without align its lines are as long as they become.
func (d document) text(align Align) string {
	if align == nil {
		align = aligned
	}
	var b strings.Builder
	if len(d.facts) > 0 {
		rows := make([][]string, len(d.facts))
		for i, f := range d.facts {
			rows[i] = []string{f.name + ":", visible.Line(f.value)}
		}
		b.WriteString(align(nil, rows))
	}
	for _, t := range d.tables {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		margin := ""
		if t.title != "" {
			fmt.Fprintf(&b, "%s:\n", t.title)
			margin = "  "
		}
		if len(t.rows) == 0 {
			fmt.Fprintf(&b, "%s%s\n", margin, t.none)
			continue
		}
		header := indented(t.header, margin)
		for i, name := range header {
			header[i] = strings.ToUpper(name)
		}
		rows := make([][]string, len(t.rows))
		for i, row := range t.rows {
			rows[i] = indented(row, margin)
		}
		b.WriteString(align(header, rows))
		if t.more != "" {
			fmt.Fprintf(&b, "%s%s\n", margin, visible.Line(t.more))
		}
	}
	return b.String()
}

// indented are a row's cells, each in one line, behind a margin.
func indented(row []string, margin string) []string {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = visible.Line(cell)
	}
	if len(cells) > 0 {
		cells[0] = margin + cells[0]
	}
	return cells
}

// aligned are rows in columns, without the spaces that empty last cells would leave at the ends of lines.
func aligned(header []string, rows [][]string) string {
	var columns, b strings.Builder
	w := tabwriter.NewWriter(&columns, 0, 8, 2, ' ', 0)
	if len(header) > 0 {
		fmt.Fprintln(w, strings.Join(header, "\t"))
	}
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	// It writes to memory and has no error to report.
	_ = w.Flush()
	for l := range strings.Lines(columns.String()) {
		b.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
	return b.String()
}

// markdown is for a ticket, in the dialect that GitHub, GitLab and most trackers share.
func (d document) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n", inMarkdown(d.title))
	if len(d.facts) > 0 {
		b.WriteString("\n")
		for _, f := range d.facts {
			fmt.Fprintf(&b, "- **%s:** %s\n", inMarkdown(f.name), inMarkdown(f.value))
		}
	}
	for _, t := range d.tables {
		b.WriteString("\n")
		if t.title != "" {
			fmt.Fprintf(&b, "### %s\n\n", inMarkdown(t.title))
		}
		if len(t.rows) == 0 {
			fmt.Fprintf(&b, "%s\n", inMarkdown(t.none))
			continue
		}
		markdownRow(&b, t.header)
		b.WriteString(strings.Repeat("| --- ", len(t.header)) + "|\n")
		for _, row := range t.rows {
			markdownRow(&b, row)
		}
		if t.more != "" {
			fmt.Fprintf(&b, "\n%s\n", inMarkdown(t.more))
		}
	}
	return b.String()
}

func markdownRow(b *strings.Builder, cells []string) {
	for _, cell := range cells {
		b.WriteString("| " + inMarkdown(cell) + " ")
	}
	b.WriteString("|\n")
}

// clock writes moments of the day of now without their date.
func clock(now time.Time) func(time.Time) string {
	return func(t time.Time) string { return moment.Clock(t, now) }
}

// dated writes moments for readers who are elsewhere, and read them later.
func dated(now time.Time) func(time.Time) string {
	return func(t time.Time) string { return moment.Dated(t, now) }
}
