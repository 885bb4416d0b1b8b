package nodework

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
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
		status, err := Command{Argv: c.argv}.run(context.Background(), nil, t.Logf)
		if status != c.status || (err == nil) != c.started {
			t.Errorf("%s: status %d, error %v; want %d", name, status, err, c.status)
		}
	}
}

func TestStoppedCommandGetsTheSignalWithAllItStarted(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	c := Command{
		Argv:   []string{"/bin/sh", "-c", `trap "wait; echo stopped; exit 5" TERM; (trap "echo child; exit" TERM; echo trapped; sleep 20 & wait) & wait`},
		Stdout: &onOutput{then: cancel, all: &out}, KillAfter: 10 * time.Second,
	}
	status, err := c.run(ctx, func() syscall.Signal { return syscall.SIGTERM }, t.Logf)
	if err != nil || status != 5 || out.String() != "trapped\nchild\nstopped\n" {
		t.Errorf("status %d, error %v, output %q", status, err, out.String())
	}
}

func TestStubbornCommandIsKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := Command{
		Argv: []string{"/bin/sh", "-c", `trap "" TERM; echo trapped; while :; do sleep 1; done`}, Stdout: &onOutput{then: cancel},
		KillAfter: 200 * time.Millisecond,
	}
	status, err := c.run(ctx, func() syscall.Signal { return syscall.SIGTERM }, t.Logf)
	if err != nil || status != 137 {
		t.Errorf("status %d, error %v", status, err)
	}
}

// onOutput does something when a command first says something, and keeps what it says.
type onOutput struct {
	once sync.Once
	then func()
	all  *bytes.Buffer
}

func (o *onOutput) Write(p []byte) (int, error) {
	o.once.Do(o.then)
	if o.all == nil {
		return len(p), nil
	}
	return o.all.Write(p)
}

func TestCommandGetsItsEnvironment(t *testing.T) {
	var out bytes.Buffer
	target := client.Maintenance{Node: "worker-01", Requestor: "ops", WorkflowID: "blue/node-maintenance/worker-01/ops", RunID: "r1", FirstRunID: "r1"}
	c := Command{
		Argv:   []string{"/bin/sh", "-c", `echo $DRYDOCK_NODE $DRYDOCK_WORKFLOW_ID $DRYDOCK_RUN_ID $DRYDOCK_REQUESTOR $DRYDOCK_CLUSTER $MINE`},
		Stdout: &out, Environ: NodeEnvironment(invocation.Environment{"MINE=kept", "DRYDOCK_NODE=old"}, target),
	}
	if _, err := c.run(context.Background(), nil, t.Logf); err != nil {
		t.Fatal(err)
	}
	if want := "worker-01 blue/node-maintenance/worker-01/ops r1 ops blue kept\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestNodeIsReplacedInEveryArgumentAndNowhereElse(t *testing.T) {
	got := ReplaceNode([]string{"./{node}.sh", "{node}", "a={node},b={node}", "{Node}", "$node"}, "worker-01")
	want := []string{"./worker-01.sh", "worker-01", "a=worker-01,b=worker-01", "{Node}", "$node"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	odd := "a; rm -rf $(x)"
	if got := ReplaceNode([]string{"echo", "{node}"}, odd); got[1] != odd {
		t.Errorf("got %q", got)
	}
}

// The command is somebody else's program: it does not get what proves who runs it.
func TestACommandDoesNotGetCredentials(t *testing.T) {
	secret := []string{
		"TEMPORAL_API_KEY=canary", "TEMPORAL_TLS_CLIENT_KEY_DATA=canary", "TEMPORAL_TLS_CLIENT_KEY_PATH=canary",
		"TEMPORAL_TLS_CLIENT_CERT_DATA=canary", "TEMPORAL_GRPC_META_AUTHORIZATION=canary", "TEMPORAL_CODEC_AUTH=canary",
		"DRYDOCK_TEMPORAL_API_KEY_FILE=canary", "DRYDOCK_CODEC_KEYS_FILE=canary",
	}
	env := append([]string{"PATH=/bin", "TEMPORAL_ADDRESS=a:7233", "TEMPORAL_TLS=true"}, secret...)
	got := strings.Join(NodeEnvironment(env, client.Maintenance{Node: "n1"}), "\n")
	if strings.Contains(got, "canary") {
		t.Errorf("it gets %s", got)
	}
	for _, want := range []string{"PATH=/bin", "TEMPORAL_ADDRESS=a:7233", "TEMPORAL_TLS=true", "DRYDOCK_NODE=n1"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if len(env) != 11 || env[3] != secret[0] {
		t.Error("its own environment was changed")
	}
}
