// Package terminal draws lines that change, tables, prefixes and names in a terminal or a pipe.
package terminal

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/visible"
)

// Display shows one line per maintenance. In a terminal the lines stand below everything else and are drawn anew;
// in a pipe a line is printed, with the time, when its text has changed.
type Display struct {
	mu   sync.Mutex
	out  io.Writer
	now  func() time.Time
	live bool
	// quiet leaves out what changes, outside of a terminal.
	quiet  bool
	colour bool
	size   sizer

	order []string
	lines map[string]Line
	said  map[string]string
	drawn int
}

// NewDisplay draws on out, which may be a terminal or not.
func NewDisplay(out io.Writer, now func() time.Time) *Display {
	d := &Display{out: out, now: now, lines: map[string]Line{}, said: map[string]string{}}
	if fd, ok := Detect(out); ok {
		d.live, d.colour = true, colours(os.LookupEnv)
		d.size = descriptor(fd)
	}
	return d
}

// NewProgress is a display of what goes on beside a command's own output: outside of a terminal it prints nothing unless verbose.
func NewProgress(out io.Writer, now func() time.Time, verbose bool) *Display {
	d := NewDisplay(out, now)
	d.quiet = !d.live && !verbose
	return d
}

// NewNotes is a display that shows nothing but notes, as where the output itself says what changes.
func NewNotes(out io.Writer, now func() time.Time) *Display {
	d := NewDisplay(out, now)
	d.live, d.quiet = false, true
	return d
}

// Detect returns the file descriptor of a reader or writer that is a terminal.
func Detect(stream any) (int, bool) {
	file, ok := stream.(*os.File)
	if !ok || file == nil {
		return 0, false
	}
	fd := int(file.Fd())
	return fd, term.IsTerminal(fd)
}

// Update shows a maintenance's line.
func (d *Display) Update(key string, l Line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.Label, l.Text = OneLine(l.Label), OneLine(l.Text)
	if _, known := d.lines[key]; !known {
		at, _ := slices.BinarySearchFunc(d.order, l.Label, func(k, label string) int { return CompareNames(d.lines[k].Label, label) })
		d.order = slices.Insert(d.order, at, key)
	}
	d.lines[key] = l
	if d.live {
		d.redraw()
		return
	}
	if d.said[key] != l.Text && !d.quiet {
		d.said[key] = l.Text
		fmt.Fprintf(d.out, "%s  %s  %s\n", d.clock(), l.Label, l.Text)
	}
}

// clock is the time at the beginning of a line in a pipe.
func (d *Display) clock() string {
	now := d.now()
	return moment.Clock(now, now)
}

// Say prints what is being waited for, where progress is shown.
func (d *Display) Say(format string, args ...any) {
	if !d.quiet {
		fmt.Fprintln(d.out, visible.Lines(fmt.Sprintf(format, args...)))
	}
}

// Note prints a line that stays.
func (d *Display) Note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clear()
	text := visible.Lines(fmt.Sprintf(format, args...))
	if !d.live {
		text = d.clock() + "  " + text
	}
	fmt.Fprintln(d.out, text)
	d.redraw()
}

// Settle leaves a maintenance's line where it is for good, above the lines that still change.
func (d *Display) Settle(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, known := d.lines[key]
	if !known {
		return
	}
	d.clear()
	if d.live {
		fmt.Fprintln(d.out, d.format(l, d.labelWidth()))
	}
	delete(d.lines, key)
	delete(d.said, key)
	d.order = slices.DeleteFunc(d.order, func(k string) bool { return k == key })
	d.redraw()
}

// Writer passes writes through to another stream of the same terminal, keeping the changing lines below them.
func (d *Display) Writer(to io.Writer) io.Writer { return throughDisplay{d, to} }

type throughDisplay struct {
	d  *Display
	to io.Writer
}

func (t throughDisplay) Write(p []byte) (int, error) {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	t.d.clear()
	n, err := t.to.Write(p)
	t.d.redraw()
	return n, err
}

// clear takes the changing lines off the terminal.
func (d *Display) clear() {
	if d.drawn > 0 {
		fmt.Fprintf(d.out, "\x1b[%dA\r\x1b[J", d.drawn)
		d.drawn = 0
	}
}

func (d *Display) redraw() {
	if !d.live || len(d.order) == 0 {
		return
	}
	_, height := d.size.size()
	// A line that has scrolled off the top cannot be drawn again.
	visible := min(len(d.order), max(1, height-2))
	width := d.labelWidth()
	var b strings.Builder
	if d.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", d.drawn)
	}
	for _, key := range d.order[:visible] {
		b.WriteString(d.format(d.lines[key], width) + "\x1b[K\n")
	}
	d.drawn = visible
	if hidden := len(d.order) - visible; hidden > 0 {
		fmt.Fprintf(&b, "and %d more\x1b[K\n", hidden)
		d.drawn++
	}
	b.WriteString("\x1b[J")
	fmt.Fprint(d.out, b.String())
}

func (d *Display) labelWidth() int {
	width := 0
	for _, l := range d.lines {
		width = max(width, columns(l.Label))
	}
	return width
}

// format fits a line into the terminal's width: a line that wraps would be two when it is drawn again.
func (d *Display) format(l Line, labelWidth int) string {
	width, _ := d.size.size()
	page := Page{Width: max(0, width-1), Colour: d.colour}
	begin := fmt.Sprintf("%-*s  %6s  ", labelWidth, l.Label, period.Age(l.Age))
	return page.finish(begin+l.Text, l.Style, len(begin), len(begin)+firstWord(strings.Replace(l.Text, ":", " ", 1)))
}

// Line is what is shown of one maintenance while it goes on. Text changes only when something happened; Age is the
// time since the last change of phase.
type Line struct {
	Label string
	Text  string
	Age   time.Duration
	// Style is that of the first word.
	Style document.Style
}
