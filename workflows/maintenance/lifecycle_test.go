package maintenance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	checkactivity "drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/workflows/maintenance"
	"drydock.dev/drydock/workflows/workflowtest"
)

// states are those that were announced, in order.
func states(status api.Status) string {
	var texts []string
	for _, s := range status.States {
		texts = append(texts, string(s.State))
	}
	return strings.Join(texts, " ")
}

func expectStates(t *testing.T, status api.Status, want ...notices.State) {
	t.Helper()
	var texts []string
	for _, s := range want {
		texts = append(texts, string(s))
	}
	if got := states(status); got != strings.Join(texts, " ") {
		t.Errorf("states %s\n  want %s", got, strings.Join(texts, " "))
	}
	for i, s := range status.States {
		if s.Sequence != i+1 || !strings.HasPrefix(s.ID, status.WorkflowID+"/"+status.RunID+"/") {
			t.Errorf("state %d is %+v", i, s)
		}
	}
}

func TestStatesOfNotifyMaintenance(t *testing.T) {
	s := workflowtest.New(t)
	s.Usual["Drain"] = workflowtest.Reply{After: 15 * time.Minute}
	s.DoneAt(time.Hour)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"sla": workflowtest.Input{"after": "10m"}, "validation": workflowtest.Input{"newBootID": true}}))
	s.ExpectCompleted()
	expectStates(t, status, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.SLAExpired,
		notices.ObjectsDrained, notices.Validating, notices.MaintenanceEnded, notices.MaintenanceComplete)
	s.ExpectPhases(status, api.Pending, api.Scheduled, api.Cordoning, api.Draining, api.Ready,
		api.Validating, api.Releasing, api.Completed)
	if taken(status) != "expireSLA" || status.Force != "" {
		t.Errorf("took %q, force %q", taken(status), status.Force)
	}
}

func TestStatesOfAMaintenanceThatIsNotCompleted(t *testing.T) {
	t.Run("cancelled", func(t *testing.T) {
		s := workflowtest.New(t)
		endless(s)
		s.SignalAt(time.Minute, api.MsgCancel, nil)
		status := s.Run(workflowtest.InputWith(nil))
		expectStates(t, status, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted,
			notices.MaintenanceEnded, notices.MaintenanceCancelled)
	})
	t.Run("failed by its requestor, tried again", func(t *testing.T) {
		s := workflowtest.New(t)
		s.SignalAt(5*time.Minute, api.MsgFailed, workflowtest.Input{"reason": "no power"})
		s.SignalAt(6*time.Minute, api.MsgRetry, nil)
		s.DoneAt(7 * time.Minute)
		status := s.Run(workflowtest.InputWith(nil))
		expectStates(t, status, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted,
			notices.ObjectsDrained, notices.MaintenanceIncomplete, notices.ObjectsDrained, notices.MaintenanceEnded, notices.MaintenanceComplete)
	})
	t.Run("an SLA with an action", func(t *testing.T) {
		s := workflowtest.New(t)
		endless(s)
		status := s.Run(workflowtest.InputWith(workflowtest.Input{"sla": workflowtest.Input{"after": "10m", "do": "fail"}}))
		s.ExpectFailure(api.ErrorNotDrained, "not empty after 10m0s")
		expectStates(t, status, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.SLAExpired,
			notices.Escalated, notices.MaintenanceIncomplete, notices.MaintenanceEnded, notices.MaintenanceCancelled)
	})
}

func TestApproval(t *testing.T) {
	asked := workflowtest.InputWith(workflowtest.Input{"approval": true, "approvalReminder": "1h"})
	t.Run("approved", func(t *testing.T) {
		s := workflowtest.New(t)
		s.ExpectAt(time.Minute, api.AwaitingApproval, "approve")
		s.SignalAt(150*time.Minute, api.MsgApprove, workflowtest.Input{"by": "amy", "comment": "fine"})
		late := s.UpdateAt(151*time.Minute, api.MsgDeny)
		s.DoneAt(4 * time.Hour)
		status := s.Run(asked)
		s.ExpectCompleted()
		if a := status.Approval; a == nil || a.By != "amy" || a.Comment != "fine" || a.Denied {
			t.Errorf("approval %+v", a)
		}
		if late.Rejected == nil || !strings.Contains(late.Rejected.Error(), "approved already") {
			t.Errorf("late: %+v", late)
		}
		if got := states(status); !strings.HasPrefix(got, "MaintenanceUnknown AwaitingApproval ApprovalReminder ApprovalReminder MaintenanceScheduled ") {
			t.Errorf("states %s", got)
		}
	})
	t.Run("denied", func(t *testing.T) {
		s := workflowtest.New(t)
		s.SignalAt(time.Minute, api.MsgDeny, workflowtest.Input{"by": "amy", "comment": "not now"})
		status := s.Run(asked)
		s.ExpectCancelled()
		s.ExpectLog("JudgeApproval")
		if status.Failure != "denied by amy: not now" {
			t.Errorf("failure %q", status.Failure)
		}
		expectStates(t, status, notices.MaintenanceUnknown, notices.AwaitingApproval, notices.MaintenanceEnded, notices.MaintenanceCancelled)
	})
	t.Run("cancelled", func(t *testing.T) {
		s := workflowtest.New(t)
		s.SignalAt(time.Minute, api.MsgCancel, nil)
		s.Run(asked)
		s.ExpectCancelled()
	})
	t.Run("not asked for", func(t *testing.T) {
		s := workflowtest.New(t)
		early := s.UpdateAt(time.Second, api.MsgApprove)
		s.DoneAt(10 * time.Minute)
		s.Run(workflowtest.InputWith(nil))
		if early.Rejected == nil {
			t.Error("an approval nobody asked for was taken")
		}
	})
}

func TestNoSlotIsAskedForBeforeItsTime(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Conditions = true
	start := s.Env.Now()
	s.ExpectAt(47*time.Hour, api.Pending, "not before")
	s.DoneAt(50 * time.Hour)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"notBefore": start.Add(48 * time.Hour).UTC().Format(time.RFC3339)}))
	s.ExpectCompleted()
	if asked := s.RequestTimes[0].Sub(start); asked < 48*time.Hour-time.Second || asked > 48*time.Hour+time.Minute {
		t.Errorf("it asked for a slot after %s", asked)
	}
	first := workflowtest.InputOf[node.ConditionsInput](s, "ShowConditions", 0)
	if len(first.Conditions) != 1 || first.Conditions[0].Type != node.MaintenancePlanned || !first.Conditions[0].True {
		t.Errorf("conditions %+v", first)
	}
	drained := workflowtest.InputOf[node.ConditionsInput](s, "ShowConditions", -1)
	if !slices.ContainsFunc(drained.Conditions, func(c node.Condition) bool { return c.Type == node.Drained && c.True }) {
		t.Errorf("conditions %+v", drained)
	}
	if scheduled := status.States[1]; scheduled.State != notices.MaintenanceScheduled || !strings.Contains(scheduled.Message, "not before") {
		t.Errorf("%+v", scheduled)
	}
}

func hookPlan(name string, change func(*validation.Hook)) validation.Hook {
	plan := validation.Hook{
		Name: name, Kind: validation.KindHTTP, Blocking: true, Deadline: period.Duration(5 * time.Minute), OnFailure: validation.FailMaintenance,
	}
	if change != nil {
		change(&plan)
	}
	return plan
}

func closing(p *validation.Hook) { p.HasCleanup = true }

// called are the hooks called, their closings with a minus.
func called(s *workflowtest.Site) string {
	var texts []string
	for i := range s.Count("CallHook") {
		in := workflowtest.InputOf[checkactivity.HookInput](s, "CallHook", i)
		texts = append(texts, map[bool]string{true: "-", false: ""}[in.Cleanup]+in.Hook)
	}
	return strings.Join(texts, " ")
}

func outcomes(status api.Status) string {
	var texts []string
	for _, h := range status.Hooks {
		texts = append(texts, h.Name+" "+h.When+" "+h.Outcome)
	}
	return strings.Join(texts, "; ")
}

func TestHooksAreCalledAndClosed(t *testing.T) {
	all := workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"beforeCordon": []string{"silence"}, "afterDrain": []string{"move"}, "beforeRelease": []string{"check"}}})
	prepare := func(t *testing.T) *workflowtest.Site {
		s := workflowtest.New(t)
		s.Prepared.Hooks = []validation.Hook{hookPlan("silence", closing), hookPlan("move", closing), hookPlan("check", nil)}
		s.Answer("CallHook", workflowtest.Reply{Value: checks.Outcome{Captured: "id-7"}})
		return s
	}
	t.Run("completed", func(t *testing.T) {
		s := prepare(t)
		s.DoneAt(10 * time.Minute)
		status := s.Run(all)
		s.ExpectCompleted()
		if got := called(s); got != "silence move check -move -silence" {
			t.Errorf("called %s", got)
		}
		if last := workflowtest.InputOf[checkactivity.HookInput](s, "CallHook", -1); last.Subject.Captured != "id-7" || last.Subject.Node != "n1" {
			t.Errorf("the closing got %+v", last.Subject)
		}
		want := "silence beforeCordon done; move afterDrain done; check beforeRelease done; move closing done; silence closing done"
		if got := outcomes(status); got != want {
			t.Errorf("hooks %s", got)
		}
	})
	t.Run("cancelled while it drains", func(t *testing.T) {
		s := prepare(t)
		endless(s)
		s.SignalAt(time.Minute, api.MsgCancel, nil)
		s.Run(all)
		if got := called(s); got != "silence -silence" {
			t.Errorf("called %s", got)
		}
	})
	t.Run("given back", func(t *testing.T) {
		s := prepare(t)
		s.Answer("Drain", workflowtest.Reply{After: 2 * time.Hour})
		s.DoneAt(3 * time.Hour)
		s.Run(all)
		s.ExpectCompleted()
		if got := called(s); got != "silence -silence silence move check -move -silence" {
			t.Errorf("called %s", got)
		}
	})
}

func TestAHookThatFails(t *testing.T) {
	failing := temporal.NewNonRetryableApplicationError("503", api.ErrorHookFailed, nil)
	t.Run("before the cordon", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Prepared.Hooks = []validation.Hook{hookPlan("silence", closing)}
		s.Answer("CallHook", workflowtest.Reply{Err: failing})
		s.Run(workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"beforeCordon": []string{"silence"}}}))
		s.ExpectFailure(api.ErrorMaintenanceFailed, "hook silence beforeCordon failed: 503")
		if s.Count("HoldNode") != 0 || called(s) != "silence -silence" {
			t.Errorf("it did %v", s.Log)
		}
	})
	t.Run("that is not that important", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Prepared.Hooks = []validation.Hook{hookPlan("tell", func(p *validation.Hook) { p.OnFailure = validation.ContinueAnyway })}
		s.Answer("CallHook", workflowtest.Reply{Err: failing})
		s.DoneAt(10 * time.Minute)
		status := s.Run(workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"beforeCordon": []string{"tell"}}}))
		s.ExpectCompleted()
		if outcomes(status) != "tell beforeCordon failed: 503" {
			t.Errorf("hooks %s", outcomes(status))
		}
	})
	t.Run("before the release", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Prepared.Hooks = []validation.Hook{hookPlan("check", nil)}
		s.Answer("CallHook", workflowtest.Reply{Err: failing})
		s.DoneAt(10 * time.Minute)
		s.ExpectAt(20*time.Minute, api.Validating, "a decision")
		s.SignalAt(30*time.Minute, api.MsgRetry, nil)
		status := s.Run(workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"beforeRelease": []string{"check"}}}))
		s.ExpectCompleted()
		if outcomes(status) != "check beforeRelease failed: 503; check beforeRelease done" {
			t.Errorf("hooks %s", outcomes(status))
		}
	})
	t.Run("that is skipped", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Prepared.Hooks = []validation.Hook{hookPlan("move", nil)}
		s.Answer("CallHook", workflowtest.Reply{After: 24 * time.Hour})
		s.CheckAt(3*time.Minute, func(status api.Status) {
			if !slices.Equal(status.OpenHooks, []string{"move"}) || !strings.Contains(status.WaitingFor, "hook move") {
				t.Errorf("%v, waits for %q", status.OpenHooks, status.WaitingFor)
			}
		})
		wrong := s.UpdateAt(3*time.Minute, api.MsgSkipHook, workflowtest.Input{"hook": "other"})
		notSignal := s.UpdateAt(3*time.Minute, api.MsgHookDone, workflowtest.Input{"hook": "move"})
		s.SignalAt(4*time.Minute, api.MsgSkipHook, workflowtest.Input{"hook": "move", "by": "amy", "comment": "storage is away"})
		s.DoneAt(10 * time.Minute)
		status := s.Run(workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"afterDrain": []string{"move"}}}))
		s.ExpectCompleted()
		if h := status.Hooks; len(h) != 1 || h[0].By != "amy" || h[0].Outcome != "skipped: storage is away" || s.Count("AbandonHook") != 1 {
			t.Errorf("hooks %+v", h)
		}
		if wrong.Rejected == nil || notSignal.Rejected == nil {
			t.Errorf("%+v %+v", wrong, notSignal)
		}
	})
}

func TestAHookThatWaitsForASignal(t *testing.T) {
	asked := workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"afterDrain": []string{"move"}}})
	prepare := func(t *testing.T) *workflowtest.Site {
		s := workflowtest.New(t)
		s.Prepared.Hooks = []validation.Hook{hookPlan("move", func(p *validation.Hook) { p.Kind = validation.KindSignal })}
		return s
	}
	t.Run("done", func(t *testing.T) {
		s := prepare(t)
		s.SignalAt(3*time.Minute, api.MsgHookDone, workflowtest.Input{"hook": "move"})
		s.DoneAt(10 * time.Minute)
		s.Run(asked)
		s.ExpectCompleted()
	})
	t.Run("failed", func(t *testing.T) {
		s := prepare(t)
		s.SignalAt(3*time.Minute, api.MsgHookDone, workflowtest.Input{"hook": "move", "failed": true, "by": "amy"})
		s.Run(asked)
		s.ExpectFailure(api.ErrorMaintenanceFailed, "declared failed by amy")
	})
	t.Run("nobody says anything", func(t *testing.T) {
		s := prepare(t)
		s.Run(asked)
		s.ExpectFailure(api.ErrorMaintenanceFailed, "no hook-done within 5m0s")
	})
}

func TestAHookThatDoesNotBlock(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Hooks = []validation.Hook{hookPlan("tell", func(p *validation.Hook) { p.Blocking = false; p.HasCleanup = true })}
	s.Answer("CallHook", workflowtest.Reply{After: 4 * time.Minute})
	s.ExpectAt(30*time.Second, api.Draining, "")
	s.DoneAt(10 * time.Minute)
	s.Run(workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"beforeCordon": []string{"tell"}}}))
	s.ExpectCompleted()
	if called(s) != "tell -tell" {
		t.Errorf("called %s", called(s))
	}
}

func TestValidation(t *testing.T) {
	asked := workflowtest.InputWith(workflowtest.Input{"validation": workflowtest.Input{"newBootID": true, "deadline": "20m"}})
	bad := checkactivity.Validated{State: validation.Failed, Results: []validation.Result{{Name: "newBootID", Message: "restart it"}}}
	prepare := func(t *testing.T) *workflowtest.Site {
		s := workflowtest.New(t)
		s.Answer("HoldNode", workflowtest.Reply{Value: node.Held{UID: "uid-1", Mark: "mark-1", BootID: "boot-1"}})
		s.DoneAt(10 * time.Minute)
		return s
	}
	t.Run("passes", func(t *testing.T) {
		s := prepare(t)
		status := s.Run(asked)
		s.ExpectCompleted()
		if in := workflowtest.InputOf[checkactivity.ValidateInput](s, "Validate", 0); in.BootIDBefore != "boot-1" || in.Subject.Node != "n1" {
			t.Errorf("%+v", in)
		}
		if status.Validation.State != validation.Passed || s.Count("Validate") != 1 {
			t.Errorf("%+v", status.Validation)
		}
	})
	t.Run("fails, and is tried again", func(t *testing.T) {
		s := prepare(t)
		s.Answer("Validate", workflowtest.Reply{Value: bad})
		s.CheckAt(15*time.Minute, func(status api.Status) {
			if status.Phase != api.Validating || !strings.Contains(status.Failure, "newBootID: restart it") || len(s.Released) > 0 {
				t.Errorf("%s %q %v", status.Phase, status.Failure, s.Released)
			}
		})
		early := s.UpdateAt(16*time.Minute, api.MsgCancel)
		s.SignalAt(20*time.Minute, api.MsgRetry, nil)
		status := s.Run(asked)
		s.ExpectCompleted()
		if early.Rejected == nil || s.Count("Validate") != 2 {
			t.Errorf("%+v %v", early, s.Log)
		}
		first, second := workflowtest.InputOf[checkactivity.ValidateInput](s, "Validate", 0), workflowtest.InputOf[checkactivity.ValidateInput](s, "Validate", 1)
		if first.Key == second.Key {
			t.Errorf("both validations have the key %s", first.Key)
		}
		if !strings.Contains(states(status), "Validating MaintenanceIncomplete Validating MaintenanceEnded") {
			t.Errorf("states %s", states(status))
		}
	})
	t.Run("fails, and is overruled", func(t *testing.T) {
		s := prepare(t)
		s.Answer("Validate", workflowtest.Reply{Value: bad})
		s.SignalAt(20*time.Minute, api.MsgValidated, workflowtest.Input{"by": "amy"})
		status := s.Run(asked)
		s.ExpectCompleted()
		if !status.Validation.Overruled || s.Count("Validate") != 1 {
			t.Errorf("%+v", status.Validation)
		}
	})
	t.Run("fails, and is released", func(t *testing.T) {
		s := prepare(t)
		s.Answer("Validate", workflowtest.Reply{Value: bad})
		s.SignalAt(20*time.Minute, api.MsgCancel, workflowtest.Input{"release": true, "by": "amy"})
		status := s.Run(asked)
		s.ExpectCancelled()
		if status.Failure != "cancelled by amy" {
			t.Errorf("failure %q", status.Failure)
		}
	})
	t.Run("is not waited for", func(t *testing.T) {
		s := prepare(t)
		s.Answer("Validate", workflowtest.Reply{After: 15 * time.Minute})
		s.SignalAt(12*time.Minute, api.MsgCancel, workflowtest.Input{"release": true})
		s.Run(workflowtest.InputWith(workflowtest.Input{"validation": workflowtest.Input{"newBootID": true, "checks": []string{"smoke"}}}))
		s.ExpectCancelled()
		if s.Count("AbandonChecks") != 1 {
			t.Errorf("it did %v", s.Log)
		}
	})
}

func TestValidationBySignal(t *testing.T) {
	asked := workflowtest.InputWith(workflowtest.Input{"validation": workflowtest.Input{"signal": true, "newBootID": true, "deadline": "30m"}})
	prepare := func(t *testing.T) *workflowtest.Site { return workflowtest.New(t).DoneAt(10 * time.Minute) }
	t.Run("validated", func(t *testing.T) {
		s := prepare(t)
		s.ExpectAt(15*time.Minute, api.Validating, "")
		s.SignalAt(20*time.Minute, api.MsgValidated, workflowtest.Input{"by": "amy"})
		s.Run(asked)
		s.ExpectCompleted()
		if in := workflowtest.InputOf[checkactivity.ValidateInput](s, "Validate", 0); in.Validation.Signal {
			t.Error("the activity waits for the signal too")
		}
	})
	t.Run("declared failed", func(t *testing.T) {
		s := prepare(t)
		s.SignalAt(20*time.Minute, api.MsgValidationFailed, workflowtest.Input{"by": "amy", "comment": "hot"})
		s.ExpectAt(25*time.Minute, api.Validating, "a decision")
		s.SignalAt(30*time.Minute, api.MsgValidated, nil)
		s.Run(asked)
		s.ExpectCompleted()
	})
	t.Run("nobody says anything", func(t *testing.T) {
		s := prepare(t)
		s.CheckAt(45*time.Minute, func(status api.Status) {
			if !strings.Contains(status.Failure, `nobody said "validated" within 30m0s`) {
				t.Errorf("failure %q", status.Failure)
			}
		})
		s.SignalAt(50*time.Minute, api.MsgCancel, workflowtest.Input{"release": true})
		s.Run(asked)
		s.ExpectCancelled()
	})
	t.Run("validated, and it does not hold", func(t *testing.T) {
		s := prepare(t)
		s.Answer("Validate", workflowtest.Reply{After: 24 * time.Hour})
		s.SignalAt(15*time.Minute, api.SignalDrainBlocked, api.DrainProgress{Blockers: []api.Blocker{{Pod: "newBootID", Message: "restart it"}}})
		s.SignalAt(20*time.Minute, api.MsgValidated, nil)
		s.CheckAt(45*time.Minute, func(status api.Status) {
			if !strings.Contains(status.Failure, "newBootID: restart it") {
				t.Errorf("failure %q", status.Failure)
			}
		})
		s.SignalAt(50*time.Minute, api.MsgCancel, workflowtest.Input{"release": true})
		s.Run(asked)
		s.ExpectCancelled()
	})
}

func TestTheTaintGoesBeforeAnythingIsValidated(t *testing.T) {
	for name, wanted := range map[string]workflowtest.Input{
		"daemonSets": {"daemonSets": "all"}, "allocatable": {"allocatable": []workflowtest.Input{{"name": "nvidia.com/gpu", "atLeast": "8"}}},
		"checks": {"checks": []string{"burn-in"}}, "signal": {"signal": true},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.DoneAt(10*time.Minute).SignalAt(20*time.Minute, api.MsgValidated, nil)
			s.Run(workflowtest.InputWith(workflowtest.Input{"drain": workflowtest.Input{"plan": workflowtest.Input{"include": []string{"Default", "DaemonSet"}}}, "validation": wanted}))
			s.ExpectCompleted()
			if s.Count("Untaint") != 1 || slices.Index(s.Log, "Untaint") > slices.Index(s.Log, "Validate") {
				t.Errorf("it did %v", s.Log)
			}
		})
	}
}

func TestEveryValidationLooksWhetherTheNodeIsReady(t *testing.T) {
	for name, c := range map[string]struct {
		wanted workflowtest.Input
		looks  int
	}{
		"beside a signal":      {workflowtest.Input{"signal": true}, 1},
		"beside other looks":   {workflowtest.Input{"newBootID": true}, 1},
		"unless it is not to":  {workflowtest.Input{"signal": true, "ready": false}, 0},
		"alone, if it is said": {workflowtest.Input{"ready": true}, 1},
		"but not of nothing":   {workflowtest.Input{"deadline": "10m"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.DoneAt(10*time.Minute).SignalAt(20*time.Minute, api.MsgValidated, nil)
			s.Run(workflowtest.InputWith(workflowtest.Input{"validation": c.wanted}))
			s.ExpectCompleted()
			if s.Count("Validate") != c.looks {
				t.Fatalf("it did %v", s.Log)
			}
			if c.looks > 0 && !workflowtest.InputOf[checkactivity.ValidateInput](s, "Validate", 0).Validation.LooksAt("Ready") {
				t.Error("it does not look whether the node is Ready")
			}
		})
	}
}

func TestWhatTheConfigurationLacksIsRefused(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Unknown = `notify[0]: the worker's configuration has no channel "pager" (channels)`
	s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, workflowtest.InputWith(workflowtest.Input{"notify": []string{"pager"}}).Payload(t), workflowtest.Raw(""))
	s.ExpectFailure(api.ErrorInvalidSpec, `no channel "pager"`)
	s.ExpectLog()
}

// delivered are the states that a channel got, message by message.
func delivered(s *workflowtest.Site) string {
	var texts []string
	for i := range s.Count("Deliver") {
		for _, e := range workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", i).Events {
			texts = append(texts, string(e.State))
		}
	}
	return strings.Join(texts, " ")
}

func TestAChannelGetsItsEvents(t *testing.T) {
	plan := notices.Channel{Name: "oncall", RetryFor: notices.DefaultRetryFor}
	t.Run("everything in order", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Prepared.Channels = []notices.Channel{plan}
		s.DoneAt(10 * time.Minute)
		s.Run(workflowtest.InputWith(workflowtest.Input{"reason": "firmware"}))
		s.ExpectCompleted()
		want := "MaintenanceUnknown MaintenanceScheduled MaintenanceStarted ObjectsDrained MaintenanceEnded MaintenanceComplete"
		if got := delivered(s); got != want {
			t.Errorf("delivered %s", got)
		}
		in := workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", 0)
		if in.Channel != "oncall" || in.Events[0].Reason != "firmware" || in.Events[0].Node != "n1" || in.Key != "oncall/"+in.Events[0].ID+"/0" {
			t.Errorf("%+v", in)
		}
	})
	t.Run("a dead one does not delay the maintenance", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Prepared.Channels = []notices.Channel{plan}
		var ended time.Duration
		s.Usual["Deliver"] = workflowtest.Reply{After: time.Hour}
		start := s.Env.Now()
		s.DoneAt(10 * time.Minute)
		s.At(11*time.Minute, func() {
			if s.Count("ReleaseNode") == 1 {
				ended = s.Env.Now().Sub(start)
			}
		})
		s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if ended == 0 {
			t.Errorf("it did %v", s.Log)
		}
	})
	t.Run("only what it wants", func(t *testing.T) {
		s := workflowtest.New(t)
		filtered := plan
		filtered.Filter = notices.Filter{Events: []notices.State{notices.MaintenanceStarted, notices.MaintenanceIncomplete}}
		other := plan
		other.Name, other.Filter = "others", notices.Filter{Requestors: []string{"somebody-else"}}
		s.Prepared.Channels = []notices.Channel{filtered, other}
		s.DoneAt(10 * time.Minute)
		s.Run(workflowtest.InputWith(nil))
		if got := delivered(s); got != "MaintenanceStarted" {
			t.Errorf("delivered %s", got)
		}
	})
	t.Run("again and again while a state lasts", func(t *testing.T) {
		s := workflowtest.New(t)
		periodic := plan
		periodic.Schedule = notices.Schedule{Periodic: &notices.Periodic{Interval: period.Duration(time.Hour)}}
		periodic.Filter = notices.Filter{Events: []notices.State{notices.ObjectsDrained}}
		s.Prepared.Channels = []notices.Channel{periodic}
		s.DoneAt(150 * time.Minute)
		s.Run(workflowtest.InputWith(workflowtest.Input{"readyTimeout": "5h"}))
		if got := delivered(s); got != "ObjectsDrained ObjectsDrained ObjectsDrained" {
			t.Errorf("delivered %s", got)
		}
		keys := map[string]bool{}
		for i := range 3 {
			keys[workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", i).Key] = true
		}
		if len(keys) != 3 {
			t.Errorf("keys %v", keys)
		}
	})
	t.Run("only what lasts", func(t *testing.T) {
		s := workflowtest.New(t)
		delayed := plan
		delayed.Schedule = notices.Schedule{OneShot: &notices.OneShot{Delay: period.Duration(5 * time.Minute)}}
		s.Prepared.Channels = []notices.Channel{delayed}
		s.DoneAt(30 * time.Minute)
		s.Run(workflowtest.InputWith(nil))
		if got := delivered(s); got != "ObjectsDrained MaintenanceComplete" {
			t.Errorf("delivered %s", got)
		}
	})
	t.Run("in a thread", func(t *testing.T) {
		s := workflowtest.New(t)
		threaded := plan
		threaded.Thread = notices.ThreadMaintenance
		s.Prepared.Channels = []notices.Channel{threaded}
		s.Answer("Deliver", workflowtest.Reply{Value: notify.Receipt{Thread: "ts-1"}})
		s.DoneAt(10 * time.Minute)
		s.Run(workflowtest.InputWith(nil))
		if first, second := workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", 0), workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", 1); first.Thread != "" || second.Thread != "ts-1" {
			t.Errorf("threads %q and %q", first.Thread, second.Thread)
		}
	})
}

func TestAnAuditRecordIsKept(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Audited = true
	s.DoneAt(10 * time.Minute)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"owner": "team-metal", "ticket": "CHG-1"}))
	s.ExpectCompleted()
	// What is handed over names the maintenance, and says nothing of it.
	if ref := workflowtest.InputOf[api.Reference](s, "KeepRecord", 0); ref.WorkflowID != status.WorkflowID || ref.RunID != status.RunID {
		t.Errorf("the record is to be of %+v", ref)
	}
	r := api.RecordOf(status, "")
	if r.Phase != string(api.Completed) || r.Owner != "team-metal" || r.Ticket != "CHG-1" || r.NodeUID != "uid-1" || len(r.States) != 6 || r.Validate() != nil {
		t.Errorf("record %+v", r)
	}
}

func TestAFailedValidationIsNeverTakenForAPassedOne(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Validate", workflowtest.Reply{Value: checkactivity.Validated{State: validation.Failed, Results: []validation.Result{{Name: "conditions Ready", OK: true}}}})
	s.DoneAt(10 * time.Minute)
	s.CheckAt(20*time.Minute, func(status api.Status) {
		if !strings.Contains(status.Failure, "not for 5m0s before the deadline") {
			t.Errorf("%s: %q", status.Phase, status.Failure)
		}
	})
	s.SignalAt(30*time.Minute, api.MsgCancel, workflowtest.Input{"release": true})
	s.Run(workflowtest.InputWith(workflowtest.Input{"validation": workflowtest.Input{"conditions": []workflowtest.Input{{"type": "Ready"}}, "soak": "5m"}}))
	s.ExpectCancelled()
}

func TestTheLastHooksAreNotTheRequestorsAnyMore(t *testing.T) {
	asked := workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"beforeRelease": []string{"check"}}})
	prepare := func(t *testing.T) *workflowtest.Site {
		s := workflowtest.New(t)
		s.Prepared.Hooks = []validation.Hook{hookPlan("check", nil)}
		return s.DoneAt(10 * time.Minute)
	}
	t.Run("no message keeps the node that cannot", func(t *testing.T) {
		s := prepare(t)
		s.Answer("CallHook", workflowtest.Reply{After: 4 * time.Minute})
		var late []*workflowtest.Outcome
		for _, name := range []string{api.MsgFailed, api.MsgRetry, api.MsgCancel, api.MsgValidated, api.MsgValidationFailed} {
			late = append(late, s.UpdateAt(12*time.Minute, name))
		}
		late = append(late, s.UpdateAt(12*time.Minute, api.MsgJoin, workflowtest.Input{"requestor": "net"}))
		s.ExpectAt(12*time.Minute, api.Validating, "hook check")
		s.Run(asked)
		s.ExpectCompleted()
		for i, out := range late {
			if out.Rejected == nil {
				t.Errorf("message %d was accepted: %+v", i, out)
			}
		}
	})
	t.Run("released meanwhile", func(t *testing.T) {
		s := prepare(t)
		s.Answer("CallHook", workflowtest.Reply{After: 4 * time.Minute})
		s.SignalAt(12*time.Minute, api.MsgCancel, workflowtest.Input{"release": true})
		status := s.Run(asked)
		s.ExpectCancelled()
		if strings.Contains(states(status), "MaintenanceComplete") {
			t.Errorf("states %s", states(status))
		}
	})
	t.Run("failed after the validation was overruled", func(t *testing.T) {
		s := prepare(t)
		failing := temporal.NewNonRetryableApplicationError("503", api.ErrorHookFailed, nil)
		s.Answer("CallHook", workflowtest.Reply{Err: failing})
		s.Answer("Validate", workflowtest.Reply{Value: checkactivity.Validated{State: validation.Failed}})
		s.SignalAt(20*time.Minute, api.MsgValidated, nil)
		s.SignalAt(30*time.Minute, api.MsgRetry, nil)
		s.Run(workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"beforeRelease": []string{"check"}}, "validation": workflowtest.Input{"newBootID": true}}))
		s.ExpectCompleted()
		if s.Count("CallHook") != 2 {
			t.Errorf("it did %v", s.Log)
		}
	})
}

func TestConditionsGoWhereTheNodeWasNeverHeld(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Conditions = true
	s.SignalAt(time.Hour, api.MsgCancel, nil)
	s.Run(workflowtest.InputWith(workflowtest.Input{"notBefore": s.Env.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)}))
	s.ExpectCancelled()
	if last := workflowtest.InputOf[node.ConditionsInput](s, "ShowConditions", -1); len(last.Conditions) != 0 || s.Count("ShowConditions") != 2 {
		t.Errorf("last %+v of %v", last, s.Log)
	}
}

func TestConditionsThatTheReleaseLeftAreTakenOffAfterIt(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Conditions = true
	s.Answer("ReleaseNode", workflowtest.Reply{Value: node.Released{ConditionsLeft: true}})
	s.DoneAt(time.Hour)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if last := workflowtest.InputOf[node.ConditionsInput](s, "ShowConditions", -1); len(last.Conditions) != 0 || s.Log[len(s.Log)-1] == "ReleaseNode" {
		t.Errorf("last %+v of %v", last, s.Log)
	}
}

func TestEscalateLeavesTheSLAItsTime(t *testing.T) {
	s := workflowtest.New(t)
	endless(s)
	s.SignalAt(5*time.Minute, api.MsgEscalate, nil)
	s.CheckAt(6*time.Minute, func(status api.Status) {
		if taken(status) != "bypassBudget" {
			t.Errorf("took %s", taken(status))
		}
	})
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"sla": workflowtest.Input{"after": "10m"}, "drain": workflowtest.Input{"escalation": []workflowtest.Input{{"after": "20m", "do": "bypassBudget"}, {"after": "30m", "do": "fail"}}}}))
	if taken(status) != "bypassBudget expireSLA fail" {
		t.Errorf("took %s", taken(status))
	}
}
