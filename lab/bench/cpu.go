package main

import (
	"fmt"
	"slices"

	"github.com/prometheus/procfs"
)

// serverWork begins to measure how long the API server works; worked tells the CPU seconds since then.
func (b *massDrainer) serverWork() (worked func() float64) {
	pid := must(childOf(b.Cluster.PID(), "kube-apiserver"))
	before := cpuSeconds(pid)
	return func() float64 { return cpuSeconds(pid) - before }
}

// cpuSeconds is how long a process has worked so far.
func cpuSeconds(pid int) float64 {
	process := must(procfs.NewProc(pid))
	return must(process.Stat()).CPUTime()
}

// childOf finds the process below another one whose command line has a word in it.
func childOf(ancestor int, word string) (int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	parents := map[int]int{}
	for _, p := range all {
		if stat, err := p.Stat(); err == nil { // it may have ended
			parents[p.PID] = stat.PPID
		}
	}
	for _, p := range all {
		command, err := p.CmdLine()
		if err != nil || !slices.Contains(command, word) {
			continue // it may have ended
		}
		for parent := parents[p.PID]; parent > 1; parent = parents[parent] {
			if parent == ancestor {
				return p.PID, nil
			}
		}
	}
	return 0, fmt.Errorf("process %d has no child %s", ancestor, word)
}
