package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"drydock.dev/drydock/api"
)

// terminal opens a terminal of so many columns: the side of the screen, and that of the program.
func (s *site) terminal(width int) (screen, tty *os.File) {
	s.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		s.Fatal(err)
	}
	fd := int(screen.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: uint16(width)})); err != nil {
		s.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		s.Fatal(err)
	}
	return screen, tty
}

// atTerminal runs the command line where somebody sits at the terminal, and answers what it asks.
func (s *site) atTerminal(answer string, args ...string) ran {
	s.Helper()
	screen, tty := s.terminal(200)
	defer screen.Close()
	defer tty.Close()
	if _, err := screen.WriteString(answer + "\n"); err != nil {
		s.Fatal(err)
	}
	cmd := s.command("drydock", args...)
	cmd.Stdin = tty
	return s.run(cmd)
}

// inTerminal runs the command line in a terminal of so many columns.
func (s *site) inTerminal(width int, args ...string) string {
	s.Helper()
	screen, tty := s.terminal(width)
	defer screen.Close()
	cmd := s.command("drydock", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.Env = append(cmd.Env, "TERM=xterm")
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	tty.Close()
	var out bytes.Buffer
	// The terminal's end is an error (EIO) once nobody has its other side.
	_, _ = io.Copy(&out, screen)
	_ = cmd.Wait()
	return strings.ReplaceAll(out.String(), "\r", "")
}

func TestTablesFitTheTerminal(t *testing.T) {
	s := newSite(t, "")
	s.mustDrydock("start", "worker-01", "--wait", "--reason", strings.Repeat("a long story ", 12))
	s.mustDrydock("start", "worker-10", "--reason", "the second of one slot")
	s.untilStatus(s.runOf("worker-10"), "behind the first", func(status api.Status) bool { return strings.Contains(status.WaitingFor, "worker-01") })
	s.eventually("the list has both", func() error {
		if out := s.mustDrydock("list"); strings.Count(out, "\n") != 3 {
			return errors.New(out)
		}
		return nil
	})
	s.environment = append(s.environment, "NO_COLOR=1")
	for _, width := range []int{60, 80, 120} {
		for _, args := range [][]string{{"list"}, {"status", "worker-01"}, {"limits"}, {"history", "worker-01", "--details"}} {
			out := s.inTerminal(width, args...)
			if !strings.Contains(out, "worker-01") || strings.Contains(out, "\x1b") {
				t.Errorf("%v at %d: %q", args, width, out)
			}
			for line := range strings.Lines(out) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%v: %d columns of %d: %s", args, n, width, line)
				}
			}
		}
	}
	if out := s.inTerminal(60, "list"); strings.Count(out, "\n") != 3 || !strings.Contains(out, "…") {
		t.Errorf("a row of a list is not one line:\n%s", out)
	}
	if out := s.inTerminal(60, "list", "-o", "wide"); !strings.Contains(out, strings.Repeat("a long story ", 11)) {
		t.Errorf("-o wide is cut:\n%s", out)
	}
	s.environment = append(s.environment, "NO_COLOR=")
	if out := s.inTerminal(80, "list"); !strings.Contains(out, "\x1b[32mReady\x1b[0m") {
		t.Errorf("no colours in %q", out)
	}
	if out := s.mustDrydock("list"); strings.Contains(out, "\x1b") || strings.Contains(out, "…") {
		t.Errorf("a pipe gets %q", out)
	}

	for want, args := range map[string][]string{
		"worker-01\nworker-10\n": {"list", "-o", "name"},
		"worker-01\n":            {"list", "-o", "name", "--phase", "ready"},
		"worker-10\nworker-01\n": {"list", "-o", "name", "--sort-by", "phase"},
	} {
		if out := s.mustDrydock(args...); out != want {
			t.Errorf("%v: %q, want %q", args, out, want)
		}
	}
	if out := s.mustDrydock("list", "--no-headers"); !strings.HasPrefix(out, "worker-01 ") || strings.Count(out, "\n") != 2 {
		t.Errorf("without headers: %q", out)
	}
}
