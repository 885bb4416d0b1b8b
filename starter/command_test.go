package starter

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock/client"
)

func TestExitStatusOfCommands(t *testing.T) {
	notExecutable := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(notExecutable, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		argv    []string
		status  int
		started bool
	}{
		"success":        {[]string{"/bin/sh", "-c", "exit 0"}, 0, true},
		"failure":        {[]string{"/bin/sh", "-c", "exit 42"}, 42, true},
		"own signal":     {[]string{"/bin/sh", "-c", "kill -KILL $$"}, 137, true},
		"not found":      {[]string{"/no/such/file"}, 127, false},
		"not in PATH":    {[]string{"no-such-command"}, 127, false},
		"not executable": {[]string{notExecutable}, 126, false},
	} {
		status, err := command{argv: c.argv}.run(context.Background(), nil, t.Logf)
		if status != c.status || (err == nil) != c.started {
			t.Errorf("%s: status %d, error %v; want %d", name, status, err, c.status)
		}
	}
}

func TestStoppedCommandGetsTheSignalWithAllItStarted(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	c := command{argv: []string{"/bin/sh", "-c", `trap "wait; echo stopped; exit 5" TERM; (trap "echo child; exit" TERM; sleep 20 & wait) & wait`}, stdout: &out, killAfter: 10 * time.Second}
	status, err := c.run(ctx, func() syscall.Signal { return syscall.SIGTERM }, t.Logf)
	if err != nil || status != 5 || out.String() != "child\nstopped\n" {
		t.Errorf("status %d, error %v, output %q", status, err, out.String())
	}
}

func TestStubbornCommandIsKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	began := time.Now()
	c := command{argv: []string{"/bin/sh", "-c", `trap "" TERM; while :; do sleep 1; done`}, killAfter: 200 * time.Millisecond}
	status, err := c.run(ctx, func() syscall.Signal { return syscall.SIGTERM }, t.Logf)
	if err != nil || status != 137 || time.Since(began) > 5*time.Second {
		t.Errorf("status %d, error %v after %s", status, err, time.Since(began))
	}
}

func TestCommandGetsItsEnvironment(t *testing.T) {
	var out bytes.Buffer
	target := client.Maintenance{Node: "worker-01", Requestor: "ops", WorkflowID: "blue/node-maintenance/worker-01/ops", RunID: "r1"}
	c := command{
		argv:   []string{"/bin/sh", "-c", `echo $DRYDOCK_NODE $DRYDOCK_WORKFLOW_ID $DRYDOCK_RUN_ID $DRYDOCK_REQUESTOR $DRYDOCK_CLUSTER $MINE`},
		stdout: &out, environ: nodeEnvironment(environment{"MINE=kept", "DRYDOCK_NODE=old"}, target),
	}
	if _, err := c.run(context.Background(), nil, t.Logf); err != nil {
		t.Fatal(err)
	}
	if want := "worker-01 blue/node-maintenance/worker-01/ops r1 ops blue kept\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestNodeIsReplacedInEveryArgumentAndNowhereElse(t *testing.T) {
	got := replaceNode([]string{"./{node}.sh", "{node}", "a={node},b={node}", "{Node}", "$node"}, "worker-01")
	want := []string{"./worker-01.sh", "worker-01", "a=worker-01,b=worker-01", "{Node}", "$node"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	odd := "a; rm -rf $(x)"
	if got := replaceNode([]string{"echo", "{node}"}, odd); got[1] != odd {
		t.Errorf("got %q", got)
	}
}

func TestPrefixerKeepsLinesWhole(t *testing.T) {
	var out bytes.Buffer
	p := &prefixer{to: &out, prefix: "[n] "}
	for _, part := range []string{"one\ntw", "o\n", "", "\nthr", "ee"} {
		if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", part, n, err)
		}
	}
	if want := "[n] one\n[n] two\n[n] \n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	p.flush()
	p.flush()
	if want := "[n] one\n[n] two\n[n] \n[n] three\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestPrefixerBoundsALineWithoutEnd(t *testing.T) {
	var out bytes.Buffer
	p := &prefixer{to: &out, prefix: "[n] "}
	if _, err := p.Write(bytes.Repeat([]byte("x"), maxLine+1)); err != nil {
		t.Fatal(err)
	}
	if out.Len() < maxLine {
		t.Errorf("%d bytes written, want the long line to be let go", out.Len())
	}
}

func TestInterruptsAreCounted(t *testing.T) {
	signals := make(chan chan<- os.Signal, 1)
	ctx, cancel := context.WithCancel(context.Background())
	i := newApp(Process{Notify: func(c chan<- os.Signal) { signals <- c }}).interrupts(ctx)
	defer i.stop()
	c := <-signals
	// The end of the context and the first signal are one event.
	cancel()
	c <- syscall.SIGTERM
	ended(i.reached(1), t)
	time.Sleep(100 * time.Millisecond)
	if i.reached(2).Err() != nil {
		t.Fatal("one signal was counted twice")
	}
	if i.last() != syscall.SIGTERM {
		t.Errorf("signal = %s", i.last())
	}
	next := i.next()
	c <- syscall.SIGINT
	ended(i.reached(2), t)
	ended(next, t)
	if i.last() != syscall.SIGINT || i.reached(3).Err() != nil {
		t.Errorf("signal = %s, third: %v", i.last(), i.reached(3).Err())
	}
	for range 5 {
		c <- syscall.SIGINT
	}
	ended(i.reached(maxInterrupts), t)
	ended(i.next(), t)
}

func TestEndOfTheContextIsAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	i := newApp(Process{}).interrupts(ctx)
	defer i.stop()
	cancel()
	ended(i.reached(1), t)
	if i.last() != syscall.SIGINT {
		t.Errorf("signal = %s", i.last())
	}
}

func ended(ctx context.Context, t *testing.T) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the context has not ended")
	}
}
