package site

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const terminalRows = 40

// terminal opens a terminal of so many columns: the side of the screen, and that of the program.
func (s *Site) terminal(width int) (screen, tty *os.File) {
	s.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	s.NoError(err)
	fd := int(screen.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	s.NoError(errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: terminalRows, Col: uint16(width)})))
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	s.NoError(err)
	return screen, tty
}

// AtTerminal runs the command line where somebody sits at the terminal, and answers what it asks.
func (s *Site) AtTerminal(answer string, args ...string) Ran {
	s.Helper()
	screen, tty := s.terminal(200)
	defer screen.Close()
	defer tty.Close()
	_, err := screen.WriteString(answer + "\n")
	s.NoError(err)
	cmd := s.Command("drydock", args...)
	cmd.Stdin = tty
	return s.Execute(cmd)
}

// InTerminal runs the command line in a terminal of so many columns, and returns what it wrote.
func (s *Site) InTerminal(width int, args ...string) string {
	s.Helper()
	var out bytes.Buffer
	s.inTerminal(width, &out, args...)
	return strings.ReplaceAll(out.String(), "\r", "")
}

// inTerminal has out see what the command line writes, when it does.
func (s *Site) inTerminal(width int, out io.Writer, args ...string) {
	s.Helper()
	screen, tty := s.terminal(width)
	defer screen.Close()
	cmd := s.Command("drydock", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.Env = append(cmd.Env, "TERM=xterm")
	s.NoError(cmd.Start())
	tty.Close()
	// The terminal's end is an error (EIO) once nobody has its other side.
	_, _ = io.Copy(out, screen)
	_ = cmd.Wait()
}
