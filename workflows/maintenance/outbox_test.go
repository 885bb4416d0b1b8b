package maintenance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/workflows/maintenance"
	"drydock.dev/drydock/workflows/workflowtest"
)

// squatting runs the maintenance in a world where something else has taken workflow IDs.
func squatting(t *testing.T, s *workflowtest.Site, ids ...string) api.Status {
	t.Helper()
	squat := func(ctx workflow.Context) error { return workflow.Sleep(ctx, 24*time.Hour) }
	s.Env.RegisterWorkflow(squat)
	run := func(ctx workflow.Context, input converter.RawValue) (api.Result, error) {
		for _, id := range ids {
			taken := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id, ParentClosePolicy: enums.PARENT_CLOSE_POLICY_ABANDON})
			if err := workflow.ExecuteChildWorkflow(taken, squat).GetChildWorkflowExecution().Get(ctx, nil); err != nil {
				return api.Result{}, err
			}
		}
		return maintenance.NodeMaintenance(ctx, input, workflowtest.Raw(""))
	}
	s.Env.RegisterWorkflow(run)
	s.Env.ExecuteWorkflow(run, workflowtest.InputWith(nil).Payload(t))
	s.ExpectCompleted()
	return s.Status()
}

func TestAnIDThatIsTakenDoesNotSuppress(t *testing.T) {
	tells := api.NotificationID("", "oncall", workflowtest.Node, workflowtest.Requestor, workflowtest.RunID)
	keeps := api.AuditRecordID("", workflowtest.Node, workflowtest.Requestor, workflowtest.RunID)
	prepare := func(t *testing.T) *workflowtest.Site {
		s := workflowtest.New(t)
		s.Prepared.Audited = true
		s.Prepared.Channels = []notices.Channel{{Name: "oncall", RetryFor: notices.DefaultRetryFor}}
		return s.DoneAt(10 * time.Minute)
	}
	const everything = "MaintenanceUnknown MaintenanceScheduled MaintenanceStarted ObjectsDrained MaintenanceEnded MaintenanceComplete"
	t.Run("by something else", func(t *testing.T) {
		s := prepare(t)
		status := squatting(t, s, tells, keeps, keeps+"/2")
		if got := delivered(s); got != everything || s.Count("KeepRecord") != 1 {
			t.Errorf("delivered %s, and %d records", got, s.Count("KeepRecord"))
		}
		if got := strings.Join(status.Occupied, "\n"); strings.Count(got, "taken by another workflow") != 3 || !strings.Contains(got, keeps+"/2: ") {
			t.Errorf("occupied %q", got)
		}
		if r := api.RecordOf(status, ""); len(r.Occupied) != 3 {
			t.Errorf("the record has %q", r.Occupied)
		}
		if in := workflowtest.InputOf[delivery.SameInput](s, "Same", 0); in.WorkflowID != tells || in.Channel != "oncall" || in.Maintenance.RunID != workflowtest.RunID || in.WorkflowType != api.NotificationType {
			t.Errorf("asked %+v", in)
		}
	})
	t.Run("by what does the same", func(t *testing.T) {
		s := prepare(t)
		s.Answer("Same", workflowtest.Reply{Value: true}, workflowtest.Reply{Value: true})
		status := squatting(t, s, tells, keeps)
		if len(status.Occupied) != 0 || s.Count("KeepRecord") != 0 || s.Count("Deliver") != 0 {
			t.Errorf("occupied %q, did %v", status.Occupied, s.Log)
		}
		for _, c := range status.Channels {
			if c.Outcome != "handed over" {
				t.Errorf("channel %+v", c)
			}
		}
	})
	t.Run("every one", func(t *testing.T) {
		s := prepare(t)
		all := []string{keeps}
		for n := 2; n <= 5; n++ {
			all = append(all, fmt.Sprintf("%s/%d", keeps, n))
		}
		status := squatting(t, s, all...)
		if got := strings.Join(status.Occupied, "\n"); !strings.Contains(got, "the audit record is not kept: ") || s.Count("KeepRecord") != 0 || s.Count("Same") != 5 {
			t.Errorf("occupied %q, did %v", got, s.Log)
		}
	})
}

func TestSignalsToAChannelSayNothingButThatThereIsNews(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Channels = []notices.Channel{{Name: "oncall", RetryFor: notices.DefaultRetryFor}}
	s.DoneAt(10 * time.Minute)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"reason": "firmware"}))
	s.ExpectCompleted()
	for i, state := range status.States {
		if state.Phase == "" || state.ID != api.EventID(status.WorkflowID, status.RunID, state.Moment()) {
			t.Errorf("state %d is %+v", i, state)
		}
	}
	if got := strings.Join(status.Tells, " "); got != "oncall" || len(status.Channels) != len(status.States) {
		t.Errorf("it tells %q: %+v", got, status.Channels)
	}
	// Each look tells all that is new by then.
	if reads := s.Count("ReadEvents"); reads > len(status.States) {
		t.Errorf("%d states were read %d times", len(status.States), reads)
	}
}
