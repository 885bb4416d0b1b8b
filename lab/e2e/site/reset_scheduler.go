package site

import (
	"drydock.dev/drydock/lab/world"
)

// ResetWorkflow resets the present run of a workflow to a task so many percent into its history.
func (s *Site) ResetWorkflow(id string, percent int) {
	s.Helper()
	described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, id, "")
	if err != nil {
		s.Fatal(err)
	}
	run := described.WorkflowExecutionInfo.Execution.RunId
	tasks, err := world.Tasks(s.Ctx, s.Temporal, id, run)
	if err != nil {
		s.Fatal(err)
	}
	to := tasks[(len(tasks)-1)*percent/100]
	if _, err := world.Reset(s.Ctx, s.Temporal, id, run, to); err != nil {
		s.Fatal(err)
	}
	s.Logf("%s was reset to event %d of %d tasks", id, to, len(tasks))
}
