// Package web writes documents, and pictures of how long things took, as HTML: for the page of a worker, and for reports.
package web

import (
	"embed"
	"html/template"
	"strings"
	"time"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/visible"
)

//go:embed document.html style.css
var files embed.FS

var documents = template.Must(template.ParseFS(files, "document.html"))

// Style is the style sheet of all that the package writes, for a light and a dark ground.
func Style() string {
	text, err := files.ReadFile("style.css")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// Links say where the cells of tables lead to; an empty path is nowhere.
type Links interface {
	To(t document.Table, column int, cell string) string
}

// Nowhere has no links.
type Nowhere struct{}

// To implements Links.
func (Nowhere) To(document.Table, int, string) string { return "" }

// part is a part of a document, as the template shows it.
type part struct {
	Facts   []fact
	Table   *table
	Line    string
	Command bool
}

// styled is a text whose first word has a style, and which may lead somewhere.
type styled struct{ Class, First, Rest, To string }

type fact struct {
	Name  string
	Value styled
}

type table struct {
	Title, None, More string
	Header            []string
	Rows              [][]styled
}

// HTML is a document, under its title if it has one. What nobody would see in its texts, or what turns them round, is made visible.
func HTML(d document.Document, links Links) (template.HTML, error) {
	shown := struct {
		Title string
		Parts []part
	}{Title: visible.Line(d.Title)}
	for _, one := range d.Parts {
		switch one := one.(type) {
		case document.Facts:
			p := part{}
			for _, f := range one {
				p.Facts = append(p.Facts, fact{Name: f.Name, Value: styleOf(f.Value, f.Style, true)})
			}
			shown.Parts = append(shown.Parts, p)
		case document.Line:
			shown.Parts = append(shown.Parts, part{Line: visible.Line(one.Text), Command: one.Whole})
		case document.Table:
			shown.Parts = append(shown.Parts, part{Table: tableOf(one, links)})
		}
	}
	return execute("document.html", shown)
}

func tableOf(t document.Table, links Links) *table {
	shown := &table{Title: t.Title, None: t.None, More: t.More, Header: t.Header}
	for _, row := range t.Rows {
		cells := make([]styled, len(row.Cells))
		for i, cell := range row.Cells {
			cells[i] = styleOf(cell, row.Style, i == row.Painted)
			cells[i].To = links.To(t, i, cell)
		}
		shown.Rows = append(shown.Rows, cells)
	}
	return shown
}

func styleOf(text string, style document.Style, painted bool) styled {
	text = visible.Line(text)
	if !painted || style == document.Plain {
		return styled{Rest: text}
	}
	word, rest, more := strings.Cut(text, " ")
	if more {
		rest = " " + rest
	}
	return styled{Class: string(style), First: word, Rest: rest}
}

// Segment is a part of a bar, in thousandths of its length. Class is a style of documents, or one of the style sheet's.
type Segment struct {
	Class       string
	From, Width int
	// Tip is what it says where a pointer rests on it.
	Tip string
}

// Thousandths is a part of a whole, from 0 to 1000.
func Thousandths(part, whole time.Duration) int {
	if whole <= 0 {
		return 0
	}
	return int(1000 * min(max(part, 0), whole).Seconds() / whole.Seconds())
}

// Bar is a bar of segments, for those who see; what it says has to stand beside it in words.
func Bar(segments []Segment) (template.HTML, error) { return execute("bar", segments) }

// execute writes a template that escapes what it is given.
func execute(name string, of any) (template.HTML, error) {
	var text strings.Builder
	err := documents.ExecuteTemplate(&text, name, of)
	return template.HTML(text.String()), err //nolint:gosec // it comes from html/template
}
