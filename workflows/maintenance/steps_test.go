package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/workflowtest"
)

func TestStepThatFailsEndsTheMaintenanceByItsErrorType(t *testing.T) {
	waits := workflowtest.Input{"waitForPodCompletion": workflowtest.Input{"podSelector": "a=b"}}
	for name, c := range map[string]struct {
		activity, kind string
		in             workflowtest.Input
		phase          api.Phase
	}{
		"no node to cordon":              {"HoldNode", api.ErrorNodeGone, nil, api.NodeGone},
		"another node to cordon":         {"HoldNode", api.ErrorNodeReplaced, nil, api.NodeGone},
		"no permission to cordon":        {"HoldNode", api.ErrorMissingPermission, nil, api.Failed},
		"node gone during the drain":     {"Drain", api.ErrorNodeGone, nil, api.NodeGone},
		"node replaced during the drain": {"Drain", api.ErrorNodeReplaced, nil, api.NodeGone},
		"no permission to evict":         {"Drain", api.ErrorMissingPermission, nil, api.Failed},
		"node gone while pods complete":  {"WaitForPods", api.ErrorNodeGone, waits, api.NodeGone},
		"no permission to see pods":      {"WaitForPods", api.ErrorMissingPermission, waits, api.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.Answer(c.activity, workflowtest.Reply{After: time.Minute, Err: workflowtest.Failing(c.kind, "what went wrong")})
			status := s.Run(workflowtest.InputWith(c.in))
			if status.Phase != c.phase || !strings.Contains(status.Failure, "what went wrong") {
				t.Errorf("the end is %s: %s", status.Phase, status.Failure)
			}
			if c.phase == api.Failed {
				s.ExpectFailure(c.kind, "what went wrong")
			} else {
				s.ExpectCompleted()
			}
		})
	}
}

func TestStepIsRepeatedAfterAnErrorThatHeals(t *testing.T) {
	s := workflowtest.New(t)
	timeout := temporal.NewApplicationError("the API server is not there", "ServiceUnavailable")
	s.Answer("HoldNode", workflowtest.Reply{Err: timeout}, workflowtest.Reply{Err: timeout}, workflowtest.Reply{})
	s.Answer("Drain", workflowtest.Reply{Err: timeout}, workflowtest.Reply{After: time.Minute})
	s.Answer("ReleaseNode", workflowtest.Reply{Err: timeout}, workflowtest.Reply{})
	s.DoneAt(10 * time.Minute)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if s.Count("HoldNode") != 3 || s.Count("Drain") != 2 || s.Count("ReleaseNode") != 2 {
		t.Errorf("it did %v", s.Log)
	}
}

func TestMarkThatIsRemovedUnderADrainIsSetAgainThreeTimes(t *testing.T) {
	lost := workflowtest.Reply{After: time.Second, Err: workflowtest.Failing(api.ErrorNotHolder, "the node does not carry this maintenance's mark")}
	t.Run("twice", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("Drain", lost, lost, workflowtest.Reply{After: time.Minute})
		s.DoneAt(10 * time.Minute)
		s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if s.Count("HoldNode") != 3 || s.Count("Drain") != 3 {
			t.Errorf("it did %v", s.Log)
		}
		if again := workflowtest.InputOf[node.HoldInput](s, "HoldNode", 1); again.UID != "uid-1" || !again.Event.Warning {
			t.Errorf("the mark is restored with %+v", again)
		}
	})
	t.Run("for ever", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Usual["Drain"] = lost
		status := s.Run(workflowtest.InputWith(nil))
		s.ExpectFailure(api.ErrorNotHolder, "mark")
		if status.Phase != api.Failed || s.Count("HoldNode") != 4 {
			t.Errorf("the end is %s after %v", status.Phase, s.Log)
		}
	})
	t.Run("as the node was replaced", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("Drain", lost)
		s.Answer("HoldNode", workflowtest.Reply{}, workflowtest.Reply{Err: workflowtest.Failing(api.ErrorNodeReplaced, "created anew")})
		status := s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if status.Phase != api.NodeGone {
			t.Errorf("the end is %s: %s", status.Phase, status.Failure)
		}
	})
}

func TestPodsThatDoNotCompleteAreWaitedForOnlySoLong(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("WaitForPods", workflowtest.Reply{After: 5 * time.Minute, Err: deadline()})
	s.ExpectAt(time.Minute, api.WaitingForPods, `pods "app=batch" to complete`)
	s.DoneAt(10 * time.Minute)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"waitForPodCompletion": workflowtest.Input{"podSelector": "app=batch", "timeout": "5m"}}))
	s.ExpectCompleted()
	if !strings.Contains(workflowtest.MessagesOf(status), "gave up waiting for pods to complete after 5m0s") || s.Count("Drain") != 1 {
		t.Errorf("it did %v:\n%s", s.Log, workflowtest.MessagesOf(status))
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

func TestAnActivityThatTimedOutIsDistinguishedFromOneAttempt(t *testing.T) {
	unavailable := temporal.NewApplicationError("the API server is not there", "ServiceUnavailable")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"the clock ran out":                           {activityFailed(enums.RETRY_STATE_TIMEOUT, deadline()), true},
		"no time for another attempt":                 {activityFailed(enums.RETRY_STATE_TIMEOUT, unavailable), true},
		"no time for another after a lost worker":     {activityFailed(enums.RETRY_STATE_TIMEOUT, temporal.NewHeartbeatTimeoutError()), true},
		"a lost worker":                               {activityFailed(enums.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED, temporal.NewHeartbeatTimeoutError()), false},
		"an error that no attempt heals":              {activityFailed(enums.RETRY_STATE_NON_RETRYABLE_FAILURE, workflowtest.Failing("NotHolder", "")), false},
		"not an activity's, but a deadline":           {deadline(), true},
		"neither an activity's error nor a time's up": {errUnknown, false},
	} {
		if got := call.IsOverdue(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestNodeThatDoesNotEmptyIsGivenBackAndTriedAgain(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: time.Minute})
	s.SignalAt(30*time.Minute, api.SignalDrainBlocked, api.DrainProgress{
		Total: 3, Remaining: 1, Blockers: []api.Blocker{{Pod: "default/web", Reason: "DisruptionBudget", Message: "budget web allows 0 disruptions"}},
		MoreBlockers: 2,
	})
	s.ExpectAt(31*time.Minute, api.Draining, "pod default/web: budget web allows 0 disruptions (and 2 more pods)")
	s.CheckAt(time.Hour+4*time.Minute, func(status api.Status) {
		if status.Phase != api.Pending || !strings.Contains(status.WaitingFor, "the next attempt at") ||
			status.Slot != nil || status.Drain != nil || status.Attempt != 2 {
			t.Errorf("after the first attempt: %+v", status)
		}
	})
	s.ExpectAt(time.Hour+6*time.Minute, api.Draining, "")
	s.ExpectAt(2*time.Hour+14*time.Minute, api.Pending, "the next attempt at") // the second pause is twice as long
	s.DoneAt(3 * time.Hour)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	s.ExpectLog("slot-request", "HoldNode", "Drain", "ReleaseNode", "slot-release",
		"slot-request", "HoldNode", "Drain", "ReleaseNode", "slot-release",
		"slot-request", "HoldNode", "Drain", "AnnouncePhase", "ReleaseNode", "slot-release")
	for attempt := range 3 {
		if id := workflowtest.RunID + "/" + string(rune('1'+attempt)); s.Requested[id] != 1 {
			t.Errorf("request %s was sent %d times", id, s.Requested[id])
		}
	}
	if again := workflowtest.InputOf[node.HoldInput](s, "HoldNode", 1); again.UID != "" {
		t.Errorf("the second attempt insists on node %s", again.UID)
	}
	if status.Attempt != 3 {
		t.Errorf("attempt %d", status.Attempt)
	}
}

func TestNodeThatDoesNotEmptyFailsWhereTheEscalationSaysSo(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour})
	s.SignalAt(10*time.Minute, api.SignalDrainBlocked, api.DrainProgress{
		Blockers: []api.Blocker{{Pod: "default/web", Message: "budget web allows 0 disruptions"}},
	})
	s.Run(workflowtest.InputWith(workflowtest.Input{"drain": workflowtest.Input{"escalation": []workflowtest.Input{{"after": "30m", "do": "fail"}}}}))
	s.ExpectFailure(api.ErrorNotDrained, "pod default/web: budget web allows 0 disruptions")
}

func TestDrainWithoutEscalationIsNotBounded(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{After: 5 * 24 * time.Hour})
	s.DoneAt(6 * 24 * time.Hour)
	s.Run(workflowtest.InputWith(workflowtest.Input{"readyTimeout": "0s", "drain": workflowtest.Input{"escalation": []workflowtest.Input{}}}))
	s.ExpectCompleted()
}

func TestExternalDrainWaitsForSomebodysWord(t *testing.T) {
	external := func(rung string) workflowtest.Input {
		return workflowtest.InputWith(workflowtest.Input{"drain": workflowtest.Input{"mode": "external", "escalation": []workflowtest.Input{{"after": "1h", "do": rung}}}})
	}
	t.Run("drained", func(t *testing.T) {
		s := workflowtest.New(t)
		s.ExpectAt(time.Minute, api.Draining, `the signal "drained"`)
		s.SignalAt(2*time.Minute, api.MsgDrained, workflowtest.Input{"by": "robot"})
		s.ExpectAt(3*time.Minute, api.Ready, "")
		s.DoneAt(10 * time.Minute)
		s.Run(external("giveBack"))
		s.ExpectCompleted()
		if s.Count("Drain") > 0 {
			t.Errorf("it did %v", s.Log)
		}
	})
	t.Run("given back, then drained", func(t *testing.T) {
		s := workflowtest.New(t)
		s.ExpectAt(time.Hour+time.Minute, api.Pending, "the next attempt")
		s.ExpectAt(time.Hour+7*time.Minute, api.Draining, `the signal "drained"`)
		s.SignalAt(time.Hour+8*time.Minute, api.MsgDrained, nil)
		s.DoneAt(time.Hour + 10*time.Minute)
		s.Run(external("giveBack"))
		s.ExpectCompleted()
	})
	t.Run("failed", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Run(external("fail"))
		s.ExpectFailure(api.ErrorNotDrained, "not empty after 1h0m0s")
	})
	t.Run("said too early", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("HoldNode", workflowtest.Reply{After: 10 * time.Minute})
		s.SignalAt(time.Minute, api.MsgDrained, nil)
		s.ExpectAt(20*time.Minute, api.Draining, `the signal "drained"`)
		s.SignalAt(21*time.Minute, api.MsgDrained, nil)
		s.DoneAt(30 * time.Minute)
		status := s.Run(external("giveBack"))
		s.ExpectCompleted()
		if got := workflowtest.EffectsOf(status, api.MsgDrained); len(got) != 2 || !strings.HasPrefix(got[0], "ignored: ") {
			t.Errorf("drained: %v", got)
		}
	})
}

func TestFreezeHoldsARunningMaintenance(t *testing.T) {
	freeze := []string{"frozen by amy: storm", "frozen by bob"}
	t.Run("before the cordon", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Freeze = freeze
		s.ExpectAt(time.Hour, api.Scheduled, "a thaw: frozen by amy: storm; frozen by bob")
		s.At(time.Hour, func() {
			if s.Count("HoldNode") > 0 {
				t.Error("a frozen maintenance cordoned")
			}
		})
		s.HoldAt(2 * time.Hour)
		s.DoneAt(3 * time.Hour)
		s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
	})
	t.Run("during the drain", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Usual["Drain"] = workflowtest.Reply{After: 20 * time.Minute}
		s.HoldAt(10*time.Minute, freeze...)
		s.ExpectAt(11*time.Minute, api.Draining, "a thaw")
		s.HoldAt(30 * time.Minute)
		s.ExpectAt(31*time.Minute, api.Draining, "")
		s.ExpectAt(51*time.Minute, api.Ready, "")
		s.DoneAt(2 * time.Hour)
		s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if s.Count("Drain") != 2 {
			t.Errorf("it did %v", s.Log)
		}
	})
	t.Run("while pods complete", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Usual["WaitForPods"] = workflowtest.Reply{After: 20 * time.Minute}
		s.HoldAt(10*time.Minute, freeze...)
		s.HoldAt(15 * time.Minute)
		s.DoneAt(2 * time.Hour)
		s.Run(workflowtest.InputWith(workflowtest.Input{"waitForPodCompletion": workflowtest.Input{"podSelector": "a=b"}}))
		s.ExpectCompleted()
		if s.Count("WaitForPods") != 2 {
			t.Errorf("it did %v", s.Log)
		}
	})
	t.Run("the escalation waits too", func(t *testing.T) {
		s := workflowtest.New(t)
		s.HoldAt(10*time.Minute, freeze...)
		s.At(2*time.Hour, func() {
			if s.Count("ReleaseNode") > 0 {
				t.Error("a frozen maintenance gave its node back")
			}
		})
		s.ExpectAt(2*time.Hour, api.Draining, "a thaw")
		s.HoldAt(3 * time.Hour)
		s.SignalAt(4*time.Hour, api.MsgDrained, nil)
		s.DoneAt(4*time.Hour + time.Minute)
		s.Run(workflowtest.InputWith(workflowtest.Input{"drain": workflowtest.Input{"mode": "external"}}))
		s.ExpectCompleted()
	})
	t.Run("the return too", func(t *testing.T) {
		s := workflowtest.New(t)
		s.HoldAt(10*time.Minute, freeze...)
		s.DoneAt(20 * time.Minute)
		s.SignalAt(25*time.Minute, api.MsgFailed, nil)
		late := s.UpdateAt(26*time.Minute, api.MsgCancel)
		s.At(2*time.Hour, func() {
			if s.Count("ReleaseNode") > 0 {
				t.Error("a frozen maintenance gave its node back")
			}
		})
		s.ExpectAt(2*time.Hour, api.Releasing, "a thaw")
		s.HoldAt(3 * time.Hour)
		status := s.Run(workflowtest.InputWith(workflowtest.Input{"readyTimeout": "10h"}))
		s.ExpectCompleted()
		if got := workflowtest.EffectsOf(status, api.MsgFailed); len(got) != 1 || !strings.HasPrefix(got[0], "ignored: ") {
			t.Errorf("failed after done: %v", got)
		}
		if late.Rejected == nil {
			t.Errorf("cancel after done: %+v", late)
		}
	})
	t.Run("ends with the slot", func(t *testing.T) {
		// The scheduler tells holders only: one that gave its slot back under a freeze hears of no thaw.
		s := workflowtest.New(t)
		s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: time.Minute})
		s.Answer("ReleaseNode", workflowtest.Reply{After: 10 * time.Second})
		s.HoldAt(time.Hour+5*time.Second, freeze...)
		s.ExpectAt(time.Hour+10*time.Minute, api.Ready, "")
		s.At(2*time.Hour, func() {
			if s.Status().Phase != api.Ready { // it would never end by itself
				s.Hold()
			}
		})
		s.DoneAt(3 * time.Hour)
		s.Run(workflowtest.InputWith(workflowtest.Input{"readyTimeout": "0s"}))
		s.ExpectCompleted()
	})
}
