package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is generous: the machine that runs the tests may be busy with others.
const patience = 2 * time.Minute

// eventually waits until check passes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// syncBuffer collects the output of a process while a test reads it.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// devcluster makes a command of this test binary.
func devcluster(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asMain+"=1")
	return cmd
}

// upRun is one `devcluster up`, or a process that started it.
type upRun struct {
	dir            string
	cmd            *exec.Cmd
	stdout, stderr syncBuffer
	exited         chan struct{}
}

func startUp(t *testing.T, dir string, args ...string) *upRun {
	t.Helper()
	return startRun(t, dir, devcluster(append([]string{"up", "--dir", dir}, args...)...))
}

// startUpBehind starts `up` as the child of a shell, which is the process of the run.
func startUpBehind(t *testing.T, dir string, args ...string) *upRun {
	t.Helper()
	inner := devcluster(append([]string{"up", "--dir", dir}, args...)...)
	shell := exec.Command("sh", append([]string{"-c", `"$@" & wait`, "sh"}, inner.Args...)...)
	shell.Env = inner.Env
	return startRun(t, dir, shell)
}

func startRun(t *testing.T, dir string, cmd *exec.Cmd) *upRun {
	t.Helper()
	run := &upRun{dir: dir, cmd: cmd, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &run.stdout, &run.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(run.exited)
	}()
	t.Cleanup(func() {
		var out strings.Builder
		if err := runDown(downOptions{dir: dir, timeout: 30 * time.Second}, &out); err != nil {
			t.Errorf("clean up %s: %v", dir, err)
		}
		<-run.exited
		if t.Failed() {
			t.Logf("stderr of the cluster in %s:\n%s", dir, run.stderr.String())
		}
	})
	return run
}

// waitReady returns the server's address once the run has printed it.
func (r *upRun) waitReady(t *testing.T) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^ready kubeconfig=(\S+) server=(https://127\.0\.0\.1:\d+)$`)
	var server string
	eventually(t, "the cluster in "+r.dir+" is ready", func() error {
		if match := line.FindStringSubmatch(r.stdout.String()); match != nil {
			if want := filepath.Join(r.dir, "kubeconfig"); match[1] != want {
				t.Fatalf("the ready line names %s, want %s", match[1], want)
			}
			server = match[2]
			return nil
		}
		select {
		case <-r.exited:
			t.Fatalf("up ended before it was ready: %s\n%s", r.cmd.ProcessState, r.stderr.String())
		default:
		}
		return errors.New(r.stderr.String())
	})
	return server
}

func (r *upRun) waitExit(t *testing.T) int {
	t.Helper()
	select {
	case <-r.exited:
	case <-time.After(patience):
		t.Fatalf("up did not end within %s: %s", patience, r.stderr.String())
	}
	return r.cmd.ProcessState.ExitCode()
}

func (r *upRun) config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", layout{r.dir}.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func (r *upRun) client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	return mustClient(t, r.config(t))
}

func mustClient(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// everyComponent are those that a cluster runs.
var everyComponent = []string{etcdName, apiServerName, controllerManagerName, schedulerName}

// mustComponents returns the component processes of the cluster in dir by name.
func (r *upRun) mustComponents(t *testing.T) map[string]processID {
	t.Helper()
	up, err := readPIDFile(layout{r.dir}.pidFile())
	if err != nil {
		t.Fatal(err)
	}
	components := map[string]processID{}
	for _, id := range mustChildren(t, up.pid) {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id.pid))
		if err != nil {
			t.Fatal(err)
		}
		components[strings.Split(string(cmdline), "\x00")[1]] = id
	}
	for _, name := range everyComponent {
		if _, ok := components[name]; !ok || len(components) != len(everyComponent) {
			t.Fatalf("components %v, want %v", components, everyComponent)
		}
	}
	return components
}

func mustChildren(t *testing.T, parent int) []processID {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var children []processID
	for _, stat := range stats {
		content, err := os.ReadFile(stat)
		if err != nil {
			continue // it ended meanwhile
		}
		fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
		if ppid, err := strconv.Atoi(fields[1]); err != nil || ppid != parent {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			t.Fatal(err)
		}
		if id, err := identify(pid); err == nil {
			children = append(children, id)
		}
	}
	return children
}

func waitGone(t *testing.T, components map[string]processID) {
	t.Helper()
	eventually(t, "all components are gone", func() error {
		for name, id := range components {
			if id.alive() {
				return fmt.Errorf("%s (%d) is alive", name, id.pid)
			}
		}
		return nil
	})
}

func mustSignal(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatalf("send %v to %d: %v", signal, pid, err)
	}
}
