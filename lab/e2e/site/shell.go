package site

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
)

// shellTime bounds every command line.
const shellTime = 3 * time.Minute

// Ran is what a command printed and how it ended.
type Ran struct {
	Stdout string
	Stderr string
	Status int
}

// Out is all that it printed.
func (r Ran) Out() string { return r.Stdout + r.Stderr }

// env is the environment in which the test's command lines run.
func (s *Site) env() []string {
	return append(append(s.Options.Temporal.Environment(),
		"KUBECONFIG="+s.Options.Kubeconfig, "DRYDOCK_CLUSTER="+s.Cluster, "DRYDOCK_REQUESTOR=ops"), s.Environment...)
}

// Command prepares one of the binaries.
func (s *Site) Command(binary string, args ...string) *exec.Cmd {
	s.Helper()
	path, err := devstack.Binary(binary)
	s.NoError(err)
	ctx, cancel := context.WithTimeout(s.Ctx, shellTime)
	s.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), s.env()...)
	return cmd
}

// Execute runs a command to its end, whatever that is.
func (s *Site) Execute(cmd *exec.Cmd) Ran {
	s.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatalf("%s: %v\n%s%s", cmd, err, &stdout, &stderr)
	}
	return Ran{Stdout: stdout.String(), Stderr: stderr.String(), Status: cmd.ProcessState.ExitCode()}
}

// Drydock runs the command line.
func (s *Site) Drydock(args ...string) Ran {
	s.Helper()
	return s.Execute(s.Command("drydock", args...))
}

// MustDrydock runs the command line and expects success.
func (s *Site) MustDrydock(args ...string) string {
	s.Helper()
	r := s.Drydock(args...)
	if r.Status != 0 {
		s.Fatalf("drydock %s: exit status %d\n%s", strings.Join(args, " "), r.Status, r.Out())
	}
	return r.Stdout
}

// Shown is the status as the command line has it, which knows more of a drain under way than the workflow.
func (s *Site) Shown(node string) api.Maintenance {
	s.Helper()
	var status api.Maintenance
	s.NoError(json.Unmarshal([]byte(s.MustDrydock("status", node, "-o", "json")), &status))
	return status
}

// Exits checks a command's exit status, and what it said.
func (s *Site) Exits(r Ran, status int, says ...string) {
	s.Helper()
	if r.Status != status {
		s.Errorf("exit status %d, want %d\n%s", r.Status, status, r.Out())
	}
	for _, text := range says {
		if !strings.Contains(r.Out(), text) {
			s.Errorf("it does not say %q but\n%s", text, r.Out())
		}
	}
}

// Background is a command that runs while the test goes on.
type Background struct {
	site   *Site
	Cmd    *exec.Cmd
	Output *lockedBuffer
	Exited chan struct{}
}

// Spawn starts the command line and does not wait for it.
func (s *Site) Spawn(args ...string) *Background {
	s.Helper()
	b := &Background{site: s, Cmd: s.Command("drydock", args...), Output: &lockedBuffer{}, Exited: make(chan struct{})}
	b.Cmd.Stdout, b.Cmd.Stderr = b.Output, b.Output
	// A group of its own, as a terminal's job has.
	b.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.NoError(b.Cmd.Start())
	go func() {
		_ = b.Cmd.Wait()
		close(b.Exited)
	}()
	s.Cleanup(func() {
		_ = b.Cmd.Process.Kill()
		<-b.Exited
	})
	return b
}

// Interrupt sends SIGINT.
func (b *Background) Interrupt() {
	b.site.Helper()
	b.site.NoError(b.Cmd.Process.Signal(os.Interrupt))
}

// End waits for the command's end.
func (b *Background) End() Ran {
	b.site.Helper()
	return b.EndWithin(Patience)
}

// EndWithin is end where more patience is needed.
func (b *Background) EndWithin(limit time.Duration) Ran {
	b.site.Helper()
	select {
	case <-b.Exited:
	case <-time.After(limit):
		b.site.Fatalf("%s did not end\n%s", b.Cmd, b.Output)
	}
	return Ran{Stdout: b.Output.String(), Status: b.Cmd.ProcessState.ExitCode()}
}

// Says waits until the command has said something.
func (b *Background) Says(text string) {
	b.site.Helper()
	b.site.Eventually(b.Cmd.String()+" says "+text, func() error {
		if out := b.Output.String(); !strings.Contains(out, text) {
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
