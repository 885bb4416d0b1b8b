// Package document is what people read about a thing, before it is drawn in a terminal or written as Markdown.
package document

import "fmt"

// Document is a title and parts. Its texts come from anywhere: whoever draws a document escapes them.
type Document struct {
	// Title is written in Markdown only: in a terminal the command says what its output is about.
	Title string
	Parts []Part
}

// Part is a part of a document: Facts, a Table, or a Line.
type Part interface{ part() }

// Facts are names with a value each.
type Facts []Fact

// Fact is one of them. The first word of the value has the style.
type Fact struct {
	Name, Value string
	Style       Style
}

// Table is a table, or without a header a list.
type Table struct {
	Title  string
	Header []string
	Rows   []Row
	// None is written where there are no rows; without it such a table is left out.
	None string
	// More says what was left out.
	More string
	// OneLine: in a terminal each row stays in one line, cut where it is too long.
	OneLine bool
}

// Row is a row of a table. One whose first cell is empty goes on with the row above. The first word of the Painted cell has the style.
type Row struct {
	Cells   []string
	Painted int
	Style   Style
}

// Line is a line of text. Apart is whether an empty line is before it. Whole: no terminal breaks it, since it is to be copied.
type Line struct {
	Text         string
	Apart, Whole bool
}

func (Facts) part() {}
func (Table) part() {}
func (Line) part()  {}

// Style is what a word means to its reader.
type Style string

// The styles.
const (
	Plain  Style = ""
	Good   Style = "good"
	Bad    Style = "bad"
	Active Style = "active"
	Faint  Style = "faint"
)

// Fact adds a fact, unless its value is empty.
func (d *Document) Fact(name, value string) { d.PaintedFact(name, Plain, value) }

// PaintedFact adds a fact in a style, unless its value is empty.
func (d *Document) PaintedFact(name string, style Style, value string) {
	if value == "" {
		return
	}
	fact := Fact{Name: name, Value: value, Style: style}
	if n := len(d.Parts); n > 0 {
		if facts, ok := d.Parts[n-1].(Facts); ok {
			d.Parts[n-1] = append(facts, fact)
			return
		}
	}
	d.Parts = append(d.Parts, Facts{fact})
}

// Table adds a table, unless it has nothing to say.
func (d *Document) Table(t Table) {
	if len(t.Rows) > 0 || t.None != "" {
		d.Parts = append(d.Parts, t)
	}
}

// Line adds a line of text right below what is there.
func (d *Document) Line(format string, args ...any) {
	d.Parts = append(d.Parts, Line{Text: fmt.Sprintf(format, args...)})
}

// Paragraph adds a line of text apart from what is there.
func (d *Document) Paragraph(format string, args ...any) {
	d.Parts = append(d.Parts, Line{Text: fmt.Sprintf(format, args...), Apart: true})
}

// Command adds a line to copy, which stays whole however long it is.
func (d *Document) Command(text string) { d.Parts = append(d.Parts, Line{Text: text, Whole: true}) }

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, Row{Cells: cells}) }

// AddPainted adds a row in which one cell's first word has a style.
func (t *Table) AddPainted(cell int, style Style, cells ...string) {
	t.Rows = append(t.Rows, Row{Cells: cells, Painted: cell, Style: style})
}

// AndMore is the line below a list from which some were left out; empty if none were.
func AndMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("and %d more", n)
}
