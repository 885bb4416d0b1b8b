package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/document"
)

func TestAPictureIsDrawnInItsPlace(t *testing.T) {
	var out bytes.Buffer
	p := &Picture{out: &out, size: fixed{20, 4}}
	p.Draw(func(page *Page, height int) {
		if page.Width != 19 || height != 3 || page.Colour {
			t.Errorf("%d columns, %d lines, colours %v", page.Width, height, page.Colour)
		}
		fmt.Fprint(page, "one\ntwo\n")
	})
	if got := out.String(); got != "one\x1b[K\ntwo\x1b[K\n\x1b[J" {
		t.Errorf("at first %q", got)
	}
	out.Reset()
	p.Draw(func(page *Page, _ int) { fmt.Fprint(page, strings.Repeat("line\n", 9)) })
	if got := out.String(); !strings.HasPrefix(got, "\x1b[2A\r") || strings.Count(got, "line") != 3 {
		t.Errorf("then %q", got)
	}
	if NewPicture(&out) != nil {
		t.Error("a buffer is no terminal")
	}
}

func TestPaintNeedsColours(t *testing.T) {
	for want, p := range map[string]*Page{"word": {}, "\x1b[31mword\x1b[0m": {Colour: true}} {
		if got := p.Paint(document.Bad, "word"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&Page{Colour: true}).Paint(document.Plain, "word"); got != "word" {
		t.Errorf("plain: %q", got)
	}
}

// fixed is the size of a terminal.
type fixed struct{ width, height int }

func (f fixed) size() (width, height int) { return f.width, f.height }
