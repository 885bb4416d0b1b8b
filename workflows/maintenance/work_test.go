package maintenance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	checkactivity "drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/workflows/workflowtest"
)

// workSite is the world of a maintenance whose work takes so long.
func workSite(t *testing.T, takes time.Duration, change func(*validation.Work)) *workflowtest.Site {
	s := workflowtest.New(t)
	s.Prepared.Work = &validation.Work{Name: "flash", Kind: validation.KindJob, Deadline: period.Duration(30 * time.Minute)}
	if change != nil {
		change(s.Prepared.Work)
	}
	s.Usual["AwaitWork"] = workflowtest.Reply{After: takes}
	return s
}

func withWork(more workflowtest.Input) workflowtest.Input {
	in := workflowtest.InputWith(more)
	in["work"] = "flash"
	return in
}

// attempts are the outcomes of the attempts at the work.
func attempts(status api.Status) string {
	var texts []string
	for _, one := range status.Work {
		texts = append(texts, one.State())
	}
	return strings.Join(texts, " | ")
}

func TestWorkIsDoneForTheRequestor(t *testing.T) {
	s := workSite(t, 10*time.Minute, nil)
	s.CheckAt(5*time.Minute, func(status api.Status) {
		running := status.RunningWork()
		if status.Phase != api.Ready || running == nil || running.Job != "jobs/job-1" || running.BootIDBefore != "boot-1" {
			t.Errorf("%s, work %+v", status.Phase, running)
		}
		if want := "work flash, which runs since 2026-07-01T12:0"; !strings.HasPrefix(status.WaitingFor, want) || status.StartedAt == nil {
			t.Errorf("waits for %q, started %v", status.WaitingFor, status.StartedAt)
		}
	})
	status := s.Run(withWork(nil))
	s.ExpectCompleted()
	if got := attempts(status); got != "done: Job jobs/job-1 is complete" || status.Work[0].Output != "flashed" {
		t.Errorf("work %+v", status.Work)
	}
	if begun, awaited := workflowtest.InputOf[checkactivity.WorkInput](s, "BeginWork", 0), workflowtest.InputOf[checkactivity.WorkInput](s, "AwaitWork", 0); begun.Key != awaited.Key ||
		!strings.HasSuffix(begun.Key, "/work/flash/1") || awaited.BootIDBefore != "boot-1" || awaited.For != s.Prepared.Work.Deadline {
		t.Errorf("begun as %+v, awaited as %+v", begun, awaited)
	}
	if s.Count("BeginWork") != 1 || s.Count("AwaitWork") != 1 || s.Count("EndWork") != 0 {
		t.Errorf("it did %v", s.Log)
	}
}

func TestWorkThatFailsIsTriedAgainUnderAnotherIdentity(t *testing.T) {
	s := workSite(t, 10*time.Minute, nil)
	s.Answer("AwaitWork", workflowtest.Reply{After: time.Minute, Value: checkactivity.WorkEnded{Message: "Job jobs/job-1 failed", Output: "no such image"}})
	s.CheckAt(10*time.Minute, func(status api.Status) {
		if status.Phase != api.RequestorFailed || status.Failure != "work flash failed: Job jobs/job-1 failed: no such image" || status.Work[0].Output != "no such image" {
			t.Errorf("%s: %s; work %+v", status.Phase, status.Failure, status.Work)
		}
	})
	s.SignalAt(20*time.Minute, api.MsgRetry, nil)
	status := s.Run(withWork(nil))
	s.ExpectCompleted()
	if got := attempts(status); got != "failed: Job jobs/job-1 failed | done: Job jobs/job-1 is complete" {
		t.Errorf("attempts %s", got)
	}
	first, second := workflowtest.InputOf[checkactivity.WorkInput](s, "BeginWork", 0), workflowtest.InputOf[checkactivity.WorkInput](s, "BeginWork", 1)
	if first.Key == second.Key {
		t.Errorf("both are %s", first.Key)
	}
}

func TestWorkThatCannotBeBegunFails(t *testing.T) {
	s := workSite(t, 0, nil)
	s.Answer("BeginWork", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorHookFailed, "there is no file")})
	s.Answer("BeginWork", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorHookFailed, "nothing was begun")})
	s.CheckAt(10*time.Minute, func(status api.Status) {
		if status.Phase != api.RequestorFailed || !strings.Contains(status.Failure, "it could not be begun: there is no file") {
			t.Errorf("%s: %s", status.Phase, status.Failure)
		}
	})
	s.DoneAt(20 * time.Minute)
	s.Run(withWork(nil))
	s.ExpectCompleted()
	if s.Count("AwaitWork")+s.Count("EndWork") != 0 {
		t.Errorf("it did %v", s.Log)
	}
}

// Whatever takes the node away from its work, the work has ended before anything else happens to the node.
func TestWorkEndsWithThePhaseReady(t *testing.T) {
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		input   workflowtest.Input
		happens func(*workflowtest.Site)
		ends    string
	}{
		"done by somebody":   {nil, func(s *workflowtest.Site) { s.DoneAt(10 * time.Minute) }, "somebody said"},
		"failed by somebody": {nil, func(s *workflowtest.Site) { s.SignalAt(10*time.Minute, api.MsgFailed, nil); s.DoneAt(20 * time.Minute) }, "somebody said"},
		"cancelled":          {nil, func(s *workflowtest.Site) { s.SignalAt(10*time.Minute, api.MsgCancel, nil); s.DoneAt(20 * time.Minute) }, "somebody said"},
		"readyTimeout":       {workflowtest.Input{"readyTimeout": "15m"}, func(s *workflowtest.Site) { s.DoneAt(40 * time.Minute) }, "past readyTimeout"},
		"released in time":   {workflowtest.Input{"readyTimeout": "15m", "onReadyTimeout": "release"}, func(*workflowtest.Site) {}, "past readyTimeout"},
		"released by somebody": {nil, func(s *workflowtest.Site) {
			s.SignalAt(10*time.Minute, api.MsgCancel, workflowtest.Input{"release": true})
		}, "the maintenance ends"},
	} {
		t.Run(name, func(t *testing.T) {
			s := workSite(t, day, func(w *validation.Work) { w.Deadline = period.Duration(2 * day) })
			c.happens(s)
			status := s.Run(withWork(c.input))
			if got := attempts(status); !strings.HasPrefix(got, "ended: ") || !strings.Contains(got, c.ends) || !strings.HasSuffix(got, "its Job is deleted") {
				t.Errorf("attempts %s", got)
			}
			if s.Count("BeginWork") != 1 || s.Count("EndWork") != 1 {
				t.Errorf("it did %v", s.Log)
			}
			if slices.Index(s.Log, "EndWork") > slices.Index(s.Log, "ReleaseNode") {
				t.Errorf("it did %v", s.Log)
			}
		})
	}
}

func TestWorkIsTheFirstRequestors(t *testing.T) {
	s := workSite(t, 10*time.Minute, nil)
	s.CheckAt(5*time.Minute, func(status api.Status) {
		if !strings.HasSuffix(status.WaitingFor, `; and "done" or "failed" from storage`) {
			t.Errorf("waits for %q", status.WaitingFor)
		}
	})
	s.ExpectAt(20*time.Minute, api.Ready, `"done" or "failed" from storage`)
	s.SignalAt(30*time.Minute, api.MsgDone, workflowtest.Input{"requestor": "storage"})
	status := s.Run(withWork(workflowtest.Input{"additionalRequestors": []string{"storage"}}))
	s.ExpectCompleted()
	if s.Count("BeginWork") != 1 || status.Requestors[0].DoneAt == nil {
		t.Errorf("it did %v, requestors %+v", s.Log, status.Requestors)
	}
}

// A wait goes on in another run, and what it waits for is not begun again.
func TestWorkGoesOnInAnotherRun(t *testing.T) {
	s := workSite(t, time.Hour, func(w *validation.Work) { w.Deadline = period.Duration(3 * time.Hour) })
	s.ContinueAt(20 * time.Minute)
	status := s.Run(withWork(workflowtest.Input{"readyTimeout": "5h"}))
	s.ExpectCompleted()
	if s.Runs != 2 || s.Count("BeginWork") != 1 || s.Count("AwaitWork") != 2 {
		t.Errorf("%d runs did %v", s.Runs, s.Log)
	}
	if later := workflowtest.InputOf[checkactivity.WorkInput](s, "AwaitWork", 1); later.For >= period.Duration(2*time.Hour+50*time.Minute) || later.BootIDBefore != "boot-1" {
		t.Errorf("it goes on as %+v", later)
	}
	if len(status.Work) != 1 || !strings.HasPrefix(status.Work[0].Outcome, "done") {
		t.Errorf("work %+v", status.Work)
	}
}

func TestWorkThatSomebodyDoes(t *testing.T) {
	signal := func(w *validation.Work) { w.Kind = validation.KindSignal }
	t.Run("done", func(t *testing.T) {
		s := workSite(t, 0, signal)
		s.ExpectAt(5*time.Minute, api.Ready, `"hook-done" for work flash`)
		wrong := s.UpdateAt(6*time.Minute, api.MsgHookDone, workflowtest.Input{"hook": "other"})
		s.SignalAt(10*time.Minute, api.MsgHookDone, workflowtest.Input{"hook": "flash", "by": "amy", "comment": "done myself"})
		status := s.Run(withWork(nil))
		s.ExpectCompleted()
		if got := attempts(status); got != "done: declared done by amy: done myself" || wrong.Rejected == nil {
			t.Errorf("attempts %s, %+v", got, wrong)
		}
	})
	t.Run("failed, and then nobody says anything", func(t *testing.T) {
		s := workSite(t, 0, signal)
		s.SignalAt(10*time.Minute, api.MsgHookDone, workflowtest.Input{"hook": "flash", "failed": true})
		s.SignalAt(15*time.Minute, api.MsgRetry, nil)
		s.DoneAt(50 * time.Minute)
		status := s.Run(withWork(nil))
		if got := attempts(status); got != "failed: declared failed | failed: no hook-done within 30m0s" {
			t.Errorf("attempts %s", got)
		}
		if s.Count("BeginWork")+s.Count("AwaitWork")+s.Count("EndWork") != 0 {
			t.Errorf("it did %v", s.Log)
		}
	})
}

func TestWorkByHTTPHasNoBeginning(t *testing.T) {
	s := workSite(t, time.Minute, func(w *validation.Work) { w.Kind = validation.KindHTTP })
	s.Run(withWork(nil))
	s.ExpectCompleted()
	if s.Count("BeginWork") != 0 || s.Count("AwaitWork") != 1 {
		t.Errorf("it did %v", s.Log)
	}
}

// A freeze is waited out before the work is begun.
func TestWorkIsNotBegunWhileHeldByAFreeze(t *testing.T) {
	s := workSite(t, time.Minute, nil)
	s.Answer("AwaitWork", workflowtest.Reply{Value: checkactivity.WorkEnded{Message: "not this time"}})
	s.HoldAt(10*time.Minute, "audit")
	s.SignalAt(11*time.Minute, api.MsgRetry, nil)
	s.CheckAt(11*time.Minute+30*time.Second, func(status api.Status) {
		if s.Count("BeginWork") != 1 || !strings.Contains(status.WaitingFor, "audit") {
			t.Errorf("it did %v, and waits for %q", s.Log, status.WaitingFor)
		}
	})
	s.HoldAt(11*time.Minute + 45*time.Second)
	s.Run(withWork(nil))
	s.ExpectCompleted()
	if s.Count("BeginWork") != 2 {
		t.Errorf("it did %v", s.Log)
	}
}
