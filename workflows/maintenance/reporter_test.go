package maintenance_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/maintenance"
	"drydock.dev/drydock/workflows/workflowtest"
)

// toCaller is the input of a maintenance that reports to a workflow.
func toCaller() workflowtest.Input {
	return workflowtest.InputWith(workflowtest.Input{"reportTo": spec.ReportTo{Workflow: "rollout", Signal: "node-report"}})
}

// reportsTo are the phases that a workflow was told, with the IDs of what was asked.
func reportsTo(s *workflowtest.Site, workflow string) (phases []string) {
	for _, r := range s.Reports[workflow] {
		phases = append(phases, strings.TrimSuffix(string(r.Phase)+" "+r.Answers, " "))
	}
	return phases
}

func TestAMaintenanceReportsWhatItsCallerHasToKnow(t *testing.T) {
	s := workflowtest.New(t)
	s.SignalAt(10*time.Minute, api.MsgFailed, api.FailedMessage{Reason: "no link"})
	s.SignalAt(20*time.Minute, api.MsgRetry, nil)
	s.DoneAt(30 * time.Minute)
	status := s.Run(toCaller())
	s.ExpectCompleted()
	if got, want := reportsTo(s, "rollout"), []string{"Ready", "RequestorFailed", "Ready", "Releasing", "Completed"}; !slices.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
	for _, r := range s.Reports["rollout"] {
		if r.Node != status.Spec.Node || r.RunID == "" || r.WorkflowID != status.WorkflowID || r.Since.IsZero() {
			t.Errorf("reported %+v", r)
		}
		if r.Phase == api.RequestorFailed && r.Message != "no link" {
			t.Errorf("reported the failure %q", r.Message)
		}
	}
}

func TestAReportIsSentOnRequest(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{After: 20 * time.Minute})
	ask := func(workflow, id string, replace bool) api.ReportTo {
		return api.ReportTo{Message: api.Message{ID: id}, Workflow: workflow, Signal: "report", Replace: replace}
	}
	s.SignalAt(5*time.Minute, api.MsgReportTo, ask("mine", "a", false))
	s.SignalAt(6*time.Minute, api.MsgReportTo, ask("other", "b", false))
	s.SignalAt(7*time.Minute, api.MsgReportTo, ask("mine", "c", false))
	s.SignalAt(30*time.Minute, api.MsgReportTo, ask("other", "d", true))
	taken, refused := s.UpdateAt(31*time.Minute, api.MsgReportTo, ask("other", "e", false)), s.UpdateAt(32*time.Minute, api.MsgReportTo, ask("mine", "f", false))
	s.DoneAt(40 * time.Minute)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if got, want := reportsTo(s, "mine"), []string{"Draining a", "Draining c", "Ready"}; !slices.Equal(got, want) {
		t.Errorf("told mine %v, want %v", got, want)
	}
	if got, want := reportsTo(s, "other"), []string{"Ready d", "Ready e"}; len(got) < 3 || !slices.Equal(got[:2], want) || got[len(got)-1] != "Completed" {
		t.Errorf("told other %v, want %v and the end", got, want)
	}
	if !taken.Accepted || refused.Rejected == nil || !strings.Contains(refused.Rejected.Error(), "it reports to workflow other") {
		t.Errorf("the updates: %+v, %+v", taken, refused)
	}
}

func TestAMaintenanceDoesNotReportToWhoHasEnded(t *testing.T) {
	s := workflowtest.New(t)
	s.ReportsFail = errors.New("no such workflow")
	s.SignalAt(20*time.Minute, api.MsgReportTo, api.ReportTo{Message: api.Message{ID: "a"}, Workflow: "next", Signal: "report"})
	s.CheckAt(15*time.Minute, func(status api.Status) {
		if status.ReportsTo != nil {
			t.Errorf("it reports to %+v", status.ReportsTo)
		}
		s.ReportsFail = nil
	})
	s.DoneAt(30 * time.Minute)
	status := s.Run(toCaller())
	s.ExpectCompleted()
	if got := reportsTo(s, "rollout"); len(got) != 1 {
		t.Errorf("signalled the one that has ended %d times", len(got))
	}
	if got := reportsTo(s, "next"); len(got) < 2 || got[0] != "Ready a" || got[len(got)-1] != "Completed" {
		t.Errorf("told the next %v", got)
	}
	if !slices.ContainsFunc(status.Transitions, func(t api.Transition) bool {
		return strings.Contains(t.Message, "does not report to workflow rollout any more")
	}) {
		t.Error("nothing says that it does not report any more")
	}
}

func TestANewRunGoesOnReporting(t *testing.T) {
	s := workflowtest.New(t).ContinueAt(20 * time.Minute)
	s.SignalAt(5*time.Minute, api.MsgReportTo, api.ReportTo{Message: api.Message{ID: "a"}, Workflow: "mine", Signal: "report"})
	s.DoneAt(30 * time.Minute)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if got := reportsTo(s, "mine"); s.Runs != 2 || got[len(got)-1] != "Completed" || len(got) > 4 {
		t.Errorf("%d runs told it %v", s.Runs, got)
	}
}

func TestItReportsToNobodyWhoseNamesAreWrong(t *testing.T) {
	for want, to := range map[string]map[string]any{
		"reportTo.workflow: must not be empty":         {"workflow": "", "signal": "a"},
		"reportTo.signal: must not be empty":           {"workflow": "a", "signal": ""},
		`reportTo.signal: "done" is one of Drydock's`:  {"workflow": "a", "signal": "done"},
		`reportTo.signal: "slot-granted" is one`:       {"workflow": "a", "signal": "slot-granted"},
		`reportTo.signal: "__temporal_x": such names`:  {"workflow": "a", "signal": "__temporal_x"},
		"reportTo.workflow: has 1001 bytes: at most":   {"workflow": strings.Repeat("a", 1001), "signal": "b"},
		"reportTo.signal: \"a\\u202e\" has characters": {"workflow": "a", "signal": "a\u202e"},
		"reportTo.namespace: unknown field":            {"workflow": "a", "signal": "b", "namespace": "c"},
	} {
		s := workflowtest.New(t)
		s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, workflowtest.InputWith(workflowtest.Input{"reportTo": to}).Payload(t), workflowtest.Raw(""))
		s.ExpectFailure(api.ErrorInvalidSpec, want)
		if len(s.Reports) > 0 {
			t.Errorf("%s: reported %v", want, s.Reports)
		}
	}
}
