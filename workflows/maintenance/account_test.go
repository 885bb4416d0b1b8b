package maintenance_test

import (
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

// Who started a maintenance, and when, is its first run's to know: the later ones are started by a worker.
func TestStarterAndBeginningAreCarriedFromRunToRun(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Starter = &api.Sender{Identity: "ann@desk"}
	began := s.Env.Now()
	s.ContinueAt(20 * time.Minute)
	s.ContinueAt(40 * time.Minute)
	s.DoneAt(50 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	result := s.ExpectCompleted()
	if s.Runs != 3 || status.Starter == nil || status.Starter.Identity != "ann@desk" {
		t.Errorf("after %d runs %+v started it", s.Runs, status.Starter)
	}
	if !status.CreatedAt.Equal(began) || !result.CreatedAt.Equal(began) {
		t.Errorf("it began at %s, and says %s and %s", began, status.CreatedAt, result.CreatedAt)
	}
	r := api.RecordOf(status, "")
	if !r.CreatedAt.Equal(began) || r.Starter == nil || r.Starter.Identity != "ann@desk" {
		t.Errorf("its record: %s, %+v", r.CreatedAt, r.Starter)
	}
}

func TestAnApprovalWithoutANameHasItsSender(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("JudgeApproval", judged(0, "", ""))
	s.SignalAt(time.Minute, api.MsgApprove, nil)
	s.DoneAt(time.Hour)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"approval": true}))
	s.ExpectCompleted()
	if got := status.Approval.Who(); got != "unknown (identity 7@host@)" {
		t.Errorf("approved by %q", got)
	}
	if a := api.RecordOf(status, "").Approval; a.Identity != "7@host@" {
		t.Errorf("recorded: %+v", a)
	}
}

// A drain that is stopped before it has looked at its node knows of no pods, and not that there are none.
func TestADrainThatHasNotLookedSaysNothing(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{After: time.Minute, Value: api.DrainProgress{}})
	s.DoneAt(10 * time.Minute)
	if status := s.Run(workflowtest.InputWith(nil)); status.Drain != nil {
		t.Errorf("drain = %+v", status.Drain)
	}
}
