package maintenance_test

import (
	"testing"
	"time"

	checkactivity "drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/workflows/workflowtest"
)

// Work may end while no worker runs for longer than its deadline: how it ended counts, and not that nobody looked.
func TestWorkThatEndedWhileNobodyLookedIsDone(t *testing.T) {
	s := workSite(t, time.Minute, nil)
	s.Answer("AwaitWork", workflowtest.Reply{After: 31 * time.Minute, Err: deadline()})
	status := s.Run(withWork(nil))
	s.ExpectCompleted()
	if got := attempts(status); got != "done: Job jobs/job-1 is complete" || s.Count("BeginWork") != 1 {
		t.Errorf("attempts %s: %v", got, s.Log)
	}
	if again := workflowtest.InputOf[checkactivity.WorkInput](s, "AwaitWork", 1); again.Job != "jobs/job-1" || again.Kind != validation.KindJob || again.For.Std() > time.Minute {
		t.Errorf("looked at again as %+v", again)
	}
}

func TestWorkThatDoesNotReportMayStillRun(t *testing.T) {
	s := workSite(t, time.Minute, nil)
	for range 2 {
		s.Answer("AwaitWork", workflowtest.Reply{After: 31 * time.Minute, Err: deadline()})
	}
	s.CheckAt(70*time.Minute, func(status api.Status) {
		if status.Phase != api.RequestorFailed || status.Failure != "work flash failed: no success within 30m0s; its Job may still run" {
			t.Errorf("%s: %s", status.Phase, status.Failure)
		}
	})
	s.DoneAt(80 * time.Minute)
	s.Run(withWork(workflowtest.Input{"readyTimeout": "3h"}))
	s.ExpectCompleted()
}

// A Job may have been created although its activity failed: it is found, and not left alone with the next attempt.
func TestWorkWhoseBeginningIsNotReportedIsFound(t *testing.T) {
	s := workSite(t, time.Minute, nil)
	s.Answer("BeginWork", workflowtest.Reply{Err: deadline()})
	status := s.Run(withWork(nil))
	s.ExpectCompleted()
	if got := attempts(status); got != "done: Job jobs/job-1 is complete" {
		t.Errorf("attempts %s: %v", got, s.Log)
	}
	if first, found := workflowtest.InputOf[checkactivity.WorkInput](s, "BeginWork", 0), workflowtest.InputOf[checkactivity.WorkInput](s, "BeginWork", 1); first.Find || !found.Find || first.Key != found.Key {
		t.Errorf("begun as %+v, found as %+v", first, found)
	}
}
