package site

import (
	"go.temporal.io/sdk/client"
)

// SignalAnyRun addresses a workflow ID without a run, as scripts do.
func (s *Site) SignalAnyRun(run client.WorkflowRun, name string, payload any) {
	s.Helper()
	if err := s.Temporal.SignalWorkflow(s.Ctx, run.GetID(), "", name, payload); err != nil {
		s.Fatal(err)
	}
}
