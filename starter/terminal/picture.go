package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"drydock.dev/drydock/rules/document"
)

// Picture is a block of lines in a terminal that is drawn anew where it stands.
type Picture struct {
	out    io.Writer
	colour bool
	size   sizer
	drawn  int
}

// NewPicture draws on a terminal; it is nil if out is none.
func NewPicture(out io.Writer) *Picture {
	fd, ok := Detect(out)
	if !ok {
		return nil
	}
	return &Picture{out: out, colour: colours(os.LookupEnv), size: descriptor(fd)}
}

// sizer is a terminal, by how many columns and lines it has.
type sizer interface{ size() (width, height int) }

type descriptor int

func (d descriptor) size() (width, height int) {
	if width, height, err := term.GetSize(int(d)); err == nil && width > 0 && height > 0 {
		return width, height
	}
	return 80, 24
}

// Draw puts the lines that render writes in the place of those before, as many as the terminal is high. Render is told how
// many that are.
func (p *Picture) Draw(render func(page *Page, height int)) {
	width, height := p.size.size()
	// A line that has scrolled off the top cannot be drawn again, and one that wraps would be two.
	height = max(1, height-1)
	var drawn bytes.Buffer
	render(&Page{Writer: &drawn, Width: max(1, width-1), Colour: p.colour}, height)
	var text bytes.Buffer
	if p.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA\r", p.drawn)
	}
	p.drawn = 0
	for line := range bytes.Lines(drawn.Bytes()) {
		if p.drawn == height {
			break
		}
		text.Write(bytes.TrimSuffix(line, []byte("\n")))
		text.WriteString("\x1b[K\n")
		p.drawn++
	}
	text.WriteString("\x1b[J")
	// Whoever looked has gone, if it fails; the wait goes on for the exit code.
	_, _ = p.out.Write(text.Bytes())
}

// Paint is a text in a style, where the page has colours.
func (p *Page) Paint(style document.Style, text string) string {
	if !p.Colour || style == document.Plain || text == "" {
		return text
	}
	return "\x1b[" + colourOf[style] + "m" + text + "\x1b[0m"
}
