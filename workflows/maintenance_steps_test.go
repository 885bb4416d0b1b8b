package workflows_test

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/temporal"

	"drydock/activities"
	"drydock/workflows"
)

func TestStepThatFailsEndsTheMaintenanceByItsErrorType(t *testing.T) {
	waits := input{"waitForPodCompletion": input{"podSelector": "a=b"}}
	for name, c := range map[string]struct {
		activity, kind string
		in             input
		phase          workflows.Phase
	}{
		"no node to cordon":              {"HoldNode", activities.ErrorNodeGone, nil, workflows.NodeGone},
		"another node to cordon":         {"HoldNode", activities.ErrorNodeReplaced, nil, workflows.NodeGone},
		"no permission to cordon":        {"HoldNode", activities.ErrorMissingPermission, nil, workflows.Failed},
		"node gone during the drain":     {"Drain", activities.ErrorNodeGone, nil, workflows.NodeGone},
		"node replaced during the drain": {"Drain", activities.ErrorNodeReplaced, nil, workflows.NodeGone},
		"no permission to evict":         {"Drain", activities.ErrorMissingPermission, nil, workflows.Failed},
		"node gone while pods complete":  {"WaitForPods", activities.ErrorNodeGone, waits, workflows.NodeGone},
		"no permission to see pods":      {"WaitForPods", activities.ErrorMissingPermission, waits, workflows.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.answer(c.activity, reply{after: time.Minute, err: failing(c.kind, "what went wrong")})
			status := s.run(of(c.in))
			if status.Phase != c.phase || !strings.Contains(status.Failure, "what went wrong") {
				t.Errorf("the end is %s: %s", status.Phase, status.Failure)
			}
			if c.phase == workflows.Failed {
				s.expectFailure(c.kind, "what went wrong")
			} else {
				s.expectCompleted()
			}
		})
	}
}

func TestStepIsRepeatedAfterAnErrorThatHeals(t *testing.T) {
	s := newSite(t)
	timeout := temporal.NewApplicationError("the API server is not there", "ServiceUnavailable")
	s.answer("HoldNode", reply{err: timeout}, reply{err: timeout}, reply{})
	s.answer("Drain", reply{err: timeout}, reply{after: time.Minute})
	s.answer("ReleaseNode", reply{err: timeout}, reply{})
	s.doneAt(10 * time.Minute)
	s.run(of(nil))
	s.expectCompleted()
	if s.count("HoldNode") != 3 || s.count("Drain") != 2 || s.count("ReleaseNode") != 2 {
		t.Errorf("it did %v", s.log)
	}
}

func TestMarkThatIsRemovedUnderADrainIsSetAgainThreeTimes(t *testing.T) {
	lost := reply{after: time.Second, err: failing(activities.ErrorNotHolder, "the node does not carry this maintenance's mark")}
	t.Run("twice", func(t *testing.T) {
		s := newSite(t)
		s.answer("Drain", lost, lost, reply{after: time.Minute})
		s.doneAt(10 * time.Minute)
		s.run(of(nil))
		s.expectCompleted()
		if s.count("HoldNode") != 3 || s.count("Drain") != 3 {
			t.Errorf("it did %v", s.log)
		}
		if again := inputOf[activities.HoldInput](s, "HoldNode", 1); again.UID != "uid-1" || !again.Event.Warning {
			t.Errorf("the mark is restored with %+v", again)
		}
	})
	t.Run("for ever", func(t *testing.T) {
		s := newSite(t)
		s.usual["Drain"] = lost
		status := s.run(of(nil))
		s.expectFailure(activities.ErrorNotHolder, "mark")
		if status.Phase != workflows.Failed || s.count("HoldNode") != 4 {
			t.Errorf("the end is %s after %v", status.Phase, s.log)
		}
	})
	t.Run("as the node was replaced", func(t *testing.T) {
		s := newSite(t)
		s.answer("Drain", lost)
		s.answer("HoldNode", reply{}, reply{err: failing(activities.ErrorNodeReplaced, "created anew")})
		status := s.run(of(nil))
		s.expectCompleted()
		if status.Phase != workflows.NodeGone {
			t.Errorf("the end is %s: %s", status.Phase, status.Failure)
		}
	})
}

func TestPodsThatDoNotCompleteAreWaitedForOnlySoLong(t *testing.T) {
	s := newSite(t)
	s.answer("WaitForPods", reply{after: 5 * time.Minute, err: deadline()})
	s.expectAt(time.Minute, workflows.WaitingForPods, `pods "app=batch" to complete`)
	s.doneAt(10 * time.Minute)
	status := s.run(of(input{"waitForPodCompletion": input{"podSelector": "app=batch", "timeout": "5m"}}))
	s.expectCompleted()
	if !strings.Contains(messagesOf(status), "gave up waiting for pods to complete after 5m0s") || s.count("Drain") != 1 {
		t.Errorf("it did %v:\n%s", s.log, messagesOf(status))
	}
}

// activityFailed is the error of an activity that Temporal gave up in a retry state.
func activityFailed(state enums.RetryState, cause error) error {
	converter := temporal.GetDefaultFailureConverter()
	return converter.FailureToError(&failurepb.Failure{
		Message: "activity error", Cause: converter.ErrorToFailure(cause),
		FailureInfo: &failurepb.Failure_ActivityFailureInfo{ActivityFailureInfo: &failurepb.ActivityFailureInfo{RetryState: state}},
	})
}

func TestWholeTimeOfAnActivityIsToldFromOneAttempts(t *testing.T) {
	unavailable := temporal.NewApplicationError("the API server is not there", "ServiceUnavailable")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"the clock ran out":                           {activityFailed(enums.RETRY_STATE_TIMEOUT, deadline()), true},
		"no time for another attempt":                 {activityFailed(enums.RETRY_STATE_TIMEOUT, unavailable), true},
		"no time for another after a lost worker":     {activityFailed(enums.RETRY_STATE_TIMEOUT, temporal.NewHeartbeatTimeoutError()), true},
		"a lost worker":                               {activityFailed(enums.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED, temporal.NewHeartbeatTimeoutError()), false},
		"an error that no attempt heals":              {activityFailed(enums.RETRY_STATE_NON_RETRYABLE_FAILURE, failing("NotHolder", "")), false},
		"not an activity's, but a deadline":           {deadline(), true},
		"neither an activity's error nor a time's up": {errUnknown, false},
	} {
		if got := workflows.TimedOut(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestNodeThatDoesNotEmptyIsGivenBackAndTriedAgain(t *testing.T) {
	s := newSite(t)
	s.answer("Drain", reply{after: 24 * time.Hour}, reply{after: 24 * time.Hour}, reply{after: time.Minute})
	s.signalAt(30*time.Minute, workflows.SignalDrainBlocked, activities.DrainProgress{
		Total: 3, Remaining: 1, Blockers: []activities.Blocker{{Pod: "default/web", Reason: "DisruptionBudget", Message: "budget web allows 0 disruptions"}},
		MoreBlockers: 2,
	})
	s.expectAt(31*time.Minute, workflows.Draining, "pod default/web: budget web allows 0 disruptions (and 2 more pods)")
	s.checkAt(time.Hour+4*time.Minute, func(status workflows.Status) {
		if status.Phase != workflows.Pending || !strings.Contains(status.WaitingFor, "the next attempt at") ||
			status.Slot != nil || status.Drain != nil || status.Attempt != 2 {
			t.Errorf("after the first attempt: %+v", status)
		}
	})
	s.expectAt(time.Hour+6*time.Minute, workflows.Draining, "")
	s.expectAt(2*time.Hour+14*time.Minute, workflows.Pending, "the next attempt at") // the second pause is twice as long
	s.doneAt(3 * time.Hour)
	status := s.run(of(nil))
	s.expectCompleted()
	s.expectLog("slot-request", "HoldNode", "Drain", "ReleaseNode", "slot-release",
		"slot-request", "HoldNode", "Drain", "ReleaseNode", "slot-release",
		"slot-request", "HoldNode", "Drain", "AnnouncePhase", "ReleaseNode", "slot-release")
	for attempt := range 3 {
		if id := testRun + "/" + string(rune('1'+attempt)); s.requested[id] != 1 {
			t.Errorf("request %s was sent %d times", id, s.requested[id])
		}
	}
	if again := inputOf[activities.HoldInput](s, "HoldNode", 1); again.UID != "" {
		t.Errorf("the second attempt insists on node %s", again.UID)
	}
	if status.Attempt != 3 {
		t.Errorf("attempt %d", status.Attempt)
	}
}

func TestNodeThatDoesNotEmptyFailsWhereTheEscalationSaysSo(t *testing.T) {
	s := newSite(t)
	s.answer("Drain", reply{after: 24 * time.Hour})
	s.signalAt(10*time.Minute, workflows.SignalDrainBlocked, activities.DrainProgress{
		Blockers: []activities.Blocker{{Pod: "default/web", Message: "budget web allows 0 disruptions"}},
	})
	s.run(of(input{"drain": input{"escalation": []input{{"after": "30m", "do": "fail"}}}}))
	s.expectFailure(workflows.ErrorMaintenanceFailed, "pod default/web: budget web allows 0 disruptions")
}

func TestDrainWithoutEscalationIsNotBounded(t *testing.T) {
	s := newSite(t)
	s.answer("Drain", reply{after: 5 * 24 * time.Hour})
	s.doneAt(6 * 24 * time.Hour)
	s.run(of(input{"readyTimeout": "0s", "drain": input{"escalation": []input{}}}))
	s.expectCompleted()
}

func TestExternalDrainWaitsForSomebodysWord(t *testing.T) {
	external := func(rung string) input {
		return of(input{"drain": input{"mode": "external", "escalation": []input{{"after": "1h", "do": rung}}}})
	}
	t.Run("drained", func(t *testing.T) {
		s := newSite(t)
		s.expectAt(time.Minute, workflows.Draining, `the signal "drained"`)
		s.signalAt(2*time.Minute, workflows.MsgDrained, input{"by": "robot"})
		s.expectAt(3*time.Minute, workflows.Ready, "")
		s.doneAt(10 * time.Minute)
		s.run(external("giveBack"))
		s.expectCompleted()
		if s.count("Drain") > 0 {
			t.Errorf("it did %v", s.log)
		}
	})
	t.Run("given back, then drained", func(t *testing.T) {
		s := newSite(t)
		s.expectAt(time.Hour+time.Minute, workflows.Pending, "the next attempt")
		s.expectAt(time.Hour+7*time.Minute, workflows.Draining, `the signal "drained"`)
		s.signalAt(time.Hour+8*time.Minute, workflows.MsgDrained, nil)
		s.doneAt(time.Hour + 10*time.Minute)
		s.run(external("giveBack"))
		s.expectCompleted()
	})
	t.Run("failed", func(t *testing.T) {
		s := newSite(t)
		s.run(external("fail"))
		s.expectFailure(workflows.ErrorMaintenanceFailed, "not empty after 1h0m0s")
	})
	t.Run("said too early", func(t *testing.T) {
		s := newSite(t)
		s.answer("HoldNode", reply{after: 10 * time.Minute})
		s.signalAt(time.Minute, workflows.MsgDrained, nil)
		s.expectAt(20*time.Minute, workflows.Draining, `the signal "drained"`)
		s.signalAt(21*time.Minute, workflows.MsgDrained, nil)
		s.doneAt(30 * time.Minute)
		status := s.run(external("giveBack"))
		s.expectCompleted()
		if got := received(status, workflows.MsgDrained); len(got) != 2 || !strings.HasPrefix(got[0], "ignored: ") {
			t.Errorf("drained: %v", got)
		}
	})
}

func TestFreezeHoldsARunningMaintenance(t *testing.T) {
	freeze := workflows.Hold{Reasons: []string{"frozen by amy: storm", "frozen by bob"}}
	t.Run("before the cordon", func(t *testing.T) {
		s := newSite(t)
		s.freeze = freeze.Reasons
		s.expectAt(time.Hour, workflows.Scheduled, "a thaw: frozen by amy: storm; frozen by bob")
		s.at(time.Hour, func() {
			if s.count("HoldNode") > 0 {
				t.Error("a frozen maintenance cordoned")
			}
		})
		s.signalAt(2*time.Hour, workflows.SignalHold, workflows.Hold{})
		s.doneAt(3 * time.Hour)
		s.run(of(nil))
		s.expectCompleted()
	})
	t.Run("during the drain", func(t *testing.T) {
		s := newSite(t)
		s.usual["Drain"] = reply{after: 20 * time.Minute}
		s.signalAt(10*time.Minute, workflows.SignalHold, freeze)
		s.expectAt(11*time.Minute, workflows.Draining, "a thaw")
		s.signalAt(30*time.Minute, workflows.SignalHold, workflows.Hold{})
		s.expectAt(31*time.Minute, workflows.Draining, "")
		s.expectAt(51*time.Minute, workflows.Ready, "")
		s.doneAt(2 * time.Hour)
		s.run(of(nil))
		s.expectCompleted()
		if s.count("Drain") != 2 {
			t.Errorf("it did %v", s.log)
		}
	})
	t.Run("while pods complete", func(t *testing.T) {
		s := newSite(t)
		s.usual["WaitForPods"] = reply{after: 20 * time.Minute}
		s.signalAt(10*time.Minute, workflows.SignalHold, freeze)
		s.signalAt(15*time.Minute, workflows.SignalHold, workflows.Hold{})
		s.doneAt(2 * time.Hour)
		s.run(of(input{"waitForPodCompletion": input{"podSelector": "a=b"}}))
		s.expectCompleted()
		if s.count("WaitForPods") != 2 {
			t.Errorf("it did %v", s.log)
		}
	})
	t.Run("the escalation waits too", func(t *testing.T) {
		s := newSite(t)
		s.signalAt(10*time.Minute, workflows.SignalHold, freeze)
		s.at(2*time.Hour, func() {
			if s.count("ReleaseNode") > 0 {
				t.Error("a frozen maintenance gave its node back")
			}
		})
		s.expectAt(2*time.Hour, workflows.Draining, "a thaw")
		s.signalAt(3*time.Hour, workflows.SignalHold, workflows.Hold{})
		s.signalAt(4*time.Hour, workflows.MsgDrained, nil)
		s.doneAt(4*time.Hour + time.Minute)
		s.run(of(input{"drain": input{"mode": "external"}}))
		s.expectCompleted()
	})
	t.Run("the return too", func(t *testing.T) {
		s := newSite(t)
		s.signalAt(10*time.Minute, workflows.SignalHold, freeze)
		s.doneAt(20 * time.Minute)
		s.signalAt(25*time.Minute, workflows.MsgFailed, nil)
		late := s.updateAt(26*time.Minute, workflows.MsgCancel)
		s.at(2*time.Hour, func() {
			if s.count("ReleaseNode") > 0 {
				t.Error("a frozen maintenance gave its node back")
			}
		})
		s.expectAt(2*time.Hour, workflows.Releasing, "a thaw")
		s.signalAt(3*time.Hour, workflows.SignalHold, workflows.Hold{})
		status := s.run(of(input{"readyTimeout": "10h"}))
		s.expectCompleted()
		if got := received(status, workflows.MsgFailed); len(got) != 1 || !strings.HasPrefix(got[0], "ignored: ") {
			t.Errorf("failed after done: %v", got)
		}
		if late.rejected == nil {
			t.Errorf("cancel after done: %+v", late)
		}
	})
	t.Run("ends with the slot", func(t *testing.T) {
		// The scheduler tells holders only: one that gave its slot back under a freeze hears of no thaw.
		s := newSite(t)
		s.answer("Drain", reply{after: 24 * time.Hour}, reply{after: time.Minute})
		s.answer("ReleaseNode", reply{after: 10 * time.Second})
		s.signalAt(time.Hour+5*time.Second, workflows.SignalHold, freeze)
		s.expectAt(time.Hour+10*time.Minute, workflows.Ready, "")
		s.at(2*time.Hour, func() {
			if s.status().Phase != workflows.Ready { // it would never end by itself
				s.env.SignalWorkflow(workflows.SignalHold, workflows.Hold{})
			}
		})
		s.doneAt(3 * time.Hour)
		s.run(of(input{"readyTimeout": "0s"}))
		s.expectCompleted()
	})
}
