package e2e

import (
	"fmt"
	"slices"
	"testing"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/api"
)

// TestWhatGoesOnForLongGoesOnInNewRuns: a history that is long enough is left behind, by a maintenance that waits as by the
// scheduler, and nothing is lost with it.
func TestWhatGoesOnForLongGoesOnInNewRuns(t *testing.T) {
	s := newSite(t, "")
	before := s.imprints()
	run := s.readyNow("worker-01")
	var floods errgroup.Group
	floods.Go(func() error { return s.flood(run.GetID(), api.MsgRetryNow, api.Message{By: "e2e"}) })
	floods.Go(func() error {
		return s.flood(s.schedulerID(), api.SignalSlotRelease, api.SlotRelease{RequestID: run.GetRunID() + "/7"})
	})
	if err := floods.Wait(); err != nil {
		s.Fatal(err)
	}
	now := s.temporal.GetWorkflow(s.ctx, run.GetID(), "")
	if status := s.mustStatus(now); status.Phase != api.Ready || status.RunID != run.GetRunID() {
		s.Errorf("phase %s of run %s", status.Phase, status.RunID)
	}
	if holders := s.holders(); !slices.Equal(holders, []string{"worker-01"}) {
		s.Errorf("holders %v", holders)
	}
	s.mustDrydock("done", "worker-01", "--requestor", "ops")
	s.mustEnd(now, api.Completed)
	s.back("worker-01", before["worker-01"])
}

// flood sends a workflow a message until it goes on in a new run.
func (s *site) flood(id, name string, payload any) error {
	runOf := func() (string, error) {
		described, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
		return described.GetWorkflowExecutionInfo().GetExecution().GetRunId(), err
	}
	first, err := runOf()
	for now := first; err == nil && now == first; now, err = runOf() {
		var burst errgroup.Group
		for range 8 {
			burst.Go(func() error {
				for range 10 {
					if err := s.temporal.SignalWorkflow(s.ctx, id, "", name, payload); err != nil {
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
	s := newSite(t, `
hooks:
  stuck: {http: {url: "http://127.0.0.1:9/"}, deadline: 10m}
checks:
  stuck: {http: {url: "http://127.0.0.1:9/"}}
`)
	before := s.imprints()
	run := s.beginWith("worker-01", `"hooks":{"beforeCordon":["stuck"]},"validation":{"checks":["stuck"]}`)
	s.untilStatus(run, "its hook is open", func(status api.Status) bool { return slices.Equal(status.OpenHooks, []string{"stuck"}) })
	// A workflow task after that of the grant, to be reset to.
	length := s.historyLength(run)
	s.signalAnyRun(run, api.MsgRetryNow, api.Message{By: "e2e"})
	s.eventually("the message is read", func() error {
		if now := s.historyLength(run); now < length+4 {
			return fmt.Errorf("the history has %d events, and had %d", now, length)
		}
		return nil
	})
	now := s.reset(run)
	s.untilStatus(now, "its hook is open again", func(status api.Status) bool { return slices.Equal(status.OpenHooks, []string{"stuck"}) })
	s.mustDrydock("skip-hook", "worker-01", "stuck", "--requestor", "ops", "--comment", "nobody there")
	s.until(now, api.Ready)
	s.mustDrydock("done", "worker-01", "--requestor", "ops")
	s.until(now, api.Validating)
	s.untilStatus(now, "the check is tried", func(status api.Status) bool {
		return status.Validation != nil && len(status.Validation.Results) > 0
	})
	s.mustDrydock("cancel", "worker-01", "--requestor", "ops", "--release", "--comment", "enough")
	s.mustEnd(now, api.Cancelled)
	s.back("worker-01", before["worker-01"])
}

func (s *site) historyLength(run client.WorkflowRun) int64 {
	s.Helper()
	described, err := s.temporal.DescribeWorkflowExecution(s.ctx, run.GetID(), "")
	if err != nil {
		s.Fatal(err)
	}
	return described.WorkflowExecutionInfo.HistoryLength
}
