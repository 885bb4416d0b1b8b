package site

import (
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/world"
)

// Reset resets a workflow to its last completed workflow task, as `temporal workflow reset --type LastWorkflowTask` does,
// with the signals that came after it, and returns the new run.
func (s *Site) Reset(run client.WorkflowRun) client.WorkflowRun {
	s.Helper()
	return s.ResetTo(run, s.LastTask(run.GetID()), true)
}

// FirstTask waits for the first completed workflow task of a workflow's present run.
func (s *Site) FirstTask(id string) (first int64) {
	s.Helper()
	s.Eventually(id+" has completed a workflow task", func() error {
		tasks, err := world.Tasks(s.Ctx, s.Temporal, id, "")
		if err == nil {
			first = tasks[0]
		}
		return err
	})
	return first
}

// LastTask is the last completed workflow task of a workflow's present run.
func (s *Site) LastTask(id string) int64 {
	s.Helper()
	tasks, err := world.Tasks(s.Ctx, s.Temporal, id, "")
	s.NoError(err)
	return tasks[len(tasks)-1]
}

// ResetTo resets a workflow to a workflow task, with or without the messages that came after it, and returns the new run.
func (s *Site) ResetTo(run client.WorkflowRun, event int64, keep bool) client.WorkflowRun {
	s.Helper()
	request := &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetID()},
		Reason: "a test", WorkflowTaskFinishEventId: event, RequestId: fmt.Sprint(event, keep),
	}
	if !keep {
		request.ResetReapplyExcludeTypes = []enums.ResetReapplyExcludeType{enums.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL, enums.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE}
	}
	answer, err := s.Temporal.ResetWorkflowExecution(s.Ctx, request)
	s.NoError(err)
	return s.Temporal.GetWorkflow(s.Ctx, run.GetID(), answer.GetRunId())
}

// MarkOf is the mark of a node.
func (s *Site) MarkOf(node string) k8s.Mark {
	s.Helper()
	mark, err := k8s.MarkOf(s.Node(node))
	s.NoError(err)
	return mark
}

// MarkedBy waits until the node's mark names a run.
func (s *Site) MarkedBy(node, run string) {
	s.Helper()
	s.Eventually("the mark of "+node+" names run "+run, func() error {
		for _, h := range s.MarkOf(node).Holders {
			if h.Run == run {
				return nil
			}
		}
		return errors.New(s.Node(node).Annotations[api.HoldersAnnotation])
	})
}

// ResetWorkflow resets the present run of a workflow to a task so many percent into its history.
func (s *Site) ResetWorkflow(id string, percent int) {
	s.Helper()
	described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, id, "")
	s.NoError(err)
	run := described.WorkflowExecutionInfo.Execution.RunId
	tasks, err := world.Tasks(s.Ctx, s.Temporal, id, run)
	s.NoError(err)
	to := tasks[(len(tasks)-1)*percent/100]
	_, err = world.Reset(s.Ctx, s.Temporal, id, run, to)
	s.NoError(err)
	s.Logf("%s was reset to event %d of %d tasks", id, to, len(tasks))
}
