package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/workflows/maintenance"
	"drydock.dev/drydock/workflows/workflowtest"
)

func TestAMaintenanceIsMoved(t *testing.T) {
	for name, c := range map[string]struct {
		fields workflowtest.Input
		from   time.Duration
	}{
		"to a later time":     {nil, 10 * time.Hour},
		"to an earlier time":  {nil, time.Hour},
		"before its approval": {workflowtest.Input{"approval": true}, 10 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			start := s.Env.Now()
			moved := start.Add(c.from).UTC().Truncate(time.Second)
			s.SignalAt(30*time.Minute, api.MsgReschedule, workflowtest.Input{"notBefore": moved.Format(time.RFC3339), "by": "amy", "comment": "the window moved"})
			s.SignalAt(31*time.Minute, api.MsgApprove, nil)
			s.ExpectAt(40*time.Minute, api.Pending, "its time: not before "+moved.Format(time.RFC3339))
			s.DoneAt(c.from + time.Hour)
			in := workflowtest.InputWith(c.fields)
			in["notBefore"] = start.Add(5 * time.Hour).UTC().Format(time.RFC3339)
			status := s.Run(in)
			s.ExpectCompleted()
			if asked := s.RequestTimes[0]; asked.Before(moved) || asked.After(moved.Add(time.Minute)) {
				t.Errorf("it asked for a slot at %s, want %s", asked, moved)
			}
			if !status.Spec.NotBefore.Equal(moved) {
				t.Errorf("its specification says %s", status.Spec.NotBefore)
			}
			announced := ""
			for _, state := range status.States {
				if state.State == notices.MaintenanceScheduled {
					announced = state.Message
				}
			}
			if announced != "not before "+moved.Format(time.RFC3339) {
				t.Errorf("announced was %q", announced)
			}
			if got := workflowtest.EffectsOf(status, api.MsgReschedule); len(got) != 1 || got[0] != "it begins not before "+moved.Format(time.RFC3339) {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestAMaintenanceThatDoesNotWaitForItsTimeIsNotMoved(t *testing.T) {
	s := workflowtest.New(t)
	start := s.Env.Now()
	at := func(d time.Duration) workflowtest.Input {
		return workflowtest.Input{"notBefore": start.Add(d).UTC().Format(time.RFC3339)}
	}
	s.Scheduler = silent
	over := s.UpdateAt(30*time.Minute, api.MsgReschedule, at(10*time.Minute))
	nothing := s.UpdateAt(30*time.Minute, api.MsgReschedule)
	late := s.UpdateAt(90*time.Minute, api.MsgReschedule, at(3*time.Hour))
	s.ContinueAt(100 * time.Minute)
	later := s.UpdateAt(110*time.Minute, api.MsgReschedule, at(3*time.Hour))
	s.At(2*time.Hour, func() { s.Grant(workflowtest.RunID + "/1") })
	s.DoneAt(3 * time.Hour)
	s.Run(workflowtest.InputWith(at(time.Hour)))
	s.ExpectCompleted()
	for want, out := range map[string]*workflowtest.Outcome{
		"is over": over, "notBefore: required": nothing, "does not wait for its time any more": late, "the maintenance is Pending": later,
	} {
		if out.Rejected == nil || !strings.Contains(out.Rejected.Error(), want) {
			t.Errorf("%s: %+v", want, out)
		}
	}
	if s.Runs != 2 {
		t.Errorf("%d runs", s.Runs)
	}
}

func TestATimeThatWasOverAtTheStartIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		ago     time.Duration
		refused bool
	}{
		"an hour ago":    {time.Hour, true},
		"a moment ago":   {30 * time.Second, false},
		"in the present": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.DoneAt(time.Hour)
			in := workflowtest.InputWith(workflowtest.Input{"notBefore": s.Env.Now().Add(-c.ago).UTC().Format(time.RFC3339)})
			if !c.refused {
				s.Run(in)
				s.ExpectCompleted()
				return
			}
			s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, in.Payload(t), workflowtest.Raw(""))
			s.ExpectFailure(api.ErrorInvalidSpec, "leave it out to begin at once, or give a time to come")
			s.ExpectLog()
		})
	}
}
