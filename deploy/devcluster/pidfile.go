package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// processID names one process for good: a pid alone is reused, a pid with the
// time the process started is not.
type processID struct {
	pid   int
	start uint64 // clock ticks since boot
}

// identify reads the identity of a live process. A process that is gone, or
// only waits to be reaped, is os.ErrNotExist.
func identify(pid int) (processID, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		if errors.Is(err, syscall.ESRCH) {
			err = os.ErrNotExist
		}
		return processID{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	// The second field is the command in parentheses and may hold anything, so
	// fields are counted from the last parenthesis: state is 3, start time 22.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return processID{}, fmt.Errorf("identify process %d: short stat line %q", pid, stat)
	}
	if state := fields[0]; state == "Z" || state == "X" {
		return processID{}, fmt.Errorf("identify process %d: %w", pid, os.ErrNotExist)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return processID{}, fmt.Errorf("identify process %d: start time: %w", pid, err)
	}
	return processID{pid: pid, start: start}, nil
}

// alive reports whether this very process still runs.
func (id processID) alive() bool {
	now, err := identify(id.pid)
	return err == nil && now == id
}

func (id processID) String() string { return fmt.Sprintf("%d %d", id.pid, id.start) }

func parseProcessID(text string) (processID, error) {
	var id processID
	if _, err := fmt.Sscanf(text, "%d %d", &id.pid, &id.start); err != nil || id.pid <= 1 {
		return processID{}, fmt.Errorf("parse process identity %q", text)
	}
	return id, nil
}

// pidFile says which `up` owns a directory. The lock on it, which the kernel
// drops with its holder, decides; the content is for `down` and for people.
type pidFile struct {
	file *os.File
}

func acquirePIDFile(path string) (*pidFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the pid file: %w", err)
	}
	if err := claimPIDFile(file, path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &pidFile{file: file}, nil
}

func claimPIDFile(file *os.File, path string) error {
	switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		owner := "another process"
		if id, err := readPIDFile(path); err == nil {
			owner = fmt.Sprintf("process %d", id.pid)
		}
		return fmt.Errorf("a devcluster already runs in this directory (%s): stop it with `devcluster down`", owner)
	case err != nil:
		return fmt.Errorf("lock the pid file: %w", err)
	}
	self, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("empty the pid file: %w", err)
	}
	if _, err := file.WriteAt([]byte(self.String()+"\n"), 0); err != nil {
		return fmt.Errorf("write the pid file: %w", err)
	}
	return nil
}

// release empties the file but leaves it: were it removed, two newcomers could
// each lock a file of that name.
func (p *pidFile) release() error {
	return errors.Join(p.file.Truncate(0), p.file.Close())
}

// readPIDFile returns whom the file names, os.ErrNotExist when it names nobody.
func readPIDFile(path string) (processID, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return processID{}, fmt.Errorf("read the pid file: %w", err)
	}
	text := strings.TrimSpace(string(content))
	if text == "" {
		return processID{}, fmt.Errorf("read the pid file: it is empty: %w", os.ErrNotExist)
	}
	return parseProcessID(text)
}
