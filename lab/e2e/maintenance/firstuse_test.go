package maintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/record"
)

// as is the site at which somebody else sits.
func as(s *site.Site, requestor string) *site.Site {
	other := *s
	other.Environment = append(append([]string{}, s.Environment...), "DRYDOCK_REQUESTOR="+requestor)
	return &other
}

func TestWhoDoesNotAnswerIsNamed(t *testing.T) {
	s := site.New(t, "")
	s.MustDrydock("start", "worker-01", "--wait")
	s.StopWorker(s.Worker)
	// The server still lists the worker that has just stopped.
	commands := map[string]*site.Background{}
	for _, line := range []string{
		"freeze --by ann", "limits", "limits set --max-parallel 7", "done worker-01", "status worker-01", "start worker-02 --skip-node-check",
		"doctor", "preflight worker-03", "exec worker-04 --timeout 20s -- true",
	} {
		commands[line] = s.Spawn(strings.Fields(line)...)
	}
	for line, command := range commands {
		end := command.End()
		status := 1
		switch word, _, _ := strings.Cut(line, " "); word {
		case "status", "start":
			status = 0 // what the server knows is shown, what it takes goes on later
		case "exec":
			status = 125
		}
		s.Exits(end, status, "no worker")
		for _, never := range []string{"not reachable", "start-dev", "RST_STREAM", "deadline exceeded"} {
			if strings.Contains(end.Out(), never) {
				t.Errorf("%s speaks of %q\n%s", line, never, end.Out())
			}
		}
		if (strings.HasPrefix(line, "freeze") || strings.HasPrefix(line, "limits set")) && !strings.Contains(end.Out(), "nothing was changed") {
			t.Errorf("%s does not say that nothing was changed\n%s", line, end.Out())
		}
	}
	s.StartWorker()
	s.Until(s.RunOf("worker-02"), api.Pending)
	s.Until(s.RunOf("worker-04"), api.Cancelled)
	s.Always("what was said to have failed has no effect", 2*time.Second, func() error {
		state := s.State()
		if len(state.Freezes) > 0 || state.Limits.MaxParallel.String() == "7" {
			return fmt.Errorf("%+v", state)
		}
		return nil
	})
	if phase := s.MustStatus(s.RunOf("worker-01")).Phase; phase != api.Ready {
		t.Errorf("done was said to have failed, and the maintenance is %s", phase)
	}
	s.MustDrydock("done", "worker-01", "--wait")
}

func TestWhatTheWorkerRefusesFailsTheCommand(t *testing.T) {
	s := site.New(t, "policy: [{name: no-force, require: \"!maintenance.drain.force\"}]\n")
	s.Exits(s.Drydock("start", "worker-01", "--notify", "oncall"), 2, `no channel "oncall"`, "worker-01 is refused", "nothing was done")
	s.Exits(s.Drydock("start", "worker-01", "--hook", "beforeCordon=nosuch", "--wait"), 2, `hooks.beforeCordon[0]: there is no "nosuch"`)
	s.Exits(s.Drydock("start", "worker-01", "--force"), 1, "no-force")
	s.Exits(s.Drydock("exec", "worker-01", "--notify", "oncall", "--", "true"), 125, `no channel "oncall"`)
	both := s.Drydock("start", "worker-01", "worker-1", "--skip-node-check", "--reason", "days", "--ready-timeout", "2d", "-o", "json")
	s.Exits(both, 0)
	if !strings.Contains(both.Stdout, `"Pending"`) && !strings.Contains(both.Stdout, "worker-01") {
		t.Error(both.Stdout)
	}
	run := s.RunOf("worker-01")
	if left := time.Until(*s.Until(run, api.Ready).ReadyDeadline); left < 47*time.Hour {
		t.Errorf("%s left of two days", left)
	}

	s.MustDrydock("fail", "worker-01", "--comment", "no power")
	s.MustDrydock("retry", "worker-01")
	s.Exits(s.Drydock("extend", "worker-01", "--for", "4d"), 0, "may be held until")
	s.Exits(s.Drydock("extend", "worker-01"), 0, "may be held until", "already")
	s.MustDrydock("done", "worker-01", "--wait")
	s.Eventually("the report counts what failed on the way, and no typo as a maintenance", func() error {
		var report record.Report
		if err := json.Unmarshal([]byte(s.MustDrydock("report", "-o", "json")), &report); err != nil {
			return err
		}
		if report.Maintenances != 1 || report.WithFailures != 1 || len(report.Refused) != 5 || report.FailuresOnTheWay[0].Reason != "no power" {
			return fmt.Errorf("%+v", report)
		}
		return nil
	})
}

func TestSomebodyElsesMaintenanceIsNotEndedByASlip(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 4}\n")
	before := s.Imprint("worker-01")
	bob := as(s, "bob")
	s.MustDrydock("start", "worker-01", "--wait")
	run := s.RunOf("worker-01")
	for _, args := range [][]string{
		{"done", "worker-01"}, {"fail", "worker-01", "--comment", "x"}, {"cancel", "worker-01", "--release"},
	} {
		s.Exits(bob.Drydock(args...), 2, "is in maintenance for ops", "you are bob", "--yes")
	}
	s.Exits(bob.AtTerminal("n", "done", "worker-01"), 3, "worker-01 is in maintenance for ops", "Say done all the same?", "nothing was sent")
	if phase := s.MustStatus(run).Phase; phase != api.Ready {
		t.Fatalf("it is %s", phase)
	}
	s.Exits(bob.Drydock("validation", "pass", "worker-01"), 2, "--comment")
	// Whom one names, and has started oneself, is no slip.
	s.Exits(bob.Drydock("join", "worker-01"), 0, "bob shares")
	s.Exits(bob.Drydock("done", "worker-01"), 0, "bob is done")
	s.Exits(bob.Drydock("fail", "worker-01", "--requestor", "ops", "--yes", "--comment", "bob says so"), 0, "RequestorFailed")
	s.Exits(bob.AtTerminal("y", "cancel", "worker-01", "--release", "--wait"), 0, "Say cancel --release all the same?", "Cancelled")
	s.Back("worker-01", before)

	s.MustDrydock("start", "worker-01", "--requestor", "network-team", "--wait")
	s.MustDrydock("start", "worker-01", "--requestor", "storage-team")
	s.Exits(bob.Drydock("join", "worker-01"), 1, "--of")
	s.Exits(as(s, "network-team").Drydock("status", "worker-01"), 0, "drydock done worker-01 --requestor network-team")
	s.MustDrydock("cancel", "worker-01", "--requestor", "storage-team", "--wait")
	s.Exits(s.Drydock("done", "worker-01", "--requestor", "network-team", "--wait"), 0)
	s.Back("worker-01", before)
}

func TestCountsNameTheNodes(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 4, maxUnavailable: 2}\n")
	s.PatchNode("worker-05", `{"spec":{"unschedulable":true}}`)
	s.MustDrydock("start", "worker-01", "--wait")
	s.MustDrydock("start", "worker-02")
	s.Eventually("it waits", func() error {
		status, err := s.Status(s.RunOf("worker-02"))
		if err == nil && !strings.Contains(status.WaitingFor, "2 are unavailable (1 in maintenance: worker-01; worker-05 cordoned)") {
			err = errors.New(status.WaitingFor)
		}
		return err
	})
	s.Exits(s.Drydock("limits"), 0, "2 of them unavailable: 1 in maintenance, worker-05 cordoned", "2 are unavailable (1 in maintenance: worker-01; worker-05 cordoned)")
	s.Exits(s.Drydock("limits", "set", "--max-unavailable", "150%"), 2, "more than all nodes: want a whole number such as 3, or a percentage from 0% to 100%\n")
	s.Exits(s.Drydock("rollout", "--all", "--max-parallel", "half", "--", "true"), 2, `--max-parallel: "half" is not an amount`)
	s.MustDrydock("cancel", "worker-02", "--wait")
	s.PatchNode("worker-05", `{"spec":{"unschedulable":null}}`)
	s.MustDrydock("done", "worker-01", "--wait")

	s.Exits(s.Drydock("rollout", "worker-01", "worker-02", "--yes", "--max-parallel", "50%", "--", "true"), 0, "1 at a time", "2 done")
	s.Exits(s.Drydock("doctor", "worker-1", "--pause", "10ms"), 1, `"worker-1" does not exist`, "Did you mean worker-01")
	s.Exits(s.Drydock("doctor", "worker-01", "--pause", "10ms"), 0, "Nothing is inconsistent")
}

func TestAStartWaitsForTheMaintenanceBeforeToGiveTheNodeBack(t *testing.T) {
	s := site.Prepare(t, "")
	cable := s.CableToAPIServer()
	s.Connect(cable)
	s.StartWorker()
	s.MustDrydock("start", "worker-01", "--wait")
	first := s.RunOf("worker-01")
	run := s.MustStatus(first).RunID
	cable.Cut()
	s.MustDrydock("done", "worker-01")
	s.Until(first, api.Releasing)
	start := s.Spawn("start", "worker-01", "--skip-node-check", "--wait")
	start.Says("is giving the node back; starting when it has")
	s.Connect(cable)
	s.Exits(start.End(), 0, "worker-01 is Ready")
	second := s.MustStatus(s.RunOf("worker-01"))
	if second.RunID == run {
		t.Error("it is still the maintenance before")
	}
	s.MustDrydock("done", "worker-01", "--wait")
}
