package maintenance

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestExecPassesTheCommandsExitStatusOn(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	r := s.Drydock("exec", "worker-01", "--", "sh", "-c", `echo "on $DRYDOCK_NODE in $DRYDOCK_WORKFLOW_ID"`)
	s.Exits(r, 0)
	if want := "on worker-01 in " + api.MaintenanceID(s.Cluster, "worker-01", "ops") + "\n"; r.Stdout != want {
		t.Errorf("standard output is %q, want the command's own: %q", r.Stdout, want)
	}
	run := s.RunOf("worker-01")
	s.MustEnd(run, api.Completed)
	s.Back("worker-01", before)

	s.Exits(s.Drydock("exec", "worker-01", "--", "sh", "-c", "exit 7"), 7, "exit status 7", "drydock done worker-01")
	run = s.RunOf("worker-01")
	status := s.Until(run, api.RequestorFailed)
	if !strings.Contains(status.Failure, "exit status 7") || status.StartedAt == nil {
		t.Errorf("failure %q, started %v", status.Failure, status.StartedAt)
	}
	s.MustShow("worker-01", run.GetRunID(), api.RequestorFailed)
	s.Done(run)
	s.Back("worker-01", before)

	s.Exits(s.Drydock("exec", "worker-02", "--", "no-such-command"), 127, "nothing was started")
	s.Exits(s.Drydock("exec", "worker-1", "--", "true"), 125, "worker-01")
	s.MustBeFree("worker-02")
}

func TestExecInterruptedBeforeReadyCancels(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	mark := filepath.Join(t.TempDir(), "ran")
	exec := s.Spawn("exec", "worker-01", "--", "touch", mark)
	s.RefusedOnce(ns)
	exec.Interrupt()
	s.Exits(exec.End(), 3, "before the node was ready")
	s.MustEnd(s.RunOf("worker-01"), api.Cancelled)
	s.Back("worker-01", before)
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command was run")
	}
}

func TestExecInterruptedWhileReadyStopsTheCommandAndFails(t *testing.T) {
	s := site.New(t, "")
	mark := filepath.Join(t.TempDir(), "running")
	exec := s.Spawn("exec", "worker-01", "--", "sh", "-c",
		`trap 'echo it was told; exit 9' INT; touch `+mark+`; while :; do sleep 0.1; done`)
	exists(s, mark)
	exec.Interrupt()
	s.Exits(exec.End(), 9, "it was told")
	run := s.RunOf("worker-01")
	s.Until(run, api.RequestorFailed)
	s.MustShow("worker-01", run.GetRunID(), api.RequestorFailed)
	s.MustDrydock("cancel", "worker-01", "--release", "--wait")
}

func exists(s *site.Site, file string) {
	s.Helper()
	s.Eventually(filepath.Base(file)+" is there", func() error {
		_, err := os.Stat(file)
		return err
	})
}

func TestExecHoldsTheNodeWhileTheCommandLives(t *testing.T) {
	s := site.New(t, "")
	r := s.Drydock("exec", "worker-01", "--ready-timeout", "15s", "--", "sleep", "20")
	s.Exits(r, 0)
	result := s.MustEnd(s.RunOf("worker-01"), api.Completed)
	if slices.ContainsFunc(result.Transitions, func(t api.Transition) bool { return t.Phase == api.RequestorFailed }) {
		t.Errorf("the ready timeout passed while the command lived: %+v", result.Transitions)
	}
}

func TestRolloutGoesOnAfterAFailureWhereAskedTo(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 3}")
	before := s.Imprints()
	s.PatchNode("worker-19", `{"metadata":{"labels":{"`+site.ControlPlaneLabel+`":""}}}`)
	// Zone a has every third node: seven in all.
	r := s.Drydock("rollout", "--selector", "topology.kubernetes.io/zone=zone-a", "--yes", "--max-parallel", "3", "--continue-on-error",
		"--", "test", "{node}", "!=", "worker-04")
	s.Exits(r, 1, "7 nodes: 5 done, 1 failed, 1 skipped", "--include-control-plane", "exit status 1")
	failed := s.RunOf("worker-04")
	s.MustShow("worker-04", failed.GetRunID(), api.RequestorFailed)
	s.MustBeFree("worker-19")
	s.MustDrydock("retry", "worker-04")
	s.MustDrydock("done", "worker-04", "--wait")
	for _, name := range []string{"worker-01", "worker-04", "worker-07", "worker-10", "worker-13", "worker-16"} {
		s.Back(name, before[name])
	}
}

func TestRolloutStopsAtTheFirstFailure(t *testing.T) {
	s := site.New(t, "")
	s.Exits(s.Drydock("rollout", "worker-01", "--", "true"), 2, "--yes")
	r := s.Drydock("rollout", "worker-01", "worker-02", "worker-03", "--yes", "--", "test", "{node}", "=", "worker-01")
	s.Exits(r, 1, "3 nodes: 1 done, 1 failed, 1 not started", "another node failed")
	s.Until(s.RunOf("worker-02"), api.RequestorFailed)
	if _, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, api.MaintenanceID(s.Cluster, "worker-03", "ops"), ""); err == nil {
		t.Error("worker-03 was started")
	}
}

func TestRolloutInterruptedCancelsWhatWaitsAndFinishesWhatRuns(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 1}")
	before := s.Imprints()
	dir := t.TempDir()
	rollout := s.Spawn("rollout", "worker-01", "worker-02", "worker-03", "--yes", "--max-parallel", "2",
		"--", "sh", "-c", `touch `+dir+`/{node}; until test -e `+dir+`/go; do sleep 0.1; done`)
	// Of two that ask in the same instant either may have the slot.
	first, second := "worker-01", "worker-02"
	s.Eventually("a command runs", func() error {
		if _, err := os.Stat(filepath.Join(dir, second)); err == nil {
			first, second = second, first
		}
		_, err := os.Stat(filepath.Join(dir, first))
		return err
	})
	rollout.Interrupt()
	rollout.Says("interrupted")
	s.MustEnd(s.RunOf(second), api.Cancelled)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.Exits(rollout.End(), 3, "3 nodes: 1 done, 1 cancelled, 1 not started")
	s.MustEnd(s.RunOf(first), api.Completed)
	if _, err := os.Stat(filepath.Join(dir, second)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command was run on %s", second)
	}
	for _, name := range []string{"worker-01", "worker-02", "worker-03"} {
		s.Back(name, before[name])
	}
}
