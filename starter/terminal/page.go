package terminal

import (
	"io"
	"os"

	"golang.org/x/term"

	"drydock.dev/drydock/rules/document"
)

// Page is where people read: a writer with what is known of the terminal behind it.
type Page struct {
	io.Writer
	// Width is how many columns a line has room for; 0 is no bound, as in a pipe.
	Width int
	// Colour: words may be coloured.
	Colour bool
	// NoHeaders leaves out the names of columns.
	NoHeaders bool
}

// PageOf is the page behind a writer: it fits a terminal, and is unbounded and without colour anywhere else.
func PageOf(w io.Writer) *Page {
	if page, ok := w.(*Page); ok {
		return page
	}
	page := &Page{Writer: w}
	if fd, ok := Detect(w); ok {
		page.Colour = colours(os.LookupEnv)
		if width, _, err := term.GetSize(fd); err == nil {
			page.Width = width
		}
	}
	return page
}

// colours reports whether a terminal's user wants colours (no-color.org), and whether it has them.
func colours(lookup func(string) (string, bool)) bool {
	if without, ok := lookup("NO_COLOR"); ok && without != "" {
		return false
	}
	kind, ok := lookup("TERM")
	return ok && kind != "" && kind != "dumb"
}

var colourOf = map[document.Style]string{document.Good: "32", document.Bad: "31", document.Active: "33", document.Faint: "2"}

// finish is a line that fits the page, with a part of it in a style.
func (p *Page) finish(line string, style document.Style, from, to int) string {
	if p.Width > 0 {
		line = cutTo(line, p.Width)
	}
	if from >= to || to > len(line) {
		return line
	}
	return line[:from] + p.Paint(style, line[from:to]) + line[to:]
}
