package e2e

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
	"drydock.dev/drydock/rules/doctor"
)

// doctored runs the command line's doctor, and checks that its exit status fits its report.
func (s *site) doctored(flags ...string) doctor.Report {
	s.Helper()
	r := s.drydock(append([]string{"doctor", "-o", "json", "--pause", "1s"}, flags...)...)
	var report doctor.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		s.Fatalf("%v, exit status %d\n%s", err, r.status, r.out())
	}
	if want := min(report.Count(), 1); r.status != want {
		s.Errorf("exit status %d, want %d\n%s", r.status, want, r.out())
	}
	return report
}

// found are the kinds and nodes of a report's findings.
func found(report doctor.Report) []string {
	texts := []string{}
	for _, f := range report.Findings {
		texts = append(texts, strings.TrimSpace(string(f.Kind)+" "+f.Node))
	}
	return texts
}

// finds checks what the doctor finds, without changing anything.
func (s *site) finds(want ...string) doctor.Report {
	s.Helper()
	report := s.doctored()
	if got := found(report); !slices.Equal(got, want) {
		s.Errorf("found %q, want %q: %+v", got, want, report.Findings)
	}
	return report
}

// heals has all healed, checks what was, and that nothing is left.
func (s *site) heals(want ...string) doctor.Report {
	s.Helper()
	report := s.doctored("--fix", "--yes", "--comment", "e2e")
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
	s.finds()
	return report
}

func (s *site) recorded(node string) {
	s.Helper()
	if events := s.nodeEvents(node, "HealedByDoctor"); len(events) == 0 || !strings.Contains(events[0].Message, "e2e") {
		s.Errorf("events on %s: %+v", node, events)
	}
}

func (s *site) terminate(run client.WorkflowRun) {
	s.Helper()
	if err := s.temporal.TerminateWorkflow(s.ctx, run.GetID(), run.GetRunID(), "by hand"); err != nil {
		s.Fatal(err)
	}
}

func (s *site) tellScheduler(signal string, payload any) {
	s.Helper()
	if err := s.temporal.SignalWorkflow(s.ctx, api.SchedulerID(s.cluster), "", signal, payload); err != nil {
		s.Fatal(err)
	}
}

func TestDoctorFindsNothingOnABusySite(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5}")
	s.finds()
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	draining := s.begin("worker-01")
	s.until(draining, api.Draining)
	ready := s.readyNow("worker-02")
	failed := s.readyNow("worker-03")
	s.signal(failed, api.MsgFailed, nil)
	s.until(failed, api.RequestorFailed)
	outside := s.beginWith("worker-04", `"drain":{"mode":"external"}`)
	s.until(outside, api.Draining)
	s.schedulable("worker-19", false)
	// These come and go all the time, through the one slot that is left.
	rollout := s.spawn("rollout", "-v", "worker-05", "worker-06", "worker-07", "worker-08", "worker-09", "worker-10", "worker-11", "worker-12",
		"worker-13", "worker-14", "worker-15", "worker-16", "worker-17", "worker-18", "--yes", "--max-parallel", "10", "--", "sleep", "2")
	rollout.says("Ready")
	for range 4 {
		// Here what is so in passing may take longer than on a site that rests.
		report := s.doctored("--pause", "10s")
		if len(report.Findings) > 0 {
			t.Errorf("found %+v", report.Findings)
		}
		if report.Looked.Marked < 4 || report.Looked.Holders < 4 {
			t.Errorf("it looked at %+v", report.Looked)
		}
	}
	select {
	case <-rollout.exited:
		t.Error("the rollout was over before the last look")
	default:
	}
	s.exits(s.drydock("doctor", "--all"), 0, "worker-19", "cordoned by hand", "Nothing is inconsistent.")
	s.schedulable("worker-19", true)
	s.allow(ns, "web")
	s.done(ready)
}

func TestDoctorHealsWhatADeadMaintenanceLeft(t *testing.T) {
	s := newSite(t, "scheduler: {onOrphan: report}")
	before := s.imprint("worker-01")
	run := s.begin("worker-01")
	s.untilHeld(run)
	s.terminate(run)
	s.eventually("the slot is reclaimed", func() error {
		if holders := s.holders(); len(holders) > 0 {
			return fmt.Errorf("holders %v", holders)
		}
		return nil
	})
	report := s.finds("MarkDead worker-01")
	if f := report.Findings[0]; f.RunID != run.GetRunID() || f.Fix != doctor.ReleaseMark || f.Since == nil || !strings.Contains(f.Text, "Terminated") {
		t.Errorf("%+v", f)
	}
	s.mustShow("worker-01", run.GetRunID(), "Orphaned")
	s.exits(s.drydock("doctor", "--fix"), 2, "--yes")
	s.exits(s.drydock("doctor"), 1, "MarkDead", "worker-01", "--fix: takes the mark off")
	s.heals("MarkDead worker-01")
	s.back("worker-01", before)
	s.recorded("worker-01")
}

func TestDoctorHealsSlotsThatGotLost(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 2}")
	run := s.readyNow("worker-01")
	request := s.mustStatus(run).Slot.RequestID

	s.sub("none, whatever somebody says in its name", func(s *site) {
		wrong := api.SlotRequest{RunID: run.GetRunID()}
		wrong.ID, wrong.Node, wrong.Requestor, wrong.Created = run.GetRunID()+"/7", "worker-01", "ops", time.Now()
		s.tellScheduler(api.SignalSlotRelease, api.SlotRelease{RequestID: request})
		s.tellScheduler(api.SignalSlotRequest, wrong)
		s.eventually("the scheduler has asked the maintenance", func() error {
			if !slices.ContainsFunc(s.state().Decisions, func(d api.RecordedDecision) bool {
				return strings.Contains(d.What, "node worker-01 was said to be given back and stays held")
			}) {
				return fmt.Errorf("decisions %+v", s.state().Decisions)
			}
			return nil
		})
		if h := s.state().Holders; len(h) != 1 || h[0].RequestID != request || s.state().PendingAll != 0 {
			s.Errorf("holders %+v", h)
		}
	})
	s.sub("requests of nobody, and one that is forgotten", func(s *site) {
		s.mustDrydock("freeze", "--by", "e2e")
		waits := s.begin("worker-02")
		s.waitsFor(waits, "frozen by e2e")
		s.untilStatus(waits, "told", func(status api.Status) bool { return strings.Contains(status.WaitingFor, "frozen") })
		s.tellScheduler(api.SignalSlotRelease, api.SlotRelease{RequestID: s.mustStatus(waits).Slot.RequestID})
		ghost := api.SlotRequest{RunID: "11111111-2222-3333-4444-555555555555"}
		ghost.ID, ghost.Node, ghost.Requestor, ghost.Created = ghost.RunID+"/1", "worker-03", "ops", time.Now()
		s.tellScheduler(api.SignalSlotRequest, ghost)
		s.finds("PendingDead worker-03", "SlotUnrequested worker-02")
		if only := found(s.doctored("worker-02")); !slices.Equal(only, []string{"SlotUnrequested worker-02"}) {
			s.Errorf("of worker-02: %q", only)
		}
		s.heals("PendingDead worker-03", "SlotUnrequested worker-02")
		if !slices.ContainsFunc(s.state().Decisions, func(d api.RecordedDecision) bool {
			return strings.Contains(d.What, ghost.ID) && strings.Contains(d.Why, "e2e") && d.By != ""
		}) {
			s.Errorf("decisions %+v", s.state().Decisions)
		}
		s.mustDrydock("thaw", "--by", "e2e")
		s.until(waits, api.Ready)
		s.done(waits)
	})
	s.done(run)
}

func TestDoctorCleansNodes(t *testing.T) {
	s := newSite(t, "")
	before := s.imprints()
	s.patchNode("worker-01", `{"spec":{"taints":[{"key":"drydock.dev/maintenance","effect":"NoSchedule"}]}}`)
	s.patchNode("worker-02", `{"metadata":{"labels":{"`+api.PhaseLabel+`":"Ready"}}}`)
	s.patchNode("worker-03", `{"metadata":{"labels":{"`+api.PhaseLabel+`":"Ready"}},"spec":{"unschedulable":true}}`)
	s.patchNode("worker-04", `{"metadata":{"annotations":{"`+api.HoldersAnnotation+`":"{nonsense"}}}`)
	report := s.finds("TaintLeft worker-01", "LabelLeft worker-02", "CordonUnowned worker-03", "MarkUnreadable worker-04")
	for _, f := range report.Findings[2:] {
		if f.Fix != "" || !strings.Contains(f.NextStep, "kubectl") {
			t.Errorf("%+v", f)
		}
	}
	fixed := s.doctored("--fix", "--yes", "--comment", "e2e")
	if got := found(fixed); !slices.Equal(got, []string{"CordonUnowned worker-03", "MarkUnreadable worker-04"}) || len(fixed.Healed) != 2 {
		t.Errorf("left %q, healed %+v", got, fixed.Healed)
	}
	s.back("worker-01", before["worker-01"])
	s.back("worker-02", before["worker-02"])
	s.recorded("worker-01")
	s.recorded("worker-02")
	if n := s.node("worker-03"); !n.Spec.Unschedulable {
		t.Error("it has uncordoned a node without proof")
	}
	// What the next steps say.
	s.schedulable("worker-03", true)
	s.patchNode("worker-04", `{"metadata":{"annotations":{"`+api.HoldersAnnotation+`":null}}}`)
	s.heals("LabelLeft worker-03")
}

func TestDoctorSeesThatTheSchedulerIsGone(t *testing.T) {
	slow(t)
	s := newSite(t, "")
	s.exits(s.drydock("doctor", "--pause", "0s"), 2, "--pause")
	run := s.readyNow("worker-01")
	s.terminateScheduler()
	report := s.doctored()
	if got := found(report); !slices.Equal(got, []string{"SchedulerMissing"}) {
		t.Logf("found %q: a worker was faster", got)
	}
	healed := s.doctored("--fix", "--yes")
	if healed.Count() > 0 {
		t.Errorf("left %+v", healed.Findings)
	}
	if holders := s.holders(); !slices.Equal(holders, []string{"worker-01"}) {
		t.Errorf("holders %v", holders)
	}
	s.done(run)
}

func TestDoctorSeesAMaintenanceOfANodeThatIsGone(t *testing.T) {
	s := newSite(t, "")
	run := s.readyNow("worker-20")
	fresh := s.deleteNode("worker-20")
	s.untilStatus(run, "waiting for the replacement", func(status api.Status) bool {
		return strings.Contains(messagesOf(status), "adopted when it registers")
	})
	if report := s.finds(); len(report.Notes) == 0 || report.Notes[0].Kind != doctor.NodeAwaited {
		t.Errorf("notes %+v", report.Notes)
	}
	s.signal(run, api.MsgFailed, nil)
	s.until(run, api.RequestorFailed)
	report := s.finds("NodeGone worker-20")
	if next := report.Findings[0].NextStep; !strings.Contains(next, "drydock cancel worker-20 --release") {
		t.Errorf("next step %q", next)
	}
	s.mustDrydock("cancel", "worker-20", "--release")
	_, _ = s.end(run)
	s.finds()
	s.createNode(fresh)
}

func messagesOf(status api.Status) string {
	var texts []string
	for _, t := range status.Transitions {
		texts = append(texts, t.Message)
	}
	return strings.Join(texts, "\n")
}

func TestOneDoctorAtATime(t *testing.T) {
	s := newSite(t, "")
	s.patchNode("worker-01", `{"metadata":{"labels":{"`+api.PhaseLabel+`":"Ready"}}}`)
	first := s.spawn("doctor", "--pause", "20s")
	s.eventually("it runs", func() error {
		described, err := s.temporal.DescribeWorkflowExecution(s.ctx, api.DoctorID(s.cluster), "")
		if err == nil && described.WorkflowExecutionInfo.CloseTime != nil {
			err = errors.New("it has ended")
		}
		return err
	})
	s.exits(s.drydock("doctor"), 1, "at work already", "LabelLeft")
	if r := first.end(); r.status != 1 {
		t.Errorf("exit status %d\n%s", r.status, r.out())
	}
	// As somebody without the command line would, with the answer in the result.
	run, err := s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{TaskQueue: api.TaskQueue(s.cluster, "drydock")},
		api.DoctorType, json.RawMessage(`{"fix":true,"by":"ann","pause":"1s"}`))
	if err != nil {
		t.Fatal(err)
	}
	var report doctor.Report
	if err := run.Get(s.ctx, &report); err != nil || report.Count() > 0 || len(report.Healed) != 1 {
		t.Errorf("%v, %+v", err, report)
	}
	for _, input := range []string{`{"fix":true}`, `{"fixx":true}`, `{"nodes":["no/node"]}`} {
		run, err := s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{TaskQueue: api.TaskQueue(s.cluster, "drydock")},
			api.DoctorType, json.RawMessage(input))
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Get(s.ctx, nil); err == nil || !strings.Contains(err.Error(), api.ErrorInvalidSpec) {
			t.Errorf("%s: %v", input, err)
		}
	}
}
