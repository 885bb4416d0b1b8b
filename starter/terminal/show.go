package terminal

import (
	"fmt"
	"io"
	"strings"

	"drydock.dev/drydock/rules/document"
)

// Show draws a document.
func Show(w io.Writer, d document.Document) {
	page := PageOf(w)
	for i, part := range d.Parts {
		if line, is := part.(document.Line); i > 0 && (!is || line.Apart) {
			Print(page, "\n")
		}
		switch p := part.(type) {
		case document.Line:
			if p.Whole {
				fmt.Fprintln(page, OneLine(p.Text))
				continue
			}
			Print(page, "%s\n", OneLine(p.Text))
		case document.Facts:
			r := NewRows(page)
			for _, fact := range p {
				r.AddPainted(1, fact.Style, fact.Name+":", fact.Value)
			}
			r.Done()
		case document.Table:
			showTable(page, p)
		}
	}
}

func showTable(page *Page, t document.Table) {
	margin := ""
	if t.Title != "" {
		Print(page, "%s:\n", OneLine(t.Title))
		margin = "  "
	}
	if len(t.Rows) == 0 {
		Print(page, "%s%s\n", margin, OneLine(t.None))
		return
	}
	var header []string
	for _, name := range behind(margin, t.Header) {
		header = append(header, strings.ToUpper(name))
	}
	r := NewRows(page, header...)
	r.cut = t.OneLine
	for _, row := range t.Rows {
		r.AddPainted(row.Painted, row.Style, behind(margin, row.Cells)...)
	}
	r.Done()
	if t.More != "" {
		Print(page, "%s%s\n", margin, OneLine(t.More))
	}
}

func behind(margin string, cells []string) []string {
	if len(cells) == 0 {
		return nil
	}
	return append([]string{margin + cells[0]}, cells[1:]...)
}
