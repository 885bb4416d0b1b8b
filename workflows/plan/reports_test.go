package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"

	"drydock.dev/drydock/api"
	planrules "drydock.dev/drydock/rules/plan"
)

// caller is a workflow that plans report to.
type caller struct {
	reports []api.PlanReport
	// refuses is why it takes no signal.
	refuses error
}

func (s *site) caller(workflow string) *caller {
	c := &caller{}
	s.env.OnSignalExternalWorkflow(mock.Anything, workflow, "", "report", mock.Anything).Return(func(_, _, _, _ string, arg any) error {
		if c.refuses == nil {
			c.reports = append(c.reports, arg.(api.PlanReport))
		}
		return c.refuses
	})
	return c
}

const reportingPlan = `{"nodes": ["a", "b"], "reportTo": {"workflow": "rollout", "signal": "report"}}`

func TestAPlanReportsItsEnd(t *testing.T) {
	s := newSite(t, "a", "b")
	c := s.caller("rollout")
	s.ended(reportingPlan, api.PlanCompleted, planrules.Counts{Total: 2, Done: 2})
	if len(c.reports) != 1 || c.reports[0].Phase != api.PlanCompleted || c.reports[0].Plan != "kernel" || c.reports[0].Requestor != "plan-kernel" ||
		len(c.reports[0].Maintenances) != 0 {
		t.Errorf("it reported %+v", c.reports)
	}
}

func TestAPlanEndsAlthoughNobodyHearsIt(t *testing.T) {
	s := newSite(t, "a", "b")
	c := s.caller("rollout")
	c.refuses = errors.New("it has had 10,000 signals")
	status := s.ended(reportingPlan, api.PlanCompleted, planrules.Counts{Total: 2, Done: 2})
	if last := status.Events[len(status.Events)-1].Message; !strings.Contains(last, "does not report to workflow rollout any more") {
		t.Errorf("it says %q", last)
	}
}

func TestAPlanSaysWhichMaintenancesRun(t *testing.T) {
	s := newSite(t, "a", "b")
	c := s.caller("rollout")
	s.signalAt(30*time.Second, api.MsgReportTo, api.ReportTo{Message: api.Message{ID: "q1"}, Workflow: "rollout", Signal: "report"})
	s.ended(reportingPlan, api.PlanCompleted, planrules.Counts{Total: 2, Done: 2})
	if len(c.reports) != 2 {
		t.Fatalf("it reported %+v", c.reports)
	}
	answer := c.reports[0]
	if answer.Answers != "q1" || answer.Phase != api.PlanRunning || len(answer.Maintenances) != 1 || answer.Maintenances[0].Node != "a" || answer.Maintenances[0].RunID == "" {
		t.Errorf("it answered %+v", answer)
	}
	if end := c.reports[1]; end.Answers != "" || end.Phase != api.PlanCompleted {
		t.Errorf("at the end it reported %+v", end)
	}
}

func TestAnotherWorkflowIsReportedToOnlyInPlaceOfTheFirst(t *testing.T) {
	s := newSite(t, "a", "b")
	first, other := s.caller("rollout"), s.caller("other")
	ask := api.ReportTo{Message: api.Message{ID: "q1"}, Workflow: "other", Signal: "report"}
	s.signalAt(20*time.Second, api.MsgReportTo, ask)
	s.at(30*time.Second, func() {
		messages := s.status().Messages
		if last := messages[len(messages)-1]; last.Outcome != api.Ignored || !strings.Contains(last.Effect, "it reports to workflow rollout") || len(other.reports) > 0 {
			t.Errorf("%+v, and %d reports", last, len(other.reports))
		}
	})
	ask.ID, ask.Replace = "q2", true
	s.signalAt(40*time.Second, api.MsgReportTo, ask)
	s.ended(reportingPlan, api.PlanCompleted, planrules.Counts{Total: 2, Done: 2})
	if len(first.reports) != 0 || len(other.reports) != 2 || other.reports[0].Answers != "q2" {
		t.Errorf("the first heard %+v, the other %+v", first.reports, other.reports)
	}
}

func TestAPlanReportsToNoSignalOfDrydocks(t *testing.T) {
	s := newSite(t, "a")
	s.signalAt(20*time.Second, api.MsgReportTo, api.ReportTo{Workflow: "node-maintenance/a/x", Signal: api.MsgDone})
	s.at(30*time.Second, func() {
		messages := s.status().Messages
		if last := messages[len(messages)-1]; last.Outcome != api.Ignored {
			t.Errorf("%+v", last)
		}
	})
	s.ended(`{"nodes": ["a"]}`, api.PlanCompleted, planrules.Counts{Total: 1, Done: 1})
}
