package terminal_test

import (
	"bytes"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/starter/terminal"
)

// everything is a document with every part, of one text.
func everything(text string) document.Document {
	var d document.Document
	d.Fact("Node", "worker-01")
	d.PaintedFact("Phase", document.Bad, text)
	d.Line("Warning: %s", text)
	pods := document.Table{Title: "Blocked by", Header: []string{"pod", "message"}, More: document.AndMore(3)}
	pods.Add("default/db-0", text)
	pods.Add("", text)
	d.Table(pods)
	d.Table(document.Table{Title: "Messages", None: "none " + text})
	d.Table(document.Table{Title: "Work"})
	d.Paragraph("That is all of %s.", text)
	return d
}

func TestDocumentsAreDrawn(t *testing.T) {
	const want = `Node:   worker-01
Phase:  it fails
Warning: it fails

Blocked by:
  POD           MESSAGE
  default/db-0  it fails
                it fails
  and 3 more

Messages:
  none it fails

That is all of it fails.
`
	var out bytes.Buffer
	terminal.Show(&out, everything("it fails"))
	if out.String() != want {
		t.Errorf("got\n%s", &out)
	}
	out.Reset()
	terminal.Show(&terminal.Page{Writer: &out, Colour: true, NoHeaders: true}, everything("it fails"))
	if got := out.String(); !strings.Contains(got, "Phase:  \x1b[31mit\x1b[0m fails") || strings.Contains(got, "POD") {
		t.Errorf("got %q", got)
	}
}

func TestTextsStayInTheirLine(t *testing.T) {
	var harmless, hostile bytes.Buffer
	terminal.Show(&harmless, everything("x"))
	terminal.Show(&hostile, everything("x\n\r\n# \u2028\u0085\t\x1b[2J\x00\u202e\xff|"))
	if got, want := strings.Count(hostile.String(), "\n"), strings.Count(harmless.String(), "\n"); got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	if strings.ContainsAny(hostile.String(), "\x1b\x00\r\u202e") {
		t.Errorf("control characters get through: %q", &hostile)
	}
}
