package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

// endless is a drain that does not end by itself.
func endless(s *workflowtest.Site) { s.Usual["Drain"] = workflowtest.Reply{After: 10 * 24 * time.Hour} }

func ladder(rungs ...any) workflowtest.Input {
	list := []workflowtest.Input{}
	for i := 0; i < len(rungs); i += 2 {
		list = append(list, workflowtest.Input{"after": rungs[i], "do": rungs[i+1]})
	}
	return workflowtest.InputWith(workflowtest.Input{"drain": workflowtest.Input{"escalation": list}})
}

func taken(status api.Status) string {
	var texts []string
	for _, rung := range status.Escalation {
		texts = append(texts, rung.Do)
	}
	return strings.Join(texts, " ")
}

func TestEscalationTakesItsRungsOnOneClockFromTheCordon(t *testing.T) {
	s := workflowtest.New(t)
	endless(s)
	expect := func(at time.Duration, rungs, force string) {
		s.CheckAt(at, func(status api.Status) {
			if got := taken(status); got != rungs || status.Force != force || status.Phase != api.Draining {
				t.Errorf("after %s it took %q with force %q in phase %s", at, got, status.Force, status.Phase)
			}
		})
	}
	expect(9*time.Minute, "", "")
	expect(11*time.Minute, "notify", "")
	expect(21*time.Minute, "notify bypassBudget", "bypassBudget")
	expect(31*time.Minute, "notify bypassBudget kill", "kill")
	s.Run(ladder("10m", "notify", "20m", "bypassBudget", "30m", "kill", "40m", "fail"))
	s.ExpectFailure(api.ErrorNotDrained, "not empty after 40m0s")
	if s.Count("Drain") != 4 {
		t.Errorf("it did %v", s.Log)
	}
	for i, want := range []string{"", "", "bypassBudget", "kill"} {
		in := workflowtest.InputOf[drain.Input](s, "Drain", i)
		if in.Force != want {
			t.Errorf("drain %d had force %q, want %q", i, in.Force, want)
		}
		if (in.KillAt != nil) != (i < 3) {
			t.Errorf("drain %d was to kill at %v", i, in.KillAt)
		}
	}
	first := workflowtest.InputOf[drain.Input](s, "Drain", 0)
	if first.KillAt.Sub(first.Began) != 30*time.Minute {
		t.Errorf("the clock began at %s, and it kills at %s", first.Began, first.KillAt)
	}
	// Each rung that does not end the drain is said on the node.
	if s.Count("AnnouncePhase") != 3 {
		t.Errorf("it did %v", s.Log)
	}
}

func TestEscalateTakesTheNextRungNow(t *testing.T) {
	s := workflowtest.New(t)
	endless(s)
	early := s.UpdateAt(time.Second, api.MsgEscalate)
	s.Answer("HoldNode", workflowtest.Reply{After: 10 * time.Second})
	now := s.UpdateAt(5*time.Minute, api.MsgEscalate, workflowtest.Input{"by": "amy", "comment": "no time"})
	s.CheckAt(6*time.Minute, func(status api.Status) {
		if len(status.Escalation) != 1 || status.Escalation[0].By != "amy" || status.Escalation[0].Why != "no time" || status.Force != "bypassBudget" {
			t.Errorf("took %+v, force %q", status.Escalation, status.Force)
		}
	})
	named := s.UpdateAt(7*time.Minute, api.MsgEscalate, workflowtest.Input{"do": "kill"})
	unknown := s.UpdateAt(8*time.Minute, api.MsgEscalate, workflowtest.Input{"do": "pray"})
	s.CheckAt(9*time.Minute, func(status api.Status) {
		if status.Force != "kill" {
			t.Errorf("force %q", status.Force)
		}
	})
	s.Run(ladder("20m", "bypassBudget", "30m", "fail"))
	s.ExpectFailure(api.ErrorNotDrained, "not empty after 30m0s")
	if early.Rejected == nil || unknown.Rejected == nil || !strings.Contains(unknown.Rejected.Error(), "notify, bypassBudget") {
		t.Errorf("early %+v, unknown %+v", early, unknown)
	}
	if now.Effect != "takes the rung bypassBudget" || named.Effect != "takes the rung kill" {
		t.Errorf("effects %q, %q", now.Effect, named.Effect)
	}
	// The rung that was taken early is not taken again at its time.
	if s.Count("Drain") != 3 {
		t.Errorf("it did %v", s.Log)
	}
}

func TestEscalateTakesNoOtherRungThanTheExpected(t *testing.T) {
	refusal := "the rung to take is kill by now, and bypassBudget was expected"
	t.Run("somebody was faster", func(t *testing.T) {
		s := workflowtest.New(t)
		endless(s)
		s.SignalAt(5*time.Minute, api.MsgEscalate, workflowtest.Input{"expect": "bypassBudget", "by": "amy"})
		s.SignalAt(5*time.Minute, api.MsgEscalate, workflowtest.Input{"expect": "bypassBudget", "by": "bob"})
		late := s.UpdateAt(6*time.Minute, api.MsgEscalate, workflowtest.Input{"expect": "bypassBudget"})
		named := s.UpdateAt(6*time.Minute, api.MsgEscalate, workflowtest.Input{"do": "kill", "expect": "bypassBudget"})
		s.CheckAt(7*time.Minute, func(status api.Status) {
			if got := taken(status); got != "bypassBudget" || status.Force != "bypassBudget" {
				t.Errorf("it took %q, force %q", got, status.Force)
			}
			if n := len(status.Messages); n != 2 || status.Messages[1].By != "bob" || status.Messages[1].Effect != "ignored: "+refusal {
				t.Errorf("messages %+v", status.Messages)
			}
		})
		s.Run(ladder("20m", "bypassBudget", "30m", "kill", "40m", "fail"))
		for _, out := range []*workflowtest.Outcome{late, named} {
			if out.Rejected == nil || !strings.Contains(out.Rejected.Error(), refusal) {
				t.Errorf("escalate: %+v", out)
			}
		}
	})
	t.Run("its time had come", func(t *testing.T) {
		s := workflowtest.New(t)
		endless(s)
		late := s.UpdateAt(21*time.Minute, api.MsgEscalate, workflowtest.Input{"expect": "bypassBudget"})
		right := s.UpdateAt(22*time.Minute, api.MsgEscalate, workflowtest.Input{"expect": "kill"})
		s.Run(ladder("20m", "bypassBudget", "30m", "kill", "40m", "fail"))
		if late.Rejected == nil || !strings.Contains(late.Rejected.Error(), refusal) || right.Effect != "takes the rung kill" {
			t.Errorf("late %+v, right %+v", late, right)
		}
	})
}

func TestEscalateWithoutRungsNamesTheNextStep(t *testing.T) {
	s := workflowtest.New(t)
	endless(s)
	none := s.UpdateAt(time.Minute, api.MsgEscalate)
	s.SignalAt(2*time.Minute, api.MsgEscalate, workflowtest.Input{"do": "fail", "by": "amy"})
	s.Run(ladder())
	s.ExpectFailure(api.ErrorNotDrained, "escalation: fail by amy")
	if none.Rejected == nil || !strings.Contains(none.Rejected.Error(), `no rung is left: name one with {"do": "bypassBudget"}`) {
		t.Errorf("escalate: %+v", none)
	}
}

func TestForceIsRefusedWhereNothingIsEvicted(t *testing.T) {
	s := workflowtest.New(t)
	refused := s.UpdateAt(time.Minute, api.MsgEscalate, workflowtest.Input{"do": "kill"})
	skip := s.UpdateAt(time.Minute, api.MsgSkipPod, workflowtest.Input{"pod": "default/web"})
	retry := s.UpdateAt(time.Minute, api.MsgRetryNow)
	s.SignalAt(2*time.Minute, api.MsgDrained, nil)
	s.DoneAt(3 * time.Minute)
	s.Run(workflowtest.InputWith(workflowtest.Input{"drain": workflowtest.Input{"mode": "external"}}))
	s.ExpectCompleted()
	for name, out := range map[string]*workflowtest.Outcome{"escalate": refused, "skip-pod": skip, "retry-now": retry} {
		if out.Rejected == nil || !strings.Contains(out.Rejected.Error(), "external") {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func TestSkippedPodIsLeftToTheNextDrain(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: time.Minute})
	wrong := s.UpdateAt(4*time.Minute, api.MsgSkipPod, workflowtest.Input{"pod": "web-1"})
	s.SignalAt(5*time.Minute, api.MsgSkipPod, workflowtest.Input{"pod": "default/web-1", "by": "amy"})
	s.DoneAt(30 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if in := workflowtest.InputOf[drain.Input](s, "Drain", 1); len(in.Skip) != 1 || in.Skip[0] != "default/web-1" {
		t.Errorf("it skipped %v", in.Skip)
	}
	if len(status.SkippedPods) != 1 || s.Count("Drain") != 2 {
		t.Errorf("skipped %v; it did %v", status.SkippedPods, s.Log)
	}
	if wrong.Rejected == nil || !strings.Contains(wrong.Rejected.Error(), "<namespace>/<name>") {
		t.Errorf("skip-pod: %+v", wrong)
	}
}

func TestRetryNowEndsABackoff(t *testing.T) {
	t.Run("of refused evictions", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: time.Minute})
		s.SignalAt(5*time.Minute, api.MsgRetryNow, workflowtest.Input{"by": "amy"})
		s.DoneAt(30 * time.Minute)
		s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if s.Count("Drain") != 2 {
			t.Errorf("it did %v", s.Log)
		}
	})
	t.Run("of the next attempt", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: time.Minute})
		s.CheckAt(31*time.Minute, func(status api.Status) {
			if status.Phase != api.Pending || status.NextAttemptAt == nil {
				t.Errorf("phase %s, next attempt %v", status.Phase, status.NextAttemptAt)
			}
		})
		s.SignalAt(32*time.Minute, api.MsgRetryNow, nil)
		s.CheckAt(32*time.Minute+30*time.Second, func(status api.Status) {
			if status.Phase != api.Draining || status.NextAttemptAt != nil || status.Attempt != 2 || len(status.Escalation) > 0 {
				t.Errorf("phase %s, attempt %d, next %v, escalation %v", status.Phase, status.Attempt, status.NextAttemptAt, status.Escalation)
			}
		})
		s.DoneAt(40 * time.Minute)
		s.Run(ladder("30m", "giveBack"))
		s.ExpectCompleted()
	})
	t.Run("and is refused elsewhere", func(t *testing.T) {
		s := workflowtest.New(t)
		refused := s.UpdateAt(10*time.Minute, api.MsgRetryNow)
		s.DoneAt(20 * time.Minute)
		s.Run(workflowtest.InputWith(nil))
		if refused.Rejected == nil || !strings.Contains(refused.Rejected.Error(), "n1 is Ready") {
			t.Errorf("retry-now: %+v", refused)
		}
	})
}

func TestFreezeStopsTheClockOfTheEscalation(t *testing.T) {
	s := workflowtest.New(t)
	endless(s)
	s.HoldAt(5*time.Minute, "frozen")
	s.HoldAt(3 * time.Hour)
	expect := func(at time.Duration, rungs string) {
		s.CheckAt(at, func(status api.Status) {
			if got := taken(status); got != rungs {
				t.Errorf("after %s it took %q, want %q", at, got, rungs)
			}
		})
	}
	expect(3*time.Hour+4*time.Minute, "")
	expect(3*time.Hour+6*time.Minute, "notify")
	expect(3*time.Hour+14*time.Minute, "notify")
	s.Run(ladder("10m", "notify", "20m", "fail"))
	s.ExpectFailure(api.ErrorNotDrained, "not empty after 20m0s")
}

func TestManyTransitionsAreBounded(t *testing.T) {
	s := workflowtest.New(t)
	endless(s)
	s.SignalAt(9*24*time.Hour, api.MsgCancel, nil)
	status := s.Run(ladder("1m", "giveBack"))
	if len(status.Transitions) > 200 || status.TransitionsDropped == 0 || status.Transitions[0].Phase != api.Pending {
		t.Errorf("%d transitions, %d dropped", len(status.Transitions), status.TransitionsDropped)
	}
}

// What is done about an SLA, or a rung of the same time, does not wait for another try.
func TestRungsOfTheSameTimeAreTakenAtThatTime(t *testing.T) {
	for name, c := range map[string]struct {
		in   workflowtest.Input
		want string
	}{
		"the SLA and what is done then": {workflowtest.InputWith(workflowtest.Input{"sla": workflowtest.Input{"after": "10m", "do": "kill"}}), "expireSLA kill"},
		"the SLA and a rung": {workflowtest.InputWith(workflowtest.Input{
			"sla": workflowtest.Input{"after": "10m"}, "drain": workflowtest.Input{"escalation": []workflowtest.Input{{"after": "10m", "do": "kill"}}}}), "expireSLA kill"},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			endless(s)
			s.CheckAt(10*time.Minute-time.Second, func(status api.Status) {
				if taken(status) != "" {
					t.Errorf("took %s before", taken(status))
				}
			})
			s.CheckAt(10*time.Minute+time.Second, func(status api.Status) {
				if taken(status) != c.want || status.Force != "kill" {
					t.Errorf("took %q with force %q, want %s", taken(status), status.Force, c.want)
				}
			})
			s.SignalAt(11*time.Minute, api.MsgCancel, nil)
			s.Run(c.in)
			s.ExpectCancelled()
			first := workflowtest.InputOf[drain.Input](s, "Drain", 0)
			if first.KillAt == nil || first.KillAt.Sub(first.Began) != 10*time.Minute || s.Count("Drain") != 2 {
				t.Errorf("it was to kill at %v, and did %v", first.KillAt, s.Log)
			}
		})
	}
}

// A rung whose time passes while the one before it is taken gets the try that it was to have, and no longer one.
func TestARungThatIsLateKeepsItsDistance(t *testing.T) {
	s := workflowtest.New(t)
	endless(s)
	s.Answer("AnnouncePhase", workflowtest.Reply{After: 2 * time.Minute})
	s.CheckAt(12*time.Minute+50*time.Second, func(status api.Status) {
		if taken(status) != "notify" {
			t.Errorf("took %s before its try", taken(status))
		}
	})
	s.CheckAt(13*time.Minute+10*time.Second, func(status api.Status) {
		if taken(status) != "notify bypassBudget" {
			t.Errorf("took %s", taken(status))
		}
	})
	s.SignalAt(14*time.Minute, api.MsgCancel, nil)
	s.Run(ladder("10m", "notify", "11m", "bypassBudget", "30m", "fail"))
	s.ExpectCancelled()
}
