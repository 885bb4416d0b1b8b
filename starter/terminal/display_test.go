package terminal

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.FixedZone("CEST", 2*60*60))

func TestPipeGetsALineOnlyWhenSomethingChanged(t *testing.T) {
	var out bytes.Buffer
	now := noon
	d := NewDisplay(&out, func() time.Time { return now })
	d.Update("a", Line{Label: "worker-01", Text: "Pending", Age: time.Second})
	now = now.Add(time.Minute)
	d.Update("a", Line{Label: "worker-01", Text: "Pending", Age: time.Minute})
	d.Update("b", Line{Label: "worker-02", Text: "Draining: a\nb"})
	d.Update("a", Line{Label: "worker-01", Text: "Cordoning"})
	d.Note("no worker is polling")
	d.Settle("a")
	want := "12:00:00 CEST  worker-01  Pending\n12:01:00 CEST  worker-02  Draining: a b\n12:01:00 CEST  worker-01  Cordoning\n12:01:00 CEST  no worker is polling\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// screen plays a terminal: it knows as much of ANSI as display uses.
func screen(output string) []string {
	lines, row := []string{""}, 0
	for output != "" {
		switch up := regexp.MustCompile(`^\x1b\[(\d+)A`).FindStringSubmatch(output); {
		case up != nil:
			row -= len(strings.Repeat(".", int(up[1][0]-'0')))
			output = output[len(up[0]):]
		case strings.HasPrefix(output, "\x1b[J"):
			lines = append(lines[:row], "")
			output = output[len("\x1b[J"):]
		case strings.HasPrefix(output, "\x1b[K"):
			output = output[len("\x1b[K"):]
		case output[0] == '\r':
			output = output[1:]
		case output[0] == '\n':
			row++
			if row == len(lines) {
				lines = append(lines, "")
			}
			output = output[1:]
		default:
			end := strings.IndexAny(output, "\x1b\r\n")
			if end < 0 {
				end = len(output)
			}
			lines[row] = output[:end]
			output = output[end:]
		}
	}
	return lines[:len(lines)-1]
}

func liveDisplay(out *bytes.Buffer, width, height int) *Display {
	d := NewDisplay(out, func() time.Time { return noon })
	d.live, d.size = true, fixed{width, height}
	return d
}

func checkScreen(t *testing.T, out *bytes.Buffer, want ...string) {
	t.Helper()
	if got := strings.Join(screen(out.String()), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the screen shows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestTerminalLinesChangeInPlaceBelowEverythingElse(t *testing.T) {
	var out bytes.Buffer
	d := liveDisplay(&out, 80, 24)
	d.Update("b", Line{Label: "worker-10", Text: "Pending", Age: time.Second})
	d.Update("a", Line{Label: "worker-2", Text: "Draining", Age: time.Minute})
	checkScreen(t, &out, "worker-2    1m00s  Draining", "worker-10      1s  Pending")
	d.Update("a", Line{Label: "worker-2", Text: "Ready"})
	if _, err := d.Writer(&out).Write([]byte("[worker-2] hello\n")); err != nil {
		t.Fatal(err)
	}
	d.Note("a note")
	checkScreen(t, &out, "[worker-2] hello", "a note", "worker-2       0s  Ready", "worker-10      1s  Pending")
	d.Settle("a")
	d.Update("b", Line{Label: "worker-10", Text: "Cordoning"})
	checkScreen(t, &out, "[worker-2] hello", "a note", "worker-2       0s  Ready", "worker-10      0s  Cordoning")
}

func TestTerminalLinesFitTheTerminal(t *testing.T) {
	var out bytes.Buffer
	d := liveDisplay(&out, 20, 5)
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		d.Update(name, Line{Label: name, Text: "Pending: a very long reason to wait"})
	}
	checkScreen(t, &out, "n1      0s  Pendin…", "n2      0s  Pendin…", "n3      0s  Pendin…", "and 2 more")
}
