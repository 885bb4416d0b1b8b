package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticks are those of /proc in a second, on every Linux that Go runs on.
const ticks = 100

// serverWork begins to measure how long the API server works; worked tells the CPU seconds since then.
func (b *massDrainer) serverWork() (worked func() float64) {
	pid := must(childOf(b.Cluster.PID(), "\x00kube-apiserver\x00"))
	before := cpuSeconds(pid)
	return func() float64 { return cpuSeconds(pid) - before }
}

// cpuSeconds is how long a process has worked so far.
func cpuSeconds(pid int) float64 {
	seconds, _, err := processTimes(pid)
	noError(err)
	return seconds
}

// childOf finds the process below another one whose command line has a word in it.
func childOf(ancestor int, word string) (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return 0, err
		}
		command, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(command), word) {
			continue // it may have ended
		}
		for parent := pid; parent > 1; {
			if _, parent, err = processTimes(parent); err != nil {
				break
			}
			if parent == ancestor {
				return pid, nil
			}
		}
	}
	return 0, fmt.Errorf("process %d has no child %s", ancestor, word)
}

// processTimes reads the CPU seconds of a process, and its parent.
func processTimes(pid int) (seconds float64, parent int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The command's name is in parentheses and may have spaces in it.
	fields := strings.Fields(string(text)[strings.LastIndex(string(text), ")")+1:])
	if len(fields) < 13 {
		return 0, 0, fmt.Errorf("process %d: its stat has %d fields", pid, len(fields))
	}
	var user, system int
	for i, into := range map[int]*int{1: &parent, 11: &user, 12: &system} {
		if *into, err = strconv.Atoi(fields[i]); err != nil {
			return 0, 0, err
		}
	}
	return float64(user+system) / ticks, parent, nil
}
