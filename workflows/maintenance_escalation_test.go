package workflows_test

import (
	"strings"
	"testing"
	"time"

	"drydock/activities"
	"drydock/workflows"
)

// endless is a drain that does not end by itself.
func endless(s *site) { s.usual["Drain"] = reply{after: 10 * 24 * time.Hour} }

func ladder(rungs ...any) input {
	list := []input{}
	for i := 0; i < len(rungs); i += 2 {
		list = append(list, input{"after": rungs[i], "do": rungs[i+1]})
	}
	return of(input{"drain": input{"escalation": list}})
}

func taken(status workflows.Status) string {
	var texts []string
	for _, rung := range status.Escalation {
		texts = append(texts, rung.Do)
	}
	return strings.Join(texts, " ")
}

func TestEscalationTakesItsRungsOnOneClockFromTheCordon(t *testing.T) {
	s := newSite(t)
	endless(s)
	expect := func(at time.Duration, rungs, force string) {
		s.checkAt(at, func(status workflows.Status) {
			if got := taken(status); got != rungs || status.Force != force || status.Phase != workflows.Draining {
				t.Errorf("after %s it took %q with force %q in phase %s", at, got, status.Force, status.Phase)
			}
		})
	}
	expect(9*time.Minute, "", "")
	expect(11*time.Minute, "notify", "")
	expect(21*time.Minute, "notify bypassBudget", "bypassBudget")
	expect(31*time.Minute, "notify bypassBudget kill", "kill")
	s.run(ladder("10m", "notify", "20m", "bypassBudget", "30m", "kill", "40m", "fail"))
	s.expectFailure(workflows.ErrorMaintenanceFailed, "not empty after 40m0s")
	if s.count("Drain") != 4 {
		t.Errorf("it did %v", s.log)
	}
	for i, want := range []string{"", "", "bypassBudget", "kill"} {
		in := inputOf[activities.DrainInput](s, "Drain", i)
		if in.Force != want {
			t.Errorf("drain %d had force %q, want %q", i, in.Force, want)
		}
		if (in.KillAt != nil) != (i < 3) {
			t.Errorf("drain %d was to kill at %v", i, in.KillAt)
		}
	}
	first := inputOf[activities.DrainInput](s, "Drain", 0)
	if first.KillAt.Sub(first.Began) != 30*time.Minute {
		t.Errorf("the clock began at %s, and it kills at %s", first.Began, first.KillAt)
	}
	// Each rung that does not end the drain is said on the node.
	if s.count("AnnouncePhase") != 3 {
		t.Errorf("it did %v", s.log)
	}
}

func TestEscalateTakesTheNextRungNow(t *testing.T) {
	s := newSite(t)
	endless(s)
	early := s.updateAt(time.Second, workflows.MsgEscalate)
	s.answer("HoldNode", reply{after: 10 * time.Second})
	now := s.updateAt(5*time.Minute, workflows.MsgEscalate, input{"by": "amy", "comment": "no time"})
	s.checkAt(6*time.Minute, func(status workflows.Status) {
		if len(status.Escalation) != 1 || status.Escalation[0].By != "amy" || status.Escalation[0].Why != "no time" || status.Force != "bypassBudget" {
			t.Errorf("took %+v, force %q", status.Escalation, status.Force)
		}
	})
	named := s.updateAt(7*time.Minute, workflows.MsgEscalate, input{"do": "kill"})
	unknown := s.updateAt(8*time.Minute, workflows.MsgEscalate, input{"do": "pray"})
	s.checkAt(9*time.Minute, func(status workflows.Status) {
		if status.Force != "kill" {
			t.Errorf("force %q", status.Force)
		}
	})
	s.run(ladder("20m", "bypassBudget", "30m", "fail"))
	s.expectFailure(workflows.ErrorMaintenanceFailed, "not empty after 30m0s")
	if early.rejected == nil || unknown.rejected == nil || !strings.Contains(unknown.rejected.Error(), "notify, bypassBudget") {
		t.Errorf("early %+v, unknown %+v", early, unknown)
	}
	if now.effect != "takes the rung bypassBudget" || named.effect != "takes the rung kill" {
		t.Errorf("effects %q, %q", now.effect, named.effect)
	}
	// The rung that was taken early is not taken again at its time.
	if s.count("Drain") != 3 {
		t.Errorf("it did %v", s.log)
	}
}

func TestEscalateTakesNoOtherRungThanTheExpected(t *testing.T) {
	refusal := "the rung to take is kill by now, and bypassBudget was expected"
	t.Run("somebody was faster", func(t *testing.T) {
		s := newSite(t)
		endless(s)
		s.signalAt(5*time.Minute, workflows.MsgEscalate, input{"expect": "bypassBudget", "by": "amy"})
		s.signalAt(5*time.Minute, workflows.MsgEscalate, input{"expect": "bypassBudget", "by": "bob"})
		late := s.updateAt(6*time.Minute, workflows.MsgEscalate, input{"expect": "bypassBudget"})
		named := s.updateAt(6*time.Minute, workflows.MsgEscalate, input{"do": "kill", "expect": "bypassBudget"})
		s.checkAt(7*time.Minute, func(status workflows.Status) {
			if got := taken(status); got != "bypassBudget" || status.Force != "bypassBudget" {
				t.Errorf("it took %q, force %q", got, status.Force)
			}
			if n := len(status.Messages); n != 2 || status.Messages[1].By != "bob" || status.Messages[1].Effect != "ignored: "+refusal {
				t.Errorf("messages %+v", status.Messages)
			}
		})
		s.run(ladder("20m", "bypassBudget", "30m", "kill", "40m", "fail"))
		for _, out := range []*outcome{late, named} {
			if out.rejected == nil || !strings.Contains(out.rejected.Error(), refusal) {
				t.Errorf("escalate: %+v", out)
			}
		}
	})
	t.Run("its time had come", func(t *testing.T) {
		s := newSite(t)
		endless(s)
		late := s.updateAt(21*time.Minute, workflows.MsgEscalate, input{"expect": "bypassBudget"})
		right := s.updateAt(22*time.Minute, workflows.MsgEscalate, input{"expect": "kill"})
		s.run(ladder("20m", "bypassBudget", "30m", "kill", "40m", "fail"))
		if late.rejected == nil || !strings.Contains(late.rejected.Error(), refusal) || right.effect != "takes the rung kill" {
			t.Errorf("late %+v, right %+v", late, right)
		}
	})
}

func TestEscalateWithoutRungsNamesTheNextStep(t *testing.T) {
	s := newSite(t)
	endless(s)
	none := s.updateAt(time.Minute, workflows.MsgEscalate)
	s.signalAt(2*time.Minute, workflows.MsgEscalate, input{"do": "fail", "by": "amy"})
	s.run(ladder())
	s.expectFailure(workflows.ErrorMaintenanceFailed, "escalation: fail by amy")
	if none.rejected == nil || !strings.Contains(none.rejected.Error(), `no rung is left: name one with {"do": "bypassBudget"}`) {
		t.Errorf("escalate: %+v", none)
	}
}

func TestForceIsRefusedWhereNothingIsEvicted(t *testing.T) {
	s := newSite(t)
	refused := s.updateAt(time.Minute, workflows.MsgEscalate, input{"do": "kill"})
	skip := s.updateAt(time.Minute, workflows.MsgSkipPod, input{"pod": "default/web"})
	retry := s.updateAt(time.Minute, workflows.MsgRetryNow)
	s.signalAt(2*time.Minute, workflows.MsgDrained, nil)
	s.doneAt(3 * time.Minute)
	s.run(of(input{"drain": input{"mode": "external"}}))
	s.expectCompleted()
	for name, out := range map[string]*outcome{"escalate": refused, "skip-pod": skip, "retry-now": retry} {
		if out.rejected == nil || !strings.Contains(out.rejected.Error(), "external") {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func TestSkippedPodIsLeftToTheNextDrain(t *testing.T) {
	s := newSite(t)
	s.answer("Drain", reply{after: 24 * time.Hour}, reply{after: time.Minute})
	wrong := s.updateAt(4*time.Minute, workflows.MsgSkipPod, input{"pod": "web-1"})
	s.signalAt(5*time.Minute, workflows.MsgSkipPod, input{"pod": "default/web-1", "by": "amy"})
	s.doneAt(30 * time.Minute)
	status := s.run(of(nil))
	s.expectCompleted()
	if in := inputOf[activities.DrainInput](s, "Drain", 1); len(in.Skip) != 1 || in.Skip[0] != "default/web-1" {
		t.Errorf("it skipped %v", in.Skip)
	}
	if len(status.SkippedPods) != 1 || s.count("Drain") != 2 {
		t.Errorf("skipped %v; it did %v", status.SkippedPods, s.log)
	}
	if wrong.rejected == nil || !strings.Contains(wrong.rejected.Error(), "<namespace>/<name>") {
		t.Errorf("skip-pod: %+v", wrong)
	}
}

func TestRetryNowEndsABackoff(t *testing.T) {
	t.Run("of refused evictions", func(t *testing.T) {
		s := newSite(t)
		s.answer("Drain", reply{after: 24 * time.Hour}, reply{after: time.Minute})
		s.signalAt(5*time.Minute, workflows.MsgRetryNow, input{"by": "amy"})
		s.doneAt(30 * time.Minute)
		s.run(of(nil))
		s.expectCompleted()
		if s.count("Drain") != 2 {
			t.Errorf("it did %v", s.log)
		}
	})
	t.Run("of the next attempt", func(t *testing.T) {
		s := newSite(t)
		s.answer("Drain", reply{after: 24 * time.Hour}, reply{after: time.Minute})
		s.checkAt(31*time.Minute, func(status workflows.Status) {
			if status.Phase != workflows.Pending || status.NextAttemptAt == nil {
				t.Errorf("phase %s, next attempt %v", status.Phase, status.NextAttemptAt)
			}
		})
		s.signalAt(32*time.Minute, workflows.MsgRetryNow, nil)
		s.checkAt(32*time.Minute+30*time.Second, func(status workflows.Status) {
			if status.Phase != workflows.Draining || status.NextAttemptAt != nil || status.Attempt != 2 || len(status.Escalation) > 0 {
				t.Errorf("phase %s, attempt %d, next %v, escalation %v", status.Phase, status.Attempt, status.NextAttemptAt, status.Escalation)
			}
		})
		s.doneAt(40 * time.Minute)
		s.run(ladder("30m", "giveBack"))
		s.expectCompleted()
	})
	t.Run("and is refused elsewhere", func(t *testing.T) {
		s := newSite(t)
		refused := s.updateAt(10*time.Minute, workflows.MsgRetryNow)
		s.doneAt(20 * time.Minute)
		s.run(of(nil))
		if refused.rejected == nil || !strings.Contains(refused.rejected.Error(), "the maintenance is Ready") {
			t.Errorf("retry-now: %+v", refused)
		}
	})
}

func TestFreezeStopsTheClockOfTheEscalation(t *testing.T) {
	s := newSite(t)
	endless(s)
	s.signalAt(5*time.Minute, workflows.SignalHold, workflows.Hold{Reasons: []string{"frozen"}})
	s.signalAt(3*time.Hour, workflows.SignalHold, workflows.Hold{})
	expect := func(at time.Duration, rungs string) {
		s.checkAt(at, func(status workflows.Status) {
			if got := taken(status); got != rungs {
				t.Errorf("after %s it took %q, want %q", at, got, rungs)
			}
		})
	}
	expect(3*time.Hour+4*time.Minute, "")
	expect(3*time.Hour+6*time.Minute, "notify")
	expect(3*time.Hour+14*time.Minute, "notify")
	s.run(ladder("10m", "notify", "20m", "fail"))
	s.expectFailure(workflows.ErrorMaintenanceFailed, "not empty after 20m0s")
}

func TestManyTransitionsAreBounded(t *testing.T) {
	s := newSite(t)
	endless(s)
	s.signalAt(9*24*time.Hour, workflows.MsgCancel, nil)
	status := s.run(ladder("1m", "giveBack"))
	if len(status.Transitions) > 200 || status.TransitionsDropped == 0 || status.Transitions[0].Phase != workflows.Pending {
		t.Errorf("%d transitions, %d dropped", len(status.Transitions), status.TransitionsDropped)
	}
}
