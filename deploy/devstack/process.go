// Package devstack starts what Drydock needs on one machine: a Kubernetes control plane, a Temporal server and
// workers, each as a real process. The tests, the demo and the benchmarks share it.
package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a child process whose output goes to a log file.
type Process struct {
	Name string
	Log  string

	cmd    *exec.Cmd
	exited chan struct{}
	err    error
}

// attributes give a child a group of its own, since a Ctrl-C is the parent's to handle, in its own order; one that is to
// outlive its parent has a session of its own too.
func attributes(detach bool) *syscall.SysProcAttr {
	if detach {
		return &syscall.SysProcAttr{Setsid: true}
	}
	own := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(own)
	return own
}

// spawner starts all children from one thread that never ends: a child is to die with its parent, and Linux takes the
// thread that started it for the parent.
var spawner = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})

// launch says how a child is started.
type launch struct {
	name string
	log  string
	env  []string
	// detach lets the child outlive this process, and its terminal.
	detach bool
	// held is a file that stays open in the child for as long as it lives; nil for none.
	held *os.File
}

// start runs a binary of .bin.
func (l launch) start(binary string, args ...string) (*Process, error) {
	path, err := Binary(binary)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(l.log), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(l.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	// Its life is not a context's: it is stopped, killed or left by what started it.
	p := &Process{Name: l.name, Log: l.log, cmd: exec.Command(path, args...), exited: make(chan struct{})} //nolint:noctx
	p.cmd.Env = append(os.Environ(), l.env...)
	p.cmd.Stderr, p.cmd.Stdout = log, log
	p.cmd.SysProcAttr = attributes(l.detach)
	if l.held != nil {
		p.cmd.ExtraFiles = []*os.File{l.held}
	}
	started := make(chan error)
	spawner() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", l.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		log.Close()
		close(p.exited)
	}()
	return p, nil
}

// PID is the process's ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Command is how it was started.
func (p *Process) Command() []string { return slices.Clone(p.cmd.Args) }

// ExitStatus is that of a process that has ended, -1 as long as it runs and where a signal ended it.
func (p *Process) ExitStatus() int {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stop asks the process to end and waits; one that does not end in time is killed, and that is an error.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(patience):
		p.Kill()
		return fmt.Errorf("%s did not stop within %s", p.Name, patience)
	}
}

// Kill ends the process without giving it a chance, and waits.
func (p *Process) Kill() {
	if err := p.cmd.Process.Kill(); err == nil || errors.Is(err, os.ErrProcessDone) {
		<-p.exited
	}
}

// Tail is the end of the process's log.
func (p *Process) Tail() string {
	data, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// await polls until ready succeeds, and reports the log's end if the process ends or time is up.
func (p *Process) await(ctx context.Context, ready func(context.Context) error) error {
	var last error
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if last = ready(ctx); last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return fmt.Errorf("%s ended before it was ready: %w\n%s", p.Name, errors.Join(p.err, last), p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready in time: %w\n%s", p.Name, errors.Join(ctx.Err(), last), p.Tail())
		}
	}
}

// Binary finds one of Drydock's binaries: in DRYDOCK_BIN, or in .bin of the module's root.
func Binary(name string) (string, error) {
	dir := os.Getenv("DRYDOCK_BIN")
	if dir == "" {
		root, err := Root()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, ".bin")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built: run `make build` (%w)", name, err)
	}
	return path, nil
}

// Root is the directory of the module, found from the working directory upward.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte("module drydock.dev/drydock\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("this is not inside Drydock's source tree")
		}
		dir = parent
	}
}
