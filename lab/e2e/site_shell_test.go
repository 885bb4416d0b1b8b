package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"drydock.dev/drydock/deploy/devstack"
)

// shellTime bounds every command line.
const shellTime = 3 * time.Minute

// ran is what a command printed and how it ended.
type ran struct {
	stdout string
	stderr string
	status int
}

func (r ran) out() string { return r.stdout + r.stderr }

// env is the environment in which the test's command lines run.
func (s *site) env() []string {
	return append(append(s.options.Temporal.Environment(),
		"KUBECONFIG="+s.options.Kubeconfig, "DRYDOCK_CLUSTER="+s.cluster, "DRYDOCK_REQUESTOR=ops"), s.environment...)
}

// command prepares one of the binaries.
func (s *site) command(binary string, args ...string) *exec.Cmd {
	s.Helper()
	path, err := devstack.Binary(binary)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.ctx, shellTime)
	s.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), s.env()...)
	return cmd
}

// run runs a command to its end, whatever that is.
func (s *site) run(cmd *exec.Cmd) ran {
	s.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatalf("%s: %v\n%s%s", cmd, err, &stdout, &stderr)
	}
	return ran{stdout: stdout.String(), stderr: stderr.String(), status: cmd.ProcessState.ExitCode()}
}

// drydock runs the command line.
func (s *site) drydock(args ...string) ran {
	s.Helper()
	return s.run(s.command("drydock", args...))
}

// mustDrydock runs the command line and expects success.
func (s *site) mustDrydock(args ...string) string {
	s.Helper()
	r := s.drydock(args...)
	if r.status != 0 {
		s.Fatalf("drydock %s: exit status %d\n%s", strings.Join(args, " "), r.status, r.out())
	}
	return r.stdout
}

// exits checks a command's exit status, and what it said.
func (s *site) exits(r ran, status int, says ...string) {
	s.Helper()
	if r.status != status {
		s.Errorf("exit status %d, want %d\n%s", r.status, status, r.out())
	}
	for _, text := range says {
		if !strings.Contains(r.out(), text) {
			s.Errorf("it does not say %q but\n%s", text, r.out())
		}
	}
}

// background is a command that runs while the test goes on.
type background struct {
	site   *site
	cmd    *exec.Cmd
	output *lockedBuffer
	exited chan struct{}
}

// spawn starts the command line and does not wait for it.
func (s *site) spawn(args ...string) *background {
	s.Helper()
	b := &background{site: s, cmd: s.command("drydock", args...), output: &lockedBuffer{}, exited: make(chan struct{})}
	b.cmd.Stdout, b.cmd.Stderr = b.output, b.output
	// A group of its own, as a terminal's job has.
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		_ = b.cmd.Wait()
		close(b.exited)
	}()
	s.Cleanup(func() {
		_ = b.cmd.Process.Kill()
		<-b.exited
	})
	return b
}

// interrupt sends SIGINT.
func (b *background) interrupt() {
	b.site.Helper()
	if err := b.cmd.Process.Signal(os.Interrupt); err != nil {
		b.site.Fatal(err)
	}
}

// end waits for the command's end.
func (b *background) end() ran {
	b.site.Helper()
	return b.endWithin(patience)
}

// endWithin is end where more patience is needed.
func (b *background) endWithin(limit time.Duration) ran {
	b.site.Helper()
	select {
	case <-b.exited:
	case <-time.After(limit):
		b.site.Fatalf("%s did not end\n%s", b.cmd, b.output)
	}
	return ran{stdout: b.output.String(), status: b.cmd.ProcessState.ExitCode()}
}

// says waits until the command has said something.
func (b *background) says(text string) {
	b.site.Helper()
	b.site.eventually(b.cmd.String()+" says "+text, func() error {
		if out := b.output.String(); !strings.Contains(out, text) {
			return errors.New("it says\n" + out)
		}
		return nil
	})
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}
