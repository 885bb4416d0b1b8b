package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
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

// Style is how a word is coloured.
type Style string

// The styles, as a terminal has them.
const (
	Plain  Style = ""
	Good   Style = "32"
	Bad    Style = "31"
	Active Style = "33"
	Faint  Style = "2"
)

// finish is a line that fits the page, with a part of it in a style.
func (p *Page) finish(line string, style Style, from, to int) string {
	if p.Width > 0 {
		line = cutTo(line, p.Width)
	}
	if !p.Colour || style == Plain || from >= to || to > len(line) {
		return line
	}
	return line[:from] + "\x1b[" + string(style) + "m" + line[from:to] + "\x1b[0m" + line[to:]
}
