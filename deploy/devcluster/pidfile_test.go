package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestIdentify(t *testing.T) {
	self, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !self.alive() {
		t.Error("this process is said to be dead")
	}
	if reused := (processID{pid: self.pid, start: self.start + 1}); reused.alive() {
		t.Error("a process of the same pid and another start time is taken for the same")
	}
	parsed, err := parseProcessID(self.String())
	if err != nil || parsed != self {
		t.Errorf("parsed back as %v (%v), want %v", parsed, err, self)
	}
}

func TestIdentifyZombie(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	eventually(t, "the process is seen as gone before it is reaped", func() error {
		if id, err := identify(pid); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("identify: %v, %v", id, err)
		}
		return nil
	})
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := identify(pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("identify a process that is gone: %v", err)
	}
}

func TestParseProcessIDRefuses(t *testing.T) {
	for _, text := range []string{"", "12", "a b", "0 5", "1 5", "-3 5"} {
		if id, err := parseProcessID(text); err == nil {
			t.Errorf("%q was parsed as %v", text, id)
		}
	}
}

func TestPIDFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devcluster.pid")
	if _, err := readPIDFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read a missing pid file: %v", err)
	}
	held, err := acquirePIDFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := readPIDFile(path); err != nil || id.pid != os.Getpid() || !id.alive() {
		t.Errorf("the pid file names %v (%v), want this process", id, err)
	}
	_, err = acquirePIDFile(path)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("a second owner: %v, want an error that names the first", err)
	}
	if err := held.release(); err != nil {
		t.Fatal(err)
	}
	if _, err := readPIDFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read a released pid file: %v", err)
	}
	again, err := acquirePIDFile(path)
	if err != nil {
		t.Fatalf("acquire a released pid file: %v", err)
	}
	if err := again.release(); err != nil {
		t.Error(err)
	}
}

func TestDownWhereNothingRuns(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(t.TempDir(), "stale")
	if err := os.Mkdir(stale, 0o755); err != nil {
		t.Fatal(err)
	}
	// This very pid, but of a process that started at another time: it must not
	// be signalled.
	content := fmt.Sprintf("%d 1\n", os.Getpid())
	if err := os.WriteFile(layout{stale}.pidFile(), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, stale, filepath.Join(dir, "missing")} {
		var out strings.Builder
		if err := runDown(downOptions{dir: dir}, &out); err != nil || !strings.Contains(out.String(), "nothing runs") {
			t.Errorf("down in %s: %q, %v", dir, out.String(), err)
		}
	}
}
