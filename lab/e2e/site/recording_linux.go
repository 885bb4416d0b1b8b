package site

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// Recording is what a terminal showed while a command line ran, screen by screen.
type Recording struct {
	emulator *vt.Emulator
	began    time.Time
	prompt   string
	screens  []screen
}

// screen is what there is to see from a time on: lines of plain text, and the same as SVG.
type screen struct {
	at          time.Duration
	plain, text []string
}

// Record runs the command line in a terminal of so many columns. DRYDOCK_PICTURES names a folder that keeps the recording as an animated
// picture of that name.
func (s *Site) Record(name string, width int, args ...string) *Recording {
	s.Helper()
	r := &Recording{emulator: vt.NewEmulator(width, terminalRows), began: time.Now(), prompt: "$ drydock " + strings.Join(args, " ")}
	s.inTerminal(width, r, args...)
	if len(r.screens) == 0 {
		s.Fatalf("%s showed nothing", r.prompt)
	}
	if dir := os.Getenv("DRYDOCK_PICTURES"); dir != "" {
		s.NoError(os.WriteFile(filepath.Join(dir, name+".svg"), r.SVG(), 0o644))
	}
	return r
}

// Write takes what the program writes.
func (r *Recording) Write(p []byte) (int, error) {
	if n, err := r.emulator.Write(p); err != nil {
		return n, err
	}
	now := screen{at: time.Since(r.began)}
	for y := range r.emulator.Height() {
		plain, text := r.line(y)
		now.plain, now.text = append(now.plain, plain), append(now.text, text)
	}
	if n := len(r.screens); n > 0 && now.at-r.screens[n-1].at < flicker {
		now.at = r.screens[n-1].at // a picture is drawn in several writes
		r.screens = r.screens[:n-1]
	}
	if n := len(r.screens); n == 0 || !slices.Equal(r.screens[n-1].text, now.text) {
		r.screens = append(r.screens, now)
	}
	return len(p), nil
}

// Last is the text of the last screen.
func (r *Recording) Last() string {
	return strings.TrimSpace(strings.Join(r.screens[len(r.screens)-1].plain, "\n"))
}

// Screens is how many different ones there were.
func (r *Recording) Screens() int { return len(r.screens) }

// colours are those of a terminal, as a dark background wants them.
var colours = map[ansi.BasicColor]string{
	ansi.Red: "#ff7b72", ansi.Green: "#56d364", ansi.Yellow: "#e3b341", ansi.Blue: "#79c0ff", ansi.Magenta: "#d2a8ff", ansi.Cyan: "#39c5cf",
	ansi.BrightBlack: "#9198a1",
}

// line is a line of the screen, as text and as SVG.
func (r *Recording) line(y int) (plain, text string) {
	var all, svg strings.Builder
	for x := 0; x < r.emulator.Width(); {
		cell := r.emulator.CellAt(x, y)
		if cell == nil || cell.Content == "" {
			x++
			continue
		}
		from, run := x, ""
		for x < r.emulator.Width() {
			next := r.emulator.CellAt(x, y)
			if next == nil || next.Content == "" || !next.Style.Equal(&cell.Style) {
				break
			}
			run += next.Content
			x += max(next.Width, 1)
		}
		all.WriteString(run)
		if strings.TrimSpace(run) == "" {
			continue
		}
		style := ""
		if c, ok := cell.Style.Fg.(ansi.BasicColor); ok && colours[c] != "" {
			style = fmt.Sprintf(` fill="%s"`, colours[c])
		}
		fmt.Fprintf(&svg, `<tspan x="%d"%s>%s</tspan>`, margin+from*characterWidth, style, html.EscapeString(strings.TrimRight(run, " ")))
	}
	return strings.TrimRight(all.String(), " "), svg.String()
}

// The picture, in pixels, and its times.
const (
	characterWidth = 8
	lineHeight     = 18
	margin         = 12
	flicker        = 50 * time.Millisecond
	// A screen stays for screenStays at most, the last one for lastStays.
	screenStays = 1500 * time.Millisecond
	lastStays   = 5 * time.Second
)

// SVG is the recording as an animated picture, which shows the last screen to those who want no motion.
func (r *Recording) SVG() []byte {
	begins, at := make([]time.Duration, len(r.screens)), time.Duration(0)
	rows := 0
	for i, s := range r.screens {
		if i > 0 {
			at += min(s.at-r.screens[i-1].at, screenStays)
		}
		begins[i] = at
		for y, line := range s.plain {
			if line != "" {
				rows = max(rows, y+1)
			}
		}
	}
	total := at + lastStays
	width, height := 2*margin+r.emulator.Width()*characterWidth, 2*margin+(rows+1)*lineHeight
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">
<style>
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #e6edf3; white-space: pre }
.s { visibility: hidden } .s:last-child { visibility: visible }
@media (prefers-reduced-motion: no-preference) {
`, width, height, width, height, html.EscapeString("What a terminal shows of "+strings.TrimPrefix(r.prompt, "$ ")))
	part := func(d time.Duration) float64 { return 100 * d.Seconds() / total.Seconds() }
	for i := range r.screens {
		end := total
		if i+1 < len(begins) {
			end = begins[i+1]
		}
		fmt.Fprintf(&b, "@keyframes s%d { 0%% { visibility: hidden } %.2f%% { visibility: visible } %.2f%% { visibility: hidden } }\n", i, part(begins[i]), part(end))
		fmt.Fprintf(&b, "#s%d { animation: s%d %.1fs step-end infinite }\n", i, i, total.Seconds())
	}
	fmt.Fprintf(&b, "}\n</style>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n<text x=\"%d\" y=\"%d\">%s</text>\n", margin, margin+13, html.EscapeString(r.prompt))
	for i, s := range r.screens {
		fmt.Fprintf(&b, `<g class="s" id="s%d">`, i)
		for y, line := range s.text {
			if line != "" {
				fmt.Fprintf(&b, `<text y="%d">%s</text>`, margin+13+(y+1)*lineHeight, line)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
