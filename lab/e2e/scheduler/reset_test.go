package scheduler

import (
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestAResetOfAReadyMaintenanceChangesNothing(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprints()
	run := s.ReadyNow("worker-01")
	now := run
	for range 2 {
		now = s.Reset(run)
		s.MarkedBy("worker-01", now.GetRunID())
		s.Until(now, api.Ready)
		status := s.MustStatus(now)
		if status.RunID != run.GetRunID() || !s.Node("worker-01").Spec.Unschedulable {
			s.Errorf("run %s, unschedulable %v", status.RunID, s.Node("worker-01").Spec.Unschedulable)
		}
	}
	if holders := s.Holders(); len(holders) != 1 {
		s.Errorf("holders %v", holders)
	}
	s.MustDrydock("done", "worker-01", "--requestor", "ops")
	s.MustEnd(now, api.Completed)
	s.Back("worker-01", before["worker-01"])
	s.Eventually("no slot is held", func() error {
		if holders := s.Holders(); len(holders) != 0 {
			return fmt.Errorf("%v", holders)
		}
		return nil
	})
}

func TestAResetAfterTheEndAsksForTheSlotAnew(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprints()
	run := s.ReadyNow("worker-01")
	s.Done(run)
	s.Back("worker-01", before["worker-01"])
	other := s.Start("worker-01", "net", `{"node":"worker-01","requestor":"net"}`)
	s.Until(other, api.Ready)
	// Back to Ready, without the word that it is done: the node is another's by now.
	var ready int64
	history := s.Temporal.GetWorkflowHistory(s.Ctx, run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var last int64
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			s.Fatal(err)
		}
		switch event.GetEventType() {
		case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			last = event.GetEventId()
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
			if event.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == api.MsgDone {
				ready = last
			}
		}
	}
	again := s.ResetTo(run, ready, false)
	s.UntilStatus(again, "asks anew", func(status api.Status) bool {
		return status.Phase == api.Pending && strings.Contains(messagesOf(status), "does not know its slot")
	})
	if mark := s.MarkOf("worker-01"); len(mark.Holders) != 1 || mark.Holders[0].Requestor != "net" {
		s.Errorf("mark %+v", mark)
	}
	s.Done(other)
	s.Until(again, api.Ready)
	if mark := s.MarkOf("worker-01"); len(mark.Holders) != 1 || mark.Holders[0].Requestor != "ops" {
		s.Errorf("mark %+v", mark)
	}
	s.Done(again)
	s.Back("worker-01", before["worker-01"])
}
