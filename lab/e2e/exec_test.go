package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
)

func TestExecPassesTheCommandsExitStatusOn(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	r := s.drydock("exec", "worker-01", "--", "sh", "-c", `echo "on $DRYDOCK_NODE in $DRYDOCK_WORKFLOW_ID"`)
	s.exits(r, 0)
	if want := "on worker-01 in " + api.MaintenanceID(s.cluster, "worker-01", "ops") + "\n"; r.stdout != want {
		t.Errorf("standard output is %q, want the command's own: %q", r.stdout, want)
	}
	run := s.runOf("worker-01")
	s.mustEnd(run, api.Completed)
	s.back("worker-01", before)

	s.exits(s.drydock("exec", "worker-01", "--", "sh", "-c", "exit 7"), 7, "exit status 7", "drydock done worker-01")
	run = s.runOf("worker-01")
	status := s.until(run, api.RequestorFailed)
	if !strings.Contains(status.Failure, "exit status 7") || status.StartedAt == nil {
		t.Errorf("failure %q, started %v", status.Failure, status.StartedAt)
	}
	s.mustShow("worker-01", run.GetRunID(), api.RequestorFailed)
	s.done(run)
	s.back("worker-01", before)

	s.exits(s.drydock("exec", "worker-02", "--", "no-such-command"), 127, "nothing was started")
	s.exits(s.drydock("exec", "worker-1", "--", "true"), 125, "worker-01")
	s.mustBeFree("worker-02")
}

func TestExecInterruptedBeforeReadyCancels(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	mark := filepath.Join(t.TempDir(), "ran")
	exec := s.spawn("exec", "worker-01", "--", "touch", mark)
	s.refusedOnce(ns)
	exec.interrupt()
	s.exits(exec.end(), 3, "before the node was ready")
	s.mustEnd(s.runOf("worker-01"), api.Cancelled)
	s.back("worker-01", before)
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command was run")
	}
}

func TestExecInterruptedWhileReadyStopsTheCommandAndFails(t *testing.T) {
	s := newSite(t, "")
	mark := filepath.Join(t.TempDir(), "running")
	exec := s.spawn("exec", "worker-01", "--", "sh", "-c",
		`trap 'echo it was told; exit 9' INT; touch `+mark+`; while :; do sleep 0.1; done`)
	s.exists(mark)
	exec.interrupt()
	s.exits(exec.end(), 9, "it was told")
	run := s.runOf("worker-01")
	s.until(run, api.RequestorFailed)
	s.mustShow("worker-01", run.GetRunID(), api.RequestorFailed)
	s.mustDrydock("cancel", "worker-01", "--release", "--wait")
}

func (s *site) exists(file string) {
	s.Helper()
	s.eventually(filepath.Base(file)+" is there", func() error {
		_, err := os.Stat(file)
		return err
	})
}

func TestExecHoldsTheNodeWhileTheCommandLives(t *testing.T) {
	s := newSite(t, "")
	r := s.drydock("exec", "worker-01", "--ready-timeout", "15s", "--", "sleep", "20")
	s.exits(r, 0)
	result := s.mustEnd(s.runOf("worker-01"), api.Completed)
	if slices.ContainsFunc(result.Transitions, func(t api.Transition) bool { return t.Phase == api.RequestorFailed }) {
		t.Errorf("the ready timeout passed while the command lived: %+v", result.Transitions)
	}
}

func TestRolloutGoesOnAfterAFailureWhereAskedTo(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 3}")
	before := s.imprints()
	s.patchNode("worker-19", `{"metadata":{"labels":{"`+controlPlaneLabel+`":""}}}`)
	// Zone a has every third node: seven in all.
	r := s.drydock("rollout", "--selector", "topology.kubernetes.io/zone=zone-a", "--yes", "--max-parallel", "3", "--continue-on-error",
		"--", "test", "{node}", "!=", "worker-04")
	s.exits(r, 1, "7 nodes: 5 done, 1 failed, 1 skipped", "--include-control-plane", "exit status 1")
	failed := s.runOf("worker-04")
	s.mustShow("worker-04", failed.GetRunID(), api.RequestorFailed)
	s.mustBeFree("worker-19")
	s.mustDrydock("retry", "worker-04")
	s.mustDrydock("done", "worker-04", "--wait")
	for _, name := range []string{"worker-01", "worker-04", "worker-07", "worker-10", "worker-13", "worker-16"} {
		s.back(name, before[name])
	}
}

func TestRolloutStopsAtTheFirstFailure(t *testing.T) {
	s := newSite(t, "")
	s.exits(s.drydock("rollout", "worker-01", "--", "true"), 2, "--yes")
	r := s.drydock("rollout", "worker-01", "worker-02", "worker-03", "--yes", "--", "test", "{node}", "=", "worker-01")
	s.exits(r, 1, "3 nodes: 1 done, 1 failed, 1 not started", "another node failed")
	s.until(s.runOf("worker-02"), api.RequestorFailed)
	if _, err := s.temporal.DescribeWorkflowExecution(s.ctx, api.MaintenanceID(s.cluster, "worker-03", "ops"), ""); err == nil {
		t.Error("worker-03 was started")
	}
}

func TestRolloutInterruptedCancelsWhatWaitsAndFinishesWhatRuns(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 1}")
	before := s.imprints()
	dir := t.TempDir()
	rollout := s.spawn("rollout", "worker-01", "worker-02", "worker-03", "--yes", "--max-parallel", "2",
		"--", "sh", "-c", `touch `+dir+`/{node}; until test -e `+dir+`/go; do sleep 0.1; done`)
	// Of two that ask in the same instant either may have the slot.
	first, second := "worker-01", "worker-02"
	s.eventually("a command runs", func() error {
		if _, err := os.Stat(filepath.Join(dir, second)); err == nil {
			first, second = second, first
		}
		_, err := os.Stat(filepath.Join(dir, first))
		return err
	})
	rollout.interrupt()
	rollout.says("interrupted")
	s.mustEnd(s.runOf(second), api.Cancelled)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.exits(rollout.end(), 3, "3 nodes: 1 done, 1 cancelled, 1 not started")
	s.mustEnd(s.runOf(first), api.Completed)
	if _, err := os.Stat(filepath.Join(dir, second)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command was run on %s", second)
	}
	for _, name := range []string{"worker-01", "worker-02", "worker-03"} {
		s.back(name, before[name])
	}
}
