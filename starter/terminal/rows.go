package terminal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Rows is a table under construction.
type Rows struct {
	to      io.Writer
	aligned *bytes.Buffer
	*tabwriter.Writer
}

// NewRows begins a table, with a header where there is one.
func NewRows(to io.Writer, header ...string) Rows {
	aligned := &bytes.Buffer{}
	r := Rows{to, aligned, tabwriter.NewWriter(aligned, 0, 8, 2, ' ', 0)}
	if len(header) > 0 {
		r.Add(header...)
	}
	return r
}

// Add adds a row.
func (r Rows) Add(cells ...string) {
	for i, cell := range cells {
		cells[i] = OneLine(cell)
	}
	fmt.Fprintln(r, strings.Join(cells, "\t"))
}

// Done prints the table, without the spaces that empty last cells would leave at the ends of lines.
func (r Rows) Done() {
	r.Flush()
	for l := range strings.Lines(r.aligned.String()) {
		fmt.Fprintln(r.to, strings.TrimRight(l, " \n"))
	}
}
