package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/workflows/workflowtest"
)

// restored is what HoldNode answers where the node tells of a release that Temporal does not know.
var restored = workflowtest.Reply{Err: temporal.NewNonRetryableApplicationError(
	"node worker-01: it gave it back, and Temporal does not know of that", api.ErrorRestored, nil)}

func TestARestoredMaintenanceWaitsForSomebodysWord(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("HoldNode", restored, restored, restored)
	s.At(20*time.Second, func() {
		if status := s.Status(); status.Phase != api.Cordoning || !strings.Contains(status.WaitingFor, "somebody's word: node worker-01: it gave it back") {
			t.Errorf("%s waits for %q", status.Phase, status.WaitingFor)
		}
		if s.Count("Drain") > 0 {
			t.Error("it goes on")
		}
	})
	s.DoneAt(time.Hour)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if got := s.Count("HoldNode"); got != 4 || status.Phase != api.Completed {
		t.Errorf("%d holds, %s:\n%s", got, status.Phase, workflowtest.MessagesOf(status))
	}
}

func TestARestoredMaintenanceCallsItsHooksOnceItMayGoOn(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Hooks = []validation.Hook{hookPlan("silence", closing)}
	s.Answer("CheckReleases", restored, restored)
	s.At(20*time.Second, func() {
		if status := s.Status(); status.Phase != api.Scheduled || !strings.Contains(status.WaitingFor, "somebody's word: node worker-01: it gave it back") {
			t.Errorf("%s waits for %q", status.Phase, status.WaitingFor)
		}
		if s.Count("CallHook") > 0 || s.Count("HoldNode") > 0 {
			t.Errorf("it did %v", s.Log)
		}
	})
	s.DoneAt(time.Hour)
	s.Run(workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"beforeCordon": []string{"silence"}}}))
	s.ExpectCompleted()
	if checks := s.Count("CheckReleases"); checks != 3 || called(s) != "silence -silence" {
		t.Errorf("%d checks, hooks %s", checks, called(s))
	}
}

func TestARestoredMaintenanceCanBeCancelled(t *testing.T) {
	s := workflowtest.New(t)
	s.Usual["HoldNode"] = restored
	s.At(10*time.Hour, func() {
		if got := s.Count("HoldNode"); got < 100 || got > 150 {
			t.Errorf("it was tried %d times in ten hours: want about one try in five minutes", got)
		}
		s.Env.CancelWorkflow()
	})
	status := s.Run(workflowtest.InputWith(nil))
	if status.Phase != api.Cancelled || s.Count("Drain") > 0 || s.Count("ReleaseNode") != 1 {
		t.Errorf("%s, %d drains, %d releases:\n%s", status.Phase, s.Count("Drain"), s.Count("ReleaseNode"), workflowtest.MessagesOf(status))
	}
}

// Each run that waits takes the drain again, and finds the mark gone: that does not count as many losses of it.
func TestARestoredDrainWaitsAcrossRuns(t *testing.T) {
	s := workflowtest.New(t)
	s.Usual["Drain"] = workflowtest.Reply{Err: temporal.NewNonRetryableApplicationError("not held", api.ErrorNotHolder, nil)}
	s.Answer("HoldNode", workflowtest.Reply{})
	s.Usual["HoldNode"] = restored
	for i := range 5 {
		s.ContinueAt(time.Duration(i+1) * time.Hour)
	}
	s.At(6*time.Hour+time.Minute, func() {
		if status := s.Status(); status.Phase != api.Draining || !strings.Contains(status.WaitingFor, "somebody's word") {
			t.Errorf("%s waits for %q:\n%s", status.Phase, status.WaitingFor, workflowtest.MessagesOf(status))
		}
		s.Usual["Drain"], s.Usual["HoldNode"] = workflowtest.Reply{}, workflowtest.Reply{}
	})
	s.DoneAt(8 * time.Hour)
	s.Run(ladder("100h", "fail"))
	s.ExpectCompleted()
}

// The mark is gone under the drain: a maintenance that is restored to a state in which it drained must not drain again.
func TestARestoredDrainWaitsForSomebodysWord(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{Err: temporal.NewNonRetryableApplicationError("not held", api.ErrorNotHolder, nil)})
	s.Answer("HoldNode", workflowtest.Reply{}, restored, restored)
	s.At(25*time.Second, func() {
		if got := s.Count("Drain"); got != 1 {
			t.Errorf("%d drains", got)
		}
	})
	s.DoneAt(time.Hour)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if holds, drains := s.Count("HoldNode"), s.Count("Drain"); holds != 4 || drains != 2 {
		t.Errorf("%d holds, %d drains", holds, drains)
	}
}
