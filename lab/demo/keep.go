package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

// patience is how long a process may take to stop.
const patience = 30 * time.Second

// remember writes down which processes a run that is kept leaves behind.
func (d *demo) remember() error {
	if !d.keep {
		return nil
	}
	var lines []string
	// In the order in which they are to be stopped.
	for _, p := range []*devstack.Process{d.worker.Process, d.temporal.Process, d.cluster.Process} {
		lines = append(lines, strconv.Itoa(p.PID()))
	}
	return os.WriteFile(d.pids(), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func (d *demo) pids() string { return filepath.Join(d.dir, "pids") }

// stopEarlier stops what an earlier run with KEEP=1 left running.
func (d *demo) stopEarlier(ctx context.Context) error {
	data, err := os.ReadFile(d.pids())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, line := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			return fmt.Errorf("%s: %w", d.pids(), err)
		}
		if !d.isOurs(pid) {
			continue
		}
		fmt.Printf("stopping process %d of an earlier demo\n", pid)
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		if err := world.Eventually(ctx, time.Minute, fmt.Sprintf("process %d ends", pid), func() error {
			if d.isOurs(pid) {
				return errors.New("it still runs")
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return os.Remove(d.pids())
}

// isOurs reports whether a process is one of a demo in this directory: a number may have been given to another since.
func (d *demo) isOurs(pid int) bool {
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(cmdline), d.dir)
}

// stop ends this run's processes, those that depend on others first.
func (d *demo) stop() error {
	var problems []error
	if d.worker != nil {
		problems = append(problems, d.worker.Stop(patience))
	}
	if d.temporal != nil {
		problems = append(problems, d.temporal.Stop(patience))
	}
	if d.cluster != nil {
		problems = append(problems, d.cluster.Stop(patience))
	}
	return errors.Join(problems...)
}
