package workflows_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock/activities"
	"drydock/workflows"
	"drydock/workflows/doctor"
	"drydock/workflows/schedule"
)

var (
	deadMark = doctor.Finding{Kind: doctor.MarkDead, Node: "n1", WorkflowID: testID, RunID: "dead", Text: "held by nobody", Fix: doctor.ReleaseMark}
	deadSlot = doctor.Finding{Kind: doctor.SlotDead, Node: "n1", WorkflowID: testID, RunID: "dead", RequestID: "dead/1", Fix: doctor.ReleaseSlot}
	byHand   = doctor.Finding{Kind: doctor.CordonUnowned, Node: "n2", NextStep: "kubectl uncordon n2"}
)

func looked(findings ...doctor.Finding) reply { return reply{value: doctor.Look{Findings: findings}} }

// doctored runs a doctor whose looks find one after the other what is given, and then nothing.
func doctored(t *testing.T, in string, looks ...reply) (*site, doctor.Report) {
	t.Helper()
	s := newSiteAs(t, "anything", workflows.TaskQueue("prod", "drydock"))
	serve[activities.LookInput](s, "Look", doctor.Look{})
	serve[activities.HealInput](s, "Heal", "did it")
	s.answer("Look", looks...)
	s.env.ExecuteWorkflow(workflows.Doctor, raw(in))
	var report doctor.Report
	if err := errors.Join(s.env.GetWorkflowError(), s.env.GetWorkflowResult(&report)); err != nil {
		t.Fatal(err)
	}
	return s, report
}

func TestAHealthySiteIsLookedAtOnce(t *testing.T) {
	s, report := doctored(t, ``)
	s.expectLog("Look")
	if report.Count() > 0 || report.Findings == nil {
		t.Errorf("%+v", report)
	}
	in := inputOf[activities.LookInput](s, "Look", 0)
	if in.Maintenances != "prod/node-maintenance/" || in.Scheduler != "prod/drydock-scheduler" || in.Listed.TaskQueue != "prod/drydock" || in.Runs != nil {
		t.Errorf("it was asked for %+v", in)
	}
}

func TestOnlyWhatTwoLooksFindIsReported(t *testing.T) {
	passing := deadMark
	passing.RunID = "passing"
	s, report := doctored(t, `{"nodes":["n1","n2"],"pause":"30s"}`, looked(passing, deadMark, byHand), looked(deadMark, byHand, deadSlot))
	s.expectLog("Look", "Look")
	if len(report.Findings) != 2 || report.Findings[0].RunID != "dead" || report.Findings[1].Node != "n2" || report.Fixable() != 1 {
		t.Errorf("%+v", report.Findings)
	}
	again := inputOf[activities.LookInput](s, "Look", 1)
	if !slices.Equal(again.Runs, []string{"", "dead", "passing"}) || !slices.Equal(again.Nodes, []string{"n1", "n2"}) {
		t.Errorf("the second look was for %+v", again)
	}
}

func TestWhatCanBeHealedIsHealedOneByOne(t *testing.T) {
	s, report := doctored(t, `{"fix":true,"by":"ann","comment":"4711"}`,
		looked(deadMark, deadSlot, byHand), looked(deadMark, deadSlot, byHand), looked(byHand), looked(byHand))
	s.expectLog("Look", "Look", "Heal", "Heal", "Look", "Look")
	if len(report.Findings) != 1 || report.Findings[0].Node != "n2" || len(report.Healed) != 2 || report.Healed[0].Tried != "did it" {
		t.Errorf("%+v", report)
	}
	in := inputOf[activities.HealInput](s, "Heal", 1)
	if in.Finding.RequestID != "dead/1" || in.By != "ann" || in.Comment != "4711" || in.SignalRelease != workflows.SignalSlotRelease {
		t.Errorf("it was asked for %+v", in)
	}
}

func TestWhatCannotBeHealedIsTriedOnce(t *testing.T) {
	s := newSiteAs(t, "anything", workflows.DefaultTaskQueue)
	serve[activities.LookInput](s, "Look", doctor.Look{Findings: []doctor.Finding{deadMark}})
	serve[activities.HealInput](s, "Heal", "did it")
	s.answer("Heal", reply{err: failing(activities.ErrorMissingPermission, "nodes patch is not allowed")})
	s.env.ExecuteWorkflow(workflows.Doctor, raw(`{"fix":true,"by":"ann"}`))
	var report doctor.Report
	if err := errors.Join(s.env.GetWorkflowError(), s.env.GetWorkflowResult(&report)); err != nil {
		t.Fatal(err)
	}
	s.expectLog("Look", "Look", "Heal", "Look", "Look")
	if len(report.Findings) != 1 || len(report.Healed) > 0 || report.Findings[0].Tried != "failed: nodes patch is not allowed" {
		t.Errorf("%+v", report)
	}
}

func TestWhatAFixBringsToLightIsHealedToo(t *testing.T) {
	missing := doctor.Finding{Kind: doctor.SchedulerMissing, Fix: doctor.AwaitScheduler}
	s, report := doctored(t, `{"fix":true,"by":"ann"}`, looked(missing), looked(missing), looked(deadSlot), looked(deadSlot))
	s.expectLog("Look", "Look", "Heal", "Look", "Look", "Heal", "Look")
	if report.Count() > 0 || len(report.Healed) != 2 {
		t.Errorf("%+v", report)
	}
}

func TestADoctorsInputIsStrict(t *testing.T) {
	for in, says := range map[string]string{
		`{"fixx":true}`:        "fixx",
		`{"fix":true}`:         "by: say who",
		`{"nodes":["a/b"]}`:    "nodes[0]",
		`{"pause":5}`:          "pause",
		`{"fix":null}`:         "null",
		`[]`:                   "object",
		`{"by":"x","fix":"y"}`: "fix",
	} {
		s := newSiteAs(t, "anything", workflows.DefaultTaskQueue)
		s.env.ExecuteWorkflow(workflows.Doctor, raw(in))
		s.expectFailure(workflows.ErrorInvalidSpec, says)
		s.expectLog()
	}
}

// What a doctor reads of the scheduler's state and of a slot are a few of the fields under the same names.
func TestADoctorUnderstandsWhatTheSchedulerSays(t *testing.T) {
	at := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	holder, err := json.Marshal(workflows.Holder{Grant: schedule.Grant{RequestID: "r/1", Node: "n1", Requestor: "ops"}, RunID: "r", GrantedAt: at})
	if err != nil {
		t.Fatal(err)
	}
	pending, err := json.Marshal(workflows.PendingRequest{SlotRequest: workflows.SlotRequest{RunID: "r", Request: schedule.Request{ID: "r/1", Node: "n1", Requestor: "ops", Created: at}}})
	if err != nil {
		t.Fatal(err)
	}
	var held, waits doctor.Slot
	if err := errors.Join(json.Unmarshal(holder, &held), json.Unmarshal(pending, &waits)); err != nil {
		t.Fatal(err)
	}
	if held != (doctor.Slot{RequestID: "r/1", Node: "n1", Requestor: "ops", RunID: "r", GrantedAt: at}) ||
		waits != (doctor.Slot{ID: "r/1", Node: "n1", Requestor: "ops", RunID: "r", Created: at}) {
		t.Errorf("%+v, %+v", held, waits)
	}
}

func TestADoctorsReleaseIsOnRecord(t *testing.T) {
	f := newFleet(t, 1)
	f.state.Holders = []workflows.Holder{{Grant: schedule.Grant{RequestID: "x", Node: "n1", Requestor: "ghost"}, RunID: "ghost"}}
	f.at(time.Second, func() {
		f.signal(workflows.SignalSlotRelease, workflows.SlotRelease{RequestID: "x", By: "ann", Why: "nobody has it"})
	})
	f.at(2*time.Second, func() {
		state := f.stateNow()
		if len(state.Holders) > 0 || !slices.ContainsFunc(state.Decisions, func(d workflows.RecordedDecision) bool {
			return d.By == "ann" && strings.Contains(d.What, "x") && d.Why == "nobody has it"
		}) {
			t.Errorf("%+v", state)
		}
	})
	f.run(3 * time.Second)
}
