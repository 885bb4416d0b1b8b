package terminal

import (
	"fmt"
	"io"
	"strings"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/visible"
)

// Rows is a table under construction. If the page is too narrow for it, its longest texts go on in the next line, or
// are cut.
type Rows struct {
	page *Page
	rows []row
	cut  bool
}

type row struct {
	cells []string
	// painted is the cell whose first word has a style.
	painted int
	style   document.Style
}

// NewRows begins a table, with a header where there is one.
func NewRows(to io.Writer, header ...string) *Rows {
	r := &Rows{page: PageOf(to)}
	if len(header) > 0 && !r.page.NoHeaders {
		r.Add(header...)
	}
	return r
}

// OneLineEach begins a table each of whose rows stays in one line.
func OneLineEach(to io.Writer, header ...string) *Rows {
	r := NewRows(to, header...)
	r.cut = true
	return r
}

// Add adds a row.
func (r *Rows) Add(cells ...string) {
	for i, cell := range cells {
		cells[i] = OneLine(cell)
	}
	r.rows = append(r.rows, row{cells: cells})
}

// AddPainted adds a row in which one cell's first word has a style.
func (r *Rows) AddPainted(cell int, style document.Style, cells ...string) {
	r.Add(cells...)
	last := &r.rows[len(r.rows)-1]
	last.painted, last.style = cell, style
}

// Done prints the table, without spaces at the ends of lines.
func (r *Rows) Done() {
	widths := columnWidths(r.rows)
	if r.page.Width > 0 {
		narrow(widths, r.rows, r.page.Width, !r.cut)
	}
	for _, one := range r.rows {
		for _, line := range r.lines(one, widths) {
			fmt.Fprintln(r.page, line)
		}
	}
}

func (r *Rows) lines(one row, widths []int) []string {
	parts, height := make([][]string, len(one.cells)), 1
	for i, cell := range one.cells {
		if r.cut {
			parts[i] = []string{cutTo(cell, widths[i])}
		} else {
			parts[i] = wrap(cell, widths[i])
		}
		height = max(height, len(parts[i]))
	}
	lines := make([]string, height)
	for l := range lines {
		var line strings.Builder
		blank, painted, until := 0, 0, 0
		for i, part := range parts {
			text := ""
			if l < len(part) {
				text = part[l]
			}
			if text != "" {
				line.WriteString(strings.Repeat(" ", blank))
				blank = 0
				if l == 0 && i == one.painted {
					painted, until = line.Len(), line.Len()+firstWord(text)
				}
				line.WriteString(text)
			}
			blank += widths[i] - columns(text) + gap
		}
		lines[l] = r.page.finish(line.String(), one.style, painted, until)
	}
	return lines
}

// Print prints lines of text, broken between words where they are too long for the page.
func Print(w io.Writer, format string, args ...any) {
	page := PageOf(w)
	for line := range strings.Lines(visible.Lines(fmt.Sprintf(format, args...))) {
		text, ended := strings.CutSuffix(line, "\n")
		if page.Width > 0 {
			text = strings.Join(wrap(text, page.Width), "\n")
		}
		if ended {
			text += "\n"
		}
		fmt.Fprint(page, text)
	}
}

// firstWord is where the first word of a text ends, its indentation included.
func firstWord(text string) int {
	begins := len(text) - len(strings.TrimLeft(text, " "))
	if end := strings.IndexByte(text[begins:], ' '); end >= 0 {
		return begins + end
	}
	return len(text)
}
