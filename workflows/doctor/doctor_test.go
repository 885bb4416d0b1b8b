package doctor_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	doctoractivity "drydock.dev/drydock/activities/doctor"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/schedule"
	workflow "drydock.dev/drydock/workflows/doctor"
	"drydock.dev/drydock/workflows/workflowtest"
)

var (
	deadMark = doctor.Finding{Kind: doctor.MarkDead, Node: "n1", WorkflowID: workflowtest.ID, RunID: "dead", Text: "held by nobody", Fix: doctor.ReleaseMark}
	deadSlot = doctor.Finding{Kind: doctor.SlotDead, Node: "n1", WorkflowID: workflowtest.ID, RunID: "dead", RequestID: "dead/1", Fix: doctor.ReleaseSlot}
	byHand   = doctor.Finding{Kind: doctor.CordonUnowned, Node: "n2", NextStep: "kubectl uncordon n2"}
)

func looked(findings ...doctor.Finding) workflowtest.Reply {
	return workflowtest.Reply{Value: doctor.Evaluation{Findings: findings}}
}

// doctored runs a doctor whose evaluations find one after the other what is given, and then nothing.
func doctored(t *testing.T, in string, evaluations ...workflowtest.Reply) (*workflowtest.Site, doctor.Report) {
	t.Helper()
	s := workflowtest.NewAs(t, "anything", api.TaskQueue("prod", "drydock"))
	workflowtest.Serve[doctoractivity.EvaluateInput](s, "Look", doctor.Evaluation{})
	workflowtest.Serve[doctoractivity.HealInput](s, "Heal", "did it")
	s.Answer("Look", evaluations...)
	s.Env.ExecuteWorkflow(workflow.Doctor, workflowtest.Raw(in))
	var report doctor.Report
	if err := errors.Join(s.Env.GetWorkflowError(), s.Env.GetWorkflowResult(&report)); err != nil {
		t.Fatal(err)
	}
	return s, report
}

func TestAHealthySiteIsLookedAtOnce(t *testing.T) {
	s, report := doctored(t, ``)
	s.ExpectLog("Look")
	if report.Count() > 0 || report.Findings == nil {
		t.Errorf("%+v", report)
	}
	in := workflowtest.InputOf[doctoractivity.EvaluateInput](s, "Look", 0)
	if in.Maintenances != "prod/node-maintenance/" || in.Scheduler != "prod/drydock-scheduler" || in.Listed.TaskQueue != "prod/drydock" || in.Runs != nil {
		t.Errorf("it was asked for %+v", in)
	}
}

func TestOnlyWhatTwoLooksFindIsReported(t *testing.T) {
	passing := deadMark
	passing.RunID = "passing"
	s, report := doctored(t, `{"nodes":["n1","n2"],"pause":"30s"}`, looked(passing, deadMark, byHand), looked(deadMark, byHand, deadSlot))
	s.ExpectLog("Look", "Look")
	if len(report.Findings) != 2 || report.Findings[0].RunID != "dead" || report.Findings[1].Node != "n2" || report.Fixable() != 1 {
		t.Errorf("%+v", report.Findings)
	}
	again := workflowtest.InputOf[doctoractivity.EvaluateInput](s, "Look", 1)
	if !slices.Equal(again.Runs, []string{"", "dead", "passing"}) || !slices.Equal(again.Nodes, []string{"n1", "n2"}) {
		t.Errorf("the second look was for %+v", again)
	}
}

func TestWhatCanBeHealedIsHealedOneByOne(t *testing.T) {
	s, report := doctored(t, `{"fix":true,"by":"ann","comment":"4711"}`,
		looked(deadMark, deadSlot, byHand), looked(deadMark, deadSlot, byHand), looked(byHand), looked(byHand))
	s.ExpectLog("Look", "Look", "Heal", "Heal", "Look", "Look")
	if len(report.Findings) != 1 || report.Findings[0].Node != "n2" || len(report.Healed) != 2 || report.Healed[0].Tried != "did it" {
		t.Errorf("%+v", report)
	}
	in := workflowtest.InputOf[doctoractivity.HealInput](s, "Heal", 1)
	if in.Finding.RequestID != "dead/1" || in.By != "ann" || in.Comment != "4711" || in.SignalRelease != api.SignalSlotRelease {
		t.Errorf("it was asked for %+v", in)
	}
}

func TestWhatCannotBeHealedIsTriedOnce(t *testing.T) {
	s := workflowtest.NewAs(t, "anything", api.DefaultTaskQueue)
	workflowtest.Serve[doctoractivity.EvaluateInput](s, "Look", doctor.Evaluation{Findings: []doctor.Finding{deadMark}})
	workflowtest.Serve[doctoractivity.HealInput](s, "Heal", "did it")
	s.Answer("Heal", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorMissingPermission, "nodes patch is not allowed")})
	s.Env.ExecuteWorkflow(workflow.Doctor, workflowtest.Raw(`{"fix":true,"by":"ann"}`))
	var report doctor.Report
	if err := errors.Join(s.Env.GetWorkflowError(), s.Env.GetWorkflowResult(&report)); err != nil {
		t.Fatal(err)
	}
	s.ExpectLog("Look", "Look", "Heal", "Look", "Look")
	if len(report.Findings) != 1 || len(report.Healed) > 0 || report.Findings[0].Tried != "failed: nodes patch is not allowed" {
		t.Errorf("%+v", report)
	}
}

func TestWhatAFixBringsToLightIsHealedToo(t *testing.T) {
	missing := doctor.Finding{Kind: doctor.SchedulerMissing, Fix: doctor.AwaitScheduler}
	s, report := doctored(t, `{"fix":true,"by":"ann"}`, looked(missing), looked(missing), looked(deadSlot), looked(deadSlot))
	s.ExpectLog("Look", "Look", "Heal", "Look", "Look", "Heal", "Look")
	if report.Count() > 0 || len(report.Healed) != 2 {
		t.Errorf("%+v", report)
	}
}

func TestADoctorsInputIsStrict(t *testing.T) {
	for in, says := range map[string]string{
		`{"fixx":true}`:        "fixx",
		`{"fix":true}`:         "by: say who",
		`{"nodes":["a/b"]}`:    "nodes[0]",
		`{"lost":["a b"]}`:     "lost[0]",
		`{"pause":5}`:          "pause",
		`{"fix":null}`:         "null",
		`[]`:                   "object",
		`{"by":"x","fix":"y"}`: "fix",
	} {
		s := workflowtest.NewAs(t, "anything", api.DefaultTaskQueue)
		s.Env.ExecuteWorkflow(workflow.Doctor, workflowtest.Raw(in))
		s.ExpectFailure(api.ErrorInvalidSpec, says)
		s.ExpectLog()
	}
}

// What a doctor reads of the scheduler's state and of a slot are a few of the fields under the same names.
func TestADoctorUnderstandsWhatTheSchedulerSays(t *testing.T) {
	at := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	holder, err := json.Marshal(api.Holder{Grant: schedule.Grant{RequestID: "r/1", Node: "n1", Requestor: "ops"}, RunID: "r", GrantedAt: at})
	if err != nil {
		t.Fatal(err)
	}
	pending, err := json.Marshal(api.PendingRequest{SlotRequest: api.SlotRequest{RunID: "r", Request: schedule.Request{ID: "r/1", Node: "n1", Requestor: "ops", Created: at}}})
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
