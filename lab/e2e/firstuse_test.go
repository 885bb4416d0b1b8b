package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/record"
)

// as is the site at which somebody else sits.
func (s *site) as(requestor string) *site {
	other := *s
	other.environment = append(append([]string{}, s.environment...), "DRYDOCK_REQUESTOR="+requestor)
	return &other
}

func TestWhoDoesNotAnswerIsNamed(t *testing.T) {
	s := newSite(t, "")
	s.mustDrydock("start", "worker-01", "--wait")
	s.stopWorker(s.worker)
	// The server still lists the worker that has just stopped.
	commands := map[string]*background{}
	for _, line := range []string{
		"freeze --by ann", "limits", "limits set --max-parallel 7", "done worker-01", "status worker-01", "start worker-02 --skip-node-check",
		"doctor", "preflight worker-03", "exec worker-04 --timeout 20s -- true",
	} {
		commands[line] = s.spawn(strings.Fields(line)...)
	}
	for line, command := range commands {
		end := command.end()
		status := 1
		switch word, _, _ := strings.Cut(line, " "); word {
		case "status", "start":
			status = 0 // what the server knows is shown, what it takes goes on later
		case "exec":
			status = 125
		}
		s.exits(end, status, "no worker")
		for _, never := range []string{"not reachable", "start-dev", "RST_STREAM", "deadline exceeded"} {
			if strings.Contains(end.out(), never) {
				t.Errorf("%s speaks of %q\n%s", line, never, end.out())
			}
		}
		if (strings.HasPrefix(line, "freeze") || strings.HasPrefix(line, "limits set")) && !strings.Contains(end.out(), "nothing was changed") {
			t.Errorf("%s does not say that nothing was changed\n%s", line, end.out())
		}
	}
	s.startWorker()
	s.until(s.runOf("worker-02"), api.Pending)
	s.until(s.runOf("worker-04"), api.Cancelled)
	s.always("what was said to have failed has no effect", 2*time.Second, func() error {
		state := s.state()
		if len(state.Freezes) > 0 || state.Limits.MaxParallel.String() == "7" {
			return fmt.Errorf("%+v", state)
		}
		return nil
	})
	if phase := s.mustStatus(s.runOf("worker-01")).Phase; phase != api.Ready {
		t.Errorf("done was said to have failed, and the maintenance is %s", phase)
	}
	s.mustDrydock("done", "worker-01", "--wait")
}

func TestWhatTheWorkerRefusesFailsTheCommand(t *testing.T) {
	s := newSite(t, "policy: [{name: no-force, require: \"!maintenance.drain.force\"}]\n")
	s.exits(s.drydock("start", "worker-01", "--notify", "oncall"), 2, `no channel "oncall"`, "worker-01 is refused", "nothing was done")
	s.exits(s.drydock("start", "worker-01", "--hook", "beforeCordon=nosuch", "--wait"), 2, `hooks.beforeCordon[0]: there is no "nosuch"`)
	s.exits(s.drydock("start", "worker-01", "--force"), 1, "no-force")
	s.exits(s.drydock("exec", "worker-01", "--notify", "oncall", "--", "true"), 125, `no channel "oncall"`)
	both := s.drydock("start", "worker-01", "worker-1", "--skip-node-check", "--reason", "days", "--ready-timeout", "2d", "-o", "json")
	s.exits(both, 0)
	if !strings.Contains(both.stdout, `"Pending"`) && !strings.Contains(both.stdout, "worker-01") {
		t.Error(both.stdout)
	}
	run := s.runOf("worker-01")
	if left := time.Until(*s.until(run, api.Ready).ReadyDeadline); left < 47*time.Hour {
		t.Errorf("%s left of two days", left)
	}

	s.mustDrydock("failed", "worker-01", "--reason", "no power")
	s.mustDrydock("retry", "worker-01")
	s.exits(s.drydock("extend", "worker-01", "--for", "4d"), 0, "may be held until")
	s.exits(s.drydock("extend", "worker-01"), 0, "may be held until", "already")
	s.mustDrydock("done", "worker-01", "--wait")
	s.eventually("the report counts what failed on the way, and no typo as a maintenance", func() error {
		var report record.Report
		if err := json.Unmarshal([]byte(s.mustDrydock("report", "-o", "json")), &report); err != nil {
			return err
		}
		if report.Maintenances != 1 || report.WithFailures != 1 || len(report.Refused) != 5 || report.FailuresOnTheWay[0].Reason != "no power" {
			return fmt.Errorf("%+v", report)
		}
		return nil
	})
}

func TestSomebodyElsesMaintenanceIsNotEndedByASlip(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 4}\n")
	before := s.imprint("worker-01")
	bob := s.as("bob")
	s.mustDrydock("start", "worker-01", "--wait")
	run := s.runOf("worker-01")
	for _, args := range [][]string{
		{"done", "worker-01"}, {"failed", "worker-01", "--reason", "x"}, {"cancel", "worker-01", "--release"},
	} {
		s.exits(bob.drydock(args...), 2, "is in maintenance for ops", "you are bob", "--yes")
	}
	s.exits(bob.atTerminal("n", "done", "worker-01"), 3, "worker-01 is in maintenance for ops", "Say done all the same?", "nothing was sent")
	if phase := s.mustStatus(run).Phase; phase != api.Ready {
		t.Fatalf("it is %s", phase)
	}
	s.exits(bob.drydock("validated", "worker-01"), 2, "--comment")
	// Whom one names, and has started oneself, is no slip.
	s.exits(bob.drydock("join", "worker-01"), 0, "bob shares")
	s.exits(bob.drydock("done", "worker-01"), 0, "bob is done")
	s.exits(bob.drydock("failed", "worker-01", "--requestor", "ops", "--yes", "--reason", "bob says so"), 0, "RequestorFailed")
	s.exits(bob.atTerminal("y", "cancel", "worker-01", "--release", "--wait"), 0, "Say cancel --release all the same?", "Cancelled")
	s.back("worker-01", before)

	s.mustDrydock("start", "worker-01", "--requestor", "network-team", "--wait")
	s.mustDrydock("start", "worker-01", "--requestor", "storage-team")
	s.exits(bob.drydock("join", "worker-01"), 1, "--of")
	s.mustDrydock("cancel", "worker-01", "--requestor", "storage-team", "--wait")
	s.exits(s.drydock("done", "worker-01", "--requestor", "network-team", "--wait"), 0)
	s.back("worker-01", before)
}

func TestCountsNameTheNodes(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 4, maxUnavailable: 2}\n")
	s.patchNode("worker-05", `{"spec":{"unschedulable":true}}`)
	s.mustDrydock("start", "worker-01", "--wait")
	s.mustDrydock("start", "worker-02")
	s.eventually("it waits", func() error {
		status, err := s.status(s.runOf("worker-02"))
		if err == nil && !strings.Contains(status.WaitingFor, "2 are unavailable (1 in maintenance: worker-01; worker-05 cordoned)") {
			err = errors.New(status.WaitingFor)
		}
		return err
	})
	s.exits(s.drydock("limits"), 0, "2 of them unavailable: 1 in maintenance, worker-05 cordoned", "2 are unavailable (1 in maintenance: worker-01; worker-05 cordoned)")
	s.exits(s.drydock("limits", "set", "--max-unavailable", "150%"), 2, "more than all nodes: want a whole number such as 3, or a percentage from 0% to 100%\n")
	s.exits(s.drydock("rollout", "--all", "--max-parallel", "half", "--", "true"), 2, `--max-parallel: "half" is not an amount`)
	s.mustDrydock("cancel", "worker-02", "--wait")
	s.patchNode("worker-05", `{"spec":{"unschedulable":null}}`)
	s.mustDrydock("done", "worker-01", "--wait")

	s.exits(s.drydock("rollout", "worker-01", "worker-02", "--yes", "--max-parallel", "50%", "--", "true"), 0, "1 at a time", "2 done")
	s.exits(s.drydock("doctor", "worker-1", "--pause", "10ms"), 1, `"worker-1" does not exist`, "Did you mean worker-01")
	s.exits(s.drydock("doctor", "worker-01", "--pause", "10ms"), 0, "Nothing is inconsistent")
}

func TestAStartWaitsForTheMaintenanceBeforeToGiveTheNodeBack(t *testing.T) {
	s := prepareSite(t, "")
	cable := s.cableToAPIServer()
	s.connect(cable)
	s.startWorker()
	s.mustDrydock("start", "worker-01", "--wait")
	first := s.runOf("worker-01")
	run := s.mustStatus(first).RunID
	cable.cut()
	s.mustDrydock("done", "worker-01")
	s.until(first, api.Releasing)
	start := s.spawn("start", "worker-01", "--skip-node-check", "--wait")
	start.says("is giving the node back; starting when it has")
	s.connect(cable)
	s.exits(start.end(), 0, "worker-01 is Ready")
	second := s.mustStatus(s.runOf("worker-01"))
	if second.RunID == run {
		t.Error("it is still the maintenance before")
	}
	s.mustDrydock("done", "worker-01", "--wait")
}
