package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/doctor"
)

// finds checks what the doctor finds, without changing anything.
func finds(s *site.Site, want ...string) doctor.Report {
	s.Helper()
	report := s.Doctored()
	if got := site.Found(report); !slices.Equal(got, want) {
		s.Errorf("found %q, want %q: %+v", got, want, report.Findings)
	}
	return report
}

// heals has all healed, checks what was, and that nothing is left.
func heals(s *site.Site, want ...string) doctor.Report {
	s.Helper()
	report := s.Doctored("--fix", "--yes", "--comment", "e2e")
	if len(report.Findings) > 0 {
		s.Errorf("left: %+v", report.Findings)
	}
	got := []string{}
	for _, h := range report.Healed {
		got = append(got, strings.TrimSpace(string(h.Kind)+" "+h.Node))
	}
	if !slices.Equal(got, want) {
		s.Errorf("healed %q, want %q: %+v", got, want, report.Healed)
	}
	finds(s)
	return report
}

func recorded(s *site.Site, node string) {
	s.Helper()
	if events := s.NodeEvents(node, "HealedByDoctor"); len(events) == 0 || !strings.Contains(events[0].Message, "e2e") {
		s.Errorf("events on %s: %+v", node, events)
	}
}

func terminate(s *site.Site, run client.WorkflowRun) {
	s.Helper()
	if err := s.Temporal.TerminateWorkflow(s.Ctx, run.GetID(), run.GetRunID(), "by hand"); err != nil {
		s.Fatal(err)
	}
}

func tellScheduler(s *site.Site, signal string, payload any) {
	s.Helper()
	if err := s.Temporal.SignalWorkflow(s.Ctx, api.SchedulerID(s.Cluster), "", signal, payload); err != nil {
		s.Fatal(err)
	}
}

func TestDoctorFindsNothingOnABusySite(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 5}")
	finds(s)
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	draining := s.Begin("worker-01")
	s.Until(draining, api.Draining)
	ready := s.ReadyNow("worker-02")
	failed := s.ReadyNow("worker-03")
	s.Signal(failed, api.MsgFailed, nil)
	s.Until(failed, api.RequestorFailed)
	outside := s.BeginWith("worker-04", `"drain":{"mode":"external"}`)
	s.Until(outside, api.Draining)
	s.Schedulable("worker-19", false)
	// These come and go all the time, through the one slot that is left.
	rollout := s.Spawn("rollout", "-v", "worker-05", "worker-06", "worker-07", "worker-08", "worker-09", "worker-10", "worker-11", "worker-12",
		"worker-13", "worker-14", "worker-15", "worker-16", "worker-17", "worker-18", "--yes", "--max-parallel", "10", "--", "sleep", "2")
	rollout.Says("Ready")
	for range 4 {
		// Here what is so in passing may take longer than on a site that rests.
		report := s.Doctored("--pause", "10s")
		if len(report.Findings) > 0 {
			t.Errorf("found %+v", report.Findings)
		}
		if report.Looked.Marked < 4 || report.Looked.Holders < 4 {
			t.Errorf("it looked at %+v", report.Looked)
		}
	}
	select {
	case <-rollout.Exited:
		t.Error("the rollout was over before the last look")
	default:
	}
	s.Exits(s.Drydock("doctor", "--all"), 0, "worker-19", "cordoned by no maintenance", "Nothing is inconsistent.")
	s.Schedulable("worker-19", true)
	s.Allow(ns, "web")
	s.Done(ready)
}

func TestDoctorHealsWhatADeadMaintenanceLeft(t *testing.T) {
	s := site.New(t, "scheduler: {onOrphan: report}")
	before := s.Imprint("worker-01")
	run := s.Begin("worker-01")
	s.UntilHeld(run)
	terminate(s, run)
	s.Eventually("the slot is reclaimed", func() error {
		if holders := s.Holders(); len(holders) > 0 {
			return fmt.Errorf("holders %v", holders)
		}
		return nil
	})
	report := finds(s, "MarkDead worker-01")
	if f := report.Findings[0]; f.RunID != run.GetRunID() || f.Fix != doctor.ReleaseMark || f.Since == nil || !strings.Contains(f.Text, "Terminated") {
		t.Errorf("%+v", f)
	}
	s.MustShow("worker-01", run.GetRunID(), "Orphaned")
	s.Exits(s.Drydock("doctor", "--fix"), 2, "--yes")
	s.Exits(s.Drydock("doctor"), 1, "MarkDead", "worker-01", "--fix: takes the mark off")
	heals(s, "MarkDead worker-01")
	s.Back("worker-01", before)
	recorded(s, "worker-01")
}

func TestDoctorHealsSlotsThatGotLost(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	run := s.ReadyNow("worker-01")
	request := s.MustStatus(run).Slot.RequestID

	s.Sub("none, whatever somebody says in its name", func(s *site.Site) {
		wrong := api.SlotRequest{RunID: run.GetRunID()}
		wrong.ID, wrong.Node, wrong.Requestor, wrong.Created = run.GetRunID()+"/7", "worker-01", "ops", time.Now()
		tellScheduler(s, api.SignalSlotRelease, api.SlotRelease{RequestID: request})
		tellScheduler(s, api.SignalSlotRequest, wrong)
		s.Eventually("the scheduler has asked the maintenance", func() error {
			if !slices.ContainsFunc(s.State().Decisions, func(d api.RecordedDecision) bool {
				return strings.Contains(d.What, "node worker-01 was said to be given back and stays held")
			}) {
				return fmt.Errorf("decisions %+v", s.State().Decisions)
			}
			return nil
		})
		if h := s.State().Holders; len(h) != 1 || h[0].RequestID != request || s.State().PendingAll != 0 {
			s.Errorf("holders %+v", h)
		}
	})
	s.Sub("requests of nobody, and one that is forgotten", func(s *site.Site) {
		s.MustDrydock("freeze", "--by", "e2e")
		waits := s.Begin("worker-02")
		s.WaitsFor(waits, "frozen by e2e")
		s.UntilStatus(waits, "told", func(status api.Status) bool { return strings.Contains(status.WaitingFor, "frozen") })
		tellScheduler(s, api.SignalSlotRelease, api.SlotRelease{RequestID: s.MustStatus(waits).Slot.RequestID})
		ghost := api.SlotRequest{RunID: "11111111-2222-3333-4444-555555555555"}
		ghost.ID, ghost.Node, ghost.Requestor, ghost.Created = ghost.RunID+"/1", "worker-03", "ops", time.Now()
		tellScheduler(s, api.SignalSlotRequest, ghost)
		finds(s, "PendingDead worker-03", "SlotUnrequested worker-02")
		if only := site.Found(s.Doctored("worker-02")); !slices.Equal(only, []string{"SlotUnrequested worker-02"}) {
			s.Errorf("of worker-02: %q", only)
		}
		heals(s, "PendingDead worker-03", "SlotUnrequested worker-02")
		if !slices.ContainsFunc(s.State().Decisions, func(d api.RecordedDecision) bool {
			return strings.Contains(d.What, ghost.ID) && strings.Contains(d.Why, "e2e") && d.By != ""
		}) {
			s.Errorf("decisions %+v", s.State().Decisions)
		}
		s.MustDrydock("thaw", "--by", "e2e")
		s.Until(waits, api.Ready)
		s.Done(waits)
	})
	s.Done(run)
}

func TestDoctorCleansNodes(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprints()
	s.PatchNode("worker-01", `{"spec":{"taints":[{"key":"drydock.dev/maintenance","effect":"NoSchedule"}]}}`)
	s.PatchNode("worker-02", `{"metadata":{"labels":{"`+api.PhaseLabel+`":"Ready"}}}`)
	s.PatchNode("worker-03", `{"metadata":{"labels":{"`+api.PhaseLabel+`":"Ready"}},"spec":{"unschedulable":true}}`)
	s.PatchNode("worker-04", `{"metadata":{"annotations":{"`+api.HoldersAnnotation+`":"{nonsense"}}}`)
	report := finds(s, "TaintLeft worker-01", "LabelLeft worker-02", "CordonUnowned worker-03", "MarkUnreadable worker-04")
	for _, f := range report.Findings[2:] {
		if f.Fix != "" || !strings.Contains(f.NextStep, "kubectl") {
			t.Errorf("%+v", f)
		}
	}
	fixed := s.Doctored("--fix", "--yes", "--comment", "e2e")
	if got := site.Found(fixed); !slices.Equal(got, []string{"CordonUnowned worker-03", "MarkUnreadable worker-04"}) || len(fixed.Healed) != 2 {
		t.Errorf("left %q, healed %+v", got, fixed.Healed)
	}
	s.Back("worker-01", before["worker-01"])
	s.Back("worker-02", before["worker-02"])
	recorded(s, "worker-01")
	recorded(s, "worker-02")
	if n := s.Node("worker-03"); !n.Spec.Unschedulable {
		t.Error("it has uncordoned a node without proof")
	}
	// What the next steps say.
	s.Schedulable("worker-03", true)
	s.PatchNode("worker-04", `{"metadata":{"annotations":{"`+api.HoldersAnnotation+`":null}}}`)
	heals(s, "LabelLeft worker-03")
}

func TestSlowDoctorSeesThatTheSchedulerIsGone(t *testing.T) {
	s := site.New(t, "")
	s.Exits(s.Drydock("doctor", "--pause", "0s"), 2, "--pause")
	run := s.ReadyNow("worker-01")
	terminateScheduler(s)
	report := s.Doctored()
	if got := site.Found(report); !slices.Equal(got, []string{"SchedulerMissing"}) {
		t.Logf("found %q: a worker was faster", got)
	}
	healed := s.Doctored("--fix", "--yes")
	if healed.Count() > 0 {
		t.Errorf("left %+v", healed.Findings)
	}
	if holders := s.Holders(); !slices.Equal(holders, []string{"worker-01"}) {
		t.Errorf("holders %v", holders)
	}
	s.Done(run)
}

func TestDoctorSeesAMaintenanceOfANodeThatIsGone(t *testing.T) {
	s := site.New(t, "")
	run := s.ReadyNow("worker-20")
	fresh := s.DeleteNode("worker-20")
	s.UntilStatus(run, "waiting for the replacement", func(status api.Status) bool {
		return strings.Contains(messagesOf(status), "adopted when it registers")
	})
	if report := finds(s); len(report.Notes) == 0 || report.Notes[0].Kind != doctor.NodeAwaited {
		t.Errorf("notes %+v", report.Notes)
	}
	s.Signal(run, api.MsgFailed, nil)
	s.Until(run, api.RequestorFailed)
	report := finds(s, "NodeGone worker-20")
	if next := report.Findings[0].NextStep; !strings.Contains(next, "drydock cancel worker-20 --release") {
		t.Errorf("next step %q", next)
	}
	s.MustDrydock("cancel", "worker-20", "--release")
	_, _ = s.End(run)
	finds(s)
	s.CreateNode(fresh)
}

func messagesOf(status api.Status) string {
	var texts []string
	for _, t := range status.Transitions {
		texts = append(texts, t.Message)
	}
	return strings.Join(texts, "\n")
}

func TestOneDoctorAtATime(t *testing.T) {
	s := site.New(t, "")
	s.PatchNode("worker-01", `{"metadata":{"labels":{"`+api.PhaseLabel+`":"Ready"}}}`)
	first := s.Spawn("doctor", "--pause", "20s")
	s.Eventually("it runs", func() error {
		described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, api.DoctorID(s.Cluster), "")
		if err == nil && described.WorkflowExecutionInfo.CloseTime != nil {
			err = errors.New("it has ended")
		}
		return err
	})
	s.Exits(s.Drydock("doctor"), 1, "at work already", "LabelLeft")
	if r := first.End(); r.Status != 1 {
		t.Errorf("exit status %d\n%s", r.Status, r.Out())
	}
	// As somebody without the command line would, with the answer in the result.
	run, err := s.Temporal.ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{TaskQueue: api.TaskQueue(s.Cluster, "drydock")},
		api.DoctorType, json.RawMessage(`{"fix":true,"by":"ann","pause":"1s"}`))
	if err != nil {
		t.Fatal(err)
	}
	var report doctor.Report
	if err := run.Get(s.Ctx, &report); err != nil || report.Count() > 0 || len(report.Healed) != 1 {
		t.Errorf("%v, %+v", err, report)
	}
	for _, input := range []string{`{"fix":true}`, `{"fixx":true}`, `{"nodes":["no/node"]}`} {
		run, err := s.Temporal.ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{TaskQueue: api.TaskQueue(s.Cluster, "drydock")},
			api.DoctorType, json.RawMessage(input))
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Get(s.Ctx, nil); err == nil || !strings.Contains(err.Error(), api.ErrorInvalidSpec) {
			t.Errorf("%s: %v", input, err)
		}
	}
}
