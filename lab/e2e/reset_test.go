package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/world"
)

// reset resets a workflow to its last completed workflow task, as `temporal workflow reset --type LastWorkflowTask` does,
// with the signals that came after it, and returns the new run.
func (s *site) reset(run client.WorkflowRun) client.WorkflowRun {
	s.Helper()
	return s.resetTo(run, s.lastTask(run.GetID()), true)
}

// firstTask waits for the first completed workflow task of a workflow's present run.
func (s *site) firstTask(id string) (first int64) {
	s.Helper()
	s.eventually(id+" has completed a workflow task", func() error {
		history := s.temporal.GetWorkflowHistory(s.ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			if err != nil {
				return err
			}
			if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				first = event.GetEventId()
				return nil
			}
		}
		return errors.New("it has not")
	})
	return first
}

// lastTask is the last completed workflow task of a workflow's present run.
func (s *site) lastTask(id string) int64 {
	s.Helper()
	tasks, err := world.Tasks(s.ctx, s.temporal, id, "")
	if err != nil {
		s.Fatal(err)
	}
	return tasks[len(tasks)-1]
}

func (s *site) resetTo(run client.WorkflowRun, event int64, keep bool) client.WorkflowRun {
	s.Helper()
	request := &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetID()},
		Reason: "a test", WorkflowTaskFinishEventId: event, RequestId: fmt.Sprint(event, keep),
	}
	if !keep {
		request.ResetReapplyExcludeTypes = []enums.ResetReapplyExcludeType{enums.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL, enums.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE}
	}
	answer, err := s.temporal.ResetWorkflowExecution(s.ctx, request)
	if err != nil {
		s.Fatal(err)
	}
	return s.temporal.GetWorkflow(s.ctx, run.GetID(), answer.GetRunId())
}

func (s *site) markOf(node string) k8s.Mark {
	s.Helper()
	mark, err := k8s.MarkOf(s.node(node))
	if err != nil {
		s.Fatal(err)
	}
	return mark
}

// markedBy waits until the node's mark names a run.
func (s *site) markedBy(node, run string) {
	s.Helper()
	s.eventually("the mark of "+node+" names run "+run, func() error {
		for _, h := range s.markOf(node).Holders {
			if h.Run == run {
				return nil
			}
		}
		return errors.New(s.node(node).Annotations[api.HoldersAnnotation])
	})
}

func TestAResetOfAReadyMaintenanceChangesNothing(t *testing.T) {
	s := newSite(t, "")
	before := s.imprints()
	run := s.readyNow("worker-01")
	now := run
	for range 2 {
		now = s.reset(run)
		s.markedBy("worker-01", now.GetRunID())
		s.until(now, api.Ready)
		status := s.mustStatus(now)
		if status.RunID != run.GetRunID() || !s.node("worker-01").Spec.Unschedulable {
			s.Errorf("run %s, unschedulable %v", status.RunID, s.node("worker-01").Spec.Unschedulable)
		}
	}
	if holders := s.holders(); len(holders) != 1 {
		s.Errorf("holders %v", holders)
	}
	s.mustDrydock("done", "worker-01", "--requestor", "ops")
	s.mustEnd(now, api.Completed)
	s.back("worker-01", before["worker-01"])
	s.eventually("no slot is held", func() error {
		if holders := s.holders(); len(holders) != 0 {
			return fmt.Errorf("%v", holders)
		}
		return nil
	})
}

func TestAResetAfterTheEndAsksForTheSlotAnew(t *testing.T) {
	s := newSite(t, "")
	before := s.imprints()
	run := s.readyNow("worker-01")
	s.done(run)
	s.back("worker-01", before["worker-01"])
	other := s.start("worker-01", "net", `{"node":"worker-01","requestor":"net"}`)
	s.until(other, api.Ready)
	// Back to Ready, without the word that it is done: the node is another's by now.
	var ready int64
	history := s.temporal.GetWorkflowHistory(s.ctx, run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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
	again := s.resetTo(run, ready, false)
	s.untilStatus(again, "asks anew", func(status api.Status) bool {
		return status.Phase == api.Pending && strings.Contains(messagesOf(status), "does not know its slot")
	})
	if mark := s.markOf("worker-01"); len(mark.Holders) != 1 || mark.Holders[0].Requestor != "net" {
		s.Errorf("mark %+v", mark)
	}
	s.done(other)
	s.until(again, api.Ready)
	if mark := s.markOf("worker-01"); len(mark.Holders) != 1 || mark.Holders[0].Requestor != "ops" {
		s.Errorf("mark %+v", mark)
	}
	s.done(again)
	s.back("worker-01", before["worker-01"])
}
