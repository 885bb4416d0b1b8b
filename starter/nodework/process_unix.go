//go:build unix

package nodework

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup puts the command into a process group of its own, so that it can be stopped with all it has started, and
// an interrupt from the keyboard reaches it once and not twice. In the foreground it gets the terminal, which the
// function returned takes back.
func ownGroup(cmd *exec.Cmd, foreground bool) (giveBackTerminal func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !foreground, Setpgid: foreground}
	if !foreground {
		return func() {}
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return func() {}
	}
	fd := int(tty.Fd())
	ours := unix.Getpgrp()
	if current, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || current != ours {
		// We are in the background ourselves and have no terminal to pass on.
		tty.Close()
		return func() {}
	}
	cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, fd
	// Without the terminal, to write to it or to take it back would stop us. A command stopped from the keyboard
	// would leave the terminal to nobody, so it inherits that it cannot be.
	signal.Ignore(unix.SIGTTOU, unix.SIGTSTP)
	return func() {
		_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, ours)
		signal.Reset(unix.SIGTTOU, unix.SIGTSTP)
		tty.Close()
	}
}

// signalGroup signals the command and all it has started. A group that has ended is no error.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) {
	_ = syscall.Kill(-cmd.Process.Pid, s)
	// A stopped process would take note only when it is continued.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
}
