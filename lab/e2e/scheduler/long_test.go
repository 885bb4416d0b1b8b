package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// TestWhatGoesOnForLongGoesOnInNewRuns: a history that is long enough is left behind, by a maintenance that waits as by the
// scheduler, and nothing is lost with it.
func TestWhatGoesOnForLongGoesOnInNewRuns(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprints()
	run := s.ReadyNow("worker-01")
	var floods errgroup.Group
	floods.Go(func() error { return flood(s, run.GetID(), api.MsgRetryNow, api.Message{By: "e2e"}) })
	floods.Go(func() error {
		return flood(s, s.SchedulerID(), api.SignalSlotRelease, api.SlotRelease{RequestID: run.GetRunID() + "/7"})
	})
	if err := floods.Wait(); err != nil {
		s.Fatal(err)
	}
	now := s.Temporal.GetWorkflow(s.Ctx, run.GetID(), "")
	if status := s.MustStatus(now); status.Phase != api.Ready || status.RunID != run.GetRunID() {
		s.Errorf("phase %s of run %s", status.Phase, status.RunID)
	}
	if holders := s.Holders(); !slices.Equal(holders, []string{"worker-01"}) {
		s.Errorf("holders %v", holders)
	}
	s.MustDrydock("done", "worker-01", "--requestor", "ops")
	s.MustEnd(now, api.Completed)
	s.Back("worker-01", before["worker-01"])
}

// flood sends a workflow a message until it goes on in a new run.
func flood(s *site.Site, id, name string, payload any) error {
	runOf := func() (string, error) {
		described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, id, "")
		return described.GetWorkflowExecutionInfo().GetExecution().GetRunId(), err
	}
	first, err := runOf()
	for now := first; err == nil && now == first; now, err = runOf() {
		var burst errgroup.Group
		for range 8 {
			burst.Go(func() error {
				for range 10 {
					if err := s.Temporal.SignalWorkflow(s.Ctx, id, "", name, payload); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := burst.Wait(); err != nil {
			return err
		}
	}
	return err
}

// TestWhatIsTakenBackLeavesNothingBehind: a hook that is skipped and checks of a validation that somebody ended may have left
// Jobs, which are looked for. A maintenance that is reset before it holds its node asks for its slot first.
func TestWhatIsTakenBackLeavesNothingBehind(t *testing.T) {
	s := site.New(t, `
hooks:
  stuck: {http: {url: "http://127.0.0.1:9/"}, deadline: 10m}
checks:
  stuck: {http: {url: "http://127.0.0.1:9/"}}
`)
	before := s.Imprints()
	run := s.BeginWith("worker-01", `"hooks":{"beforeCordon":["stuck"]},"validation":{"checks":["stuck"]}`)
	s.UntilStatus(run, "its hook is open", func(status api.Status) bool { return slices.Equal(status.OpenHooks, []string{"stuck"}) })
	// A workflow task after that of the grant, to be reset to.
	length := historyLength(s, run)
	s.SignalAnyRun(run, api.MsgRetryNow, api.Message{By: "e2e"})
	s.Eventually("the message is read", func() error {
		if now := historyLength(s, run); now < length+4 {
			return fmt.Errorf("the history has %d events, and had %d", now, length)
		}
		return nil
	})
	now := s.Reset(run)
	s.UntilStatus(now, "its hook is open again", func(status api.Status) bool { return slices.Equal(status.OpenHooks, []string{"stuck"}) })
	s.MustDrydock("hook", "skip", "worker-01", "stuck", "--requestor", "ops", "--comment", "nobody there")
	s.Until(now, api.Ready)
	s.MustDrydock("done", "worker-01", "--requestor", "ops")
	s.Until(now, api.Validating)
	s.UntilStatus(now, "the check is tried", func(status api.Status) bool {
		return status.Validation != nil && len(status.Validation.Results) > 0
	})
	s.MustDrydock("cancel", "worker-01", "--requestor", "ops", "--release", "--comment", "enough")
	s.MustEnd(now, api.Cancelled)
	s.Back("worker-01", before["worker-01"])
}

func historyLength(s *site.Site, run client.WorkflowRun) int64 {
	s.Helper()
	described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, run.GetID(), "")
	if err != nil {
		s.Fatal(err)
	}
	return described.WorkflowExecutionInfo.HistoryLength
}
