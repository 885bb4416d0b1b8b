package workflows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock/activities"
	"drydock/checks"
	"drydock/notify"
	"drydock/workflows"
	"drydock/workflows/notices"
	"drydock/workflows/period"
	"drydock/workflows/record"
	"drydock/workflows/validation"
)

// states are those that the outside was told of, in order.
func states(status workflows.Status) string {
	var texts []string
	for _, s := range status.States {
		texts = append(texts, string(s.State))
	}
	return strings.Join(texts, " ")
}

func expectStates(t *testing.T, status workflows.Status, want ...notices.State) {
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
	s := newSite(t)
	s.usual["Drain"] = reply{after: 15 * time.Minute}
	s.doneAt(time.Hour)
	status := s.run(of(input{"sla": input{"after": "10m"}, "validation": input{"newBootID": true}}))
	s.expectCompleted()
	expectStates(t, status, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.SLAExpired,
		notices.ObjectsDrained, notices.Validating, notices.MaintenanceEnded, notices.MaintenanceComplete)
	s.expectPhases(status, workflows.Pending, workflows.Scheduled, workflows.Cordoning, workflows.Draining, workflows.Ready,
		workflows.Validating, workflows.Releasing, workflows.Completed)
	if taken(status) != "expireSLA" || status.Force != "" {
		t.Errorf("took %q, force %q", taken(status), status.Force)
	}
}

func TestStatesOfAMaintenanceThatIsNotCompleted(t *testing.T) {
	t.Run("cancelled", func(t *testing.T) {
		s := newSite(t)
		endless(s)
		s.signalAt(time.Minute, workflows.MsgCancel, nil)
		status := s.run(of(nil))
		expectStates(t, status, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted,
			notices.MaintenanceEnded, notices.MaintenanceCancelled)
	})
	t.Run("failed by its requestor, tried again", func(t *testing.T) {
		s := newSite(t)
		s.signalAt(5*time.Minute, workflows.MsgFailed, input{"reason": "no power"})
		s.signalAt(6*time.Minute, workflows.MsgRetry, nil)
		s.doneAt(7 * time.Minute)
		status := s.run(of(nil))
		expectStates(t, status, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted,
			notices.ObjectsDrained, notices.MaintenanceIncomplete, notices.ObjectsDrained, notices.MaintenanceEnded, notices.MaintenanceComplete)
	})
	t.Run("an SLA with an action", func(t *testing.T) {
		s := newSite(t)
		endless(s)
		status := s.run(of(input{"sla": input{"after": "10m", "do": "fail"}}))
		s.expectFailure(workflows.ErrorMaintenanceFailed, "not empty after 10m0s")
		expectStates(t, status, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.SLAExpired,
			notices.Escalated, notices.MaintenanceIncomplete, notices.MaintenanceEnded, notices.MaintenanceCancelled)
	})
}

func TestApproval(t *testing.T) {
	asked := of(input{"approval": true, "approvalReminder": "1h"})
	t.Run("approved", func(t *testing.T) {
		s := newSite(t)
		s.expectAt(time.Minute, workflows.AwaitingApproval, "approve")
		s.signalAt(150*time.Minute, workflows.MsgApprove, input{"by": "amy", "comment": "fine"})
		late := s.updateAt(151*time.Minute, workflows.MsgDeny)
		s.doneAt(4 * time.Hour)
		status := s.run(asked)
		s.expectCompleted()
		if a := status.Approval; a == nil || a.By != "amy" || a.Comment != "fine" || a.Denied {
			t.Errorf("approval %+v", a)
		}
		if late.rejected == nil || !strings.Contains(late.rejected.Error(), "approved already") {
			t.Errorf("late: %+v", late)
		}
		if got := states(status); !strings.HasPrefix(got, "MaintenanceUnknown AwaitingApproval ApprovalReminder ApprovalReminder MaintenanceScheduled ") {
			t.Errorf("states %s", got)
		}
	})
	t.Run("denied", func(t *testing.T) {
		s := newSite(t)
		s.signalAt(time.Minute, workflows.MsgDeny, input{"by": "amy", "comment": "not now"})
		status := s.run(asked)
		s.expectCancelled()
		s.expectLog()
		if status.Failure != "denied by amy: not now" {
			t.Errorf("failure %q", status.Failure)
		}
		expectStates(t, status, notices.MaintenanceUnknown, notices.AwaitingApproval, notices.MaintenanceEnded, notices.MaintenanceCancelled)
	})
	t.Run("cancelled", func(t *testing.T) {
		s := newSite(t)
		s.signalAt(time.Minute, workflows.MsgCancel, nil)
		s.run(asked)
		s.expectCancelled()
	})
	t.Run("not asked for", func(t *testing.T) {
		s := newSite(t)
		early := s.updateAt(time.Second, workflows.MsgApprove)
		s.doneAt(10 * time.Minute)
		s.run(of(nil))
		if early.rejected == nil {
			t.Error("an approval nobody asked for was taken")
		}
	})
}

func TestNoSlotIsAskedForBeforeItsTime(t *testing.T) {
	s := newSite(t)
	s.prepared.Conditions = true
	start := s.env.Now()
	s.expectAt(47*time.Hour, workflows.Pending, "not before")
	s.doneAt(50 * time.Hour)
	status := s.run(of(input{"notBefore": start.Add(48 * time.Hour).UTC().Format(time.RFC3339)}))
	s.expectCompleted()
	if asked := s.requestTimes[0].Sub(start); asked < 48*time.Hour-time.Second || asked > 48*time.Hour+time.Minute {
		t.Errorf("it asked for a slot after %s", asked)
	}
	first := inputOf[activities.ConditionsInput](s, "ShowConditions", 0)
	if len(first.Conditions) != 1 || first.Conditions[0].Type != activities.MaintenancePlanned || !first.Conditions[0].True {
		t.Errorf("conditions %+v", first)
	}
	drained := inputOf[activities.ConditionsInput](s, "ShowConditions", -1)
	if !slices.ContainsFunc(drained.Conditions, func(c activities.Condition) bool { return c.Type == activities.Drained && c.True }) {
		t.Errorf("conditions %+v", drained)
	}
	if scheduled := status.States[1]; scheduled.State != notices.MaintenanceScheduled || !strings.Contains(scheduled.Message, "not before") {
		t.Errorf("%+v", scheduled)
	}
}

func hookPlan(name string, change func(*validation.HookPlan)) validation.HookPlan {
	plan := validation.HookPlan{
		Name: name, Kind: validation.KindHTTP, Blocking: true, Deadline: period.Duration(5 * time.Minute), OnFailure: validation.FailMaintenance,
	}
	if change != nil {
		change(&plan)
	}
	return plan
}

func closing(p *validation.HookPlan) { p.HasClosing = true }

// called are the hooks called, their closings with a minus.
func called(s *site) string {
	var texts []string
	for i := range s.count("CallHook") {
		in := inputOf[activities.HookInput](s, "CallHook", i)
		texts = append(texts, map[bool]string{true: "-", false: ""}[in.Closing]+in.Hook)
	}
	return strings.Join(texts, " ")
}

func outcomes(status workflows.Status) string {
	var texts []string
	for _, h := range status.Hooks {
		texts = append(texts, h.Name+" "+h.When+" "+h.Outcome)
	}
	return strings.Join(texts, "; ")
}

func TestHooksAreCalledAndClosed(t *testing.T) {
	all := of(input{"hooks": input{"beforeCordon": []string{"silence"}, "afterDrain": []string{"move"}, "beforeRelease": []string{"check"}}})
	prepare := func(t *testing.T) *site {
		s := newSite(t)
		s.prepared.Hooks = []validation.HookPlan{hookPlan("silence", closing), hookPlan("move", closing), hookPlan("check", nil)}
		s.answer("CallHook", reply{value: checks.Outcome{Captured: "id-7"}})
		return s
	}
	t.Run("completed", func(t *testing.T) {
		s := prepare(t)
		s.doneAt(10 * time.Minute)
		status := s.run(all)
		s.expectCompleted()
		if got := called(s); got != "silence move check -move -silence" {
			t.Errorf("called %s", got)
		}
		if last := inputOf[activities.HookInput](s, "CallHook", -1); last.Subject.Captured != "id-7" || last.Subject.Node != "n1" {
			t.Errorf("the closing was told %+v", last.Subject)
		}
		want := "silence beforeCordon done; move afterDrain done; check beforeRelease done; move closing done; silence closing done"
		if got := outcomes(status); got != want {
			t.Errorf("hooks %s", got)
		}
	})
	t.Run("cancelled while it drains", func(t *testing.T) {
		s := prepare(t)
		endless(s)
		s.signalAt(time.Minute, workflows.MsgCancel, nil)
		s.run(all)
		if got := called(s); got != "silence -silence" {
			t.Errorf("called %s", got)
		}
	})
	t.Run("given back", func(t *testing.T) {
		s := prepare(t)
		s.answer("Drain", reply{after: 2 * time.Hour})
		s.doneAt(3 * time.Hour)
		s.run(all)
		s.expectCompleted()
		if got := called(s); got != "silence -silence silence move check -move -silence" {
			t.Errorf("called %s", got)
		}
	})
}

func TestAHookThatFails(t *testing.T) {
	failing := temporal.NewNonRetryableApplicationError("503", activities.ErrorHookFailed, nil)
	t.Run("before the cordon", func(t *testing.T) {
		s := newSite(t)
		s.prepared.Hooks = []validation.HookPlan{hookPlan("silence", closing)}
		s.answer("CallHook", reply{err: failing})
		s.run(of(input{"hooks": input{"beforeCordon": []string{"silence"}}}))
		s.expectFailure(workflows.ErrorMaintenanceFailed, "hook silence beforeCordon failed: 503")
		if s.count("HoldNode") != 0 || called(s) != "silence -silence" {
			t.Errorf("it did %v", s.log)
		}
	})
	t.Run("that is not that important", func(t *testing.T) {
		s := newSite(t)
		s.prepared.Hooks = []validation.HookPlan{hookPlan("tell", func(p *validation.HookPlan) { p.OnFailure = validation.ContinueAnyway })}
		s.answer("CallHook", reply{err: failing})
		s.doneAt(10 * time.Minute)
		status := s.run(of(input{"hooks": input{"beforeCordon": []string{"tell"}}}))
		s.expectCompleted()
		if outcomes(status) != "tell beforeCordon failed: 503" {
			t.Errorf("hooks %s", outcomes(status))
		}
	})
	t.Run("before the release", func(t *testing.T) {
		s := newSite(t)
		s.prepared.Hooks = []validation.HookPlan{hookPlan("check", nil)}
		s.answer("CallHook", reply{err: failing})
		s.doneAt(10 * time.Minute)
		s.expectAt(20*time.Minute, workflows.Validating, "a decision")
		s.signalAt(30*time.Minute, workflows.MsgRetry, nil)
		status := s.run(of(input{"hooks": input{"beforeRelease": []string{"check"}}}))
		s.expectCompleted()
		if outcomes(status) != "check beforeRelease failed: 503; check beforeRelease done" {
			t.Errorf("hooks %s", outcomes(status))
		}
	})
	t.Run("that is skipped", func(t *testing.T) {
		s := newSite(t)
		s.prepared.Hooks = []validation.HookPlan{hookPlan("move", nil)}
		s.answer("CallHook", reply{after: 24 * time.Hour})
		s.checkAt(3*time.Minute, func(status workflows.Status) {
			if !slices.Equal(status.OpenHooks, []string{"move"}) || !strings.Contains(status.WaitingFor, "hook move") {
				t.Errorf("%v, waits for %q", status.OpenHooks, status.WaitingFor)
			}
		})
		wrong := s.updateAt(3*time.Minute, workflows.MsgSkipHook, input{"hook": "other"})
		notSignal := s.updateAt(3*time.Minute, workflows.MsgHookDone, input{"hook": "move"})
		s.signalAt(4*time.Minute, workflows.MsgSkipHook, input{"hook": "move", "by": "amy", "comment": "storage is away"})
		s.doneAt(10 * time.Minute)
		status := s.run(of(input{"hooks": input{"afterDrain": []string{"move"}}}))
		s.expectCompleted()
		if h := status.Hooks; len(h) != 1 || h[0].By != "amy" || h[0].Outcome != "skipped: storage is away" || s.count("AbandonHook") != 1 {
			t.Errorf("hooks %+v", h)
		}
		if wrong.rejected == nil || notSignal.rejected == nil {
			t.Errorf("%+v %+v", wrong, notSignal)
		}
	})
}

func TestAHookThatWaitsForASignal(t *testing.T) {
	asked := of(input{"hooks": input{"afterDrain": []string{"move"}}})
	prepare := func(t *testing.T) *site {
		s := newSite(t)
		s.prepared.Hooks = []validation.HookPlan{hookPlan("move", func(p *validation.HookPlan) { p.Kind = validation.KindSignal })}
		return s
	}
	t.Run("done", func(t *testing.T) {
		s := prepare(t)
		s.signalAt(3*time.Minute, workflows.MsgHookDone, input{"hook": "move"})
		s.doneAt(10 * time.Minute)
		s.run(asked)
		s.expectCompleted()
	})
	t.Run("failed", func(t *testing.T) {
		s := prepare(t)
		s.signalAt(3*time.Minute, workflows.MsgHookDone, input{"hook": "move", "failed": true, "by": "amy"})
		s.run(asked)
		s.expectFailure(workflows.ErrorMaintenanceFailed, "declared failed by amy")
	})
	t.Run("nobody says anything", func(t *testing.T) {
		s := prepare(t)
		s.run(asked)
		s.expectFailure(workflows.ErrorMaintenanceFailed, "nobody said that it is done within 5m0s")
	})
}

func TestAHookThatDoesNotBlock(t *testing.T) {
	s := newSite(t)
	s.prepared.Hooks = []validation.HookPlan{hookPlan("tell", func(p *validation.HookPlan) { p.Blocking = false; p.HasClosing = true })}
	s.answer("CallHook", reply{after: 4 * time.Minute})
	s.expectAt(30*time.Second, workflows.Draining, "")
	s.doneAt(10 * time.Minute)
	s.run(of(input{"hooks": input{"beforeCordon": []string{"tell"}}}))
	s.expectCompleted()
	if called(s) != "tell -tell" {
		t.Errorf("called %s", called(s))
	}
}

func TestValidation(t *testing.T) {
	asked := of(input{"validation": input{"newBootID": true, "deadline": "20m"}})
	bad := activities.Validated{State: validation.Failed, Results: []validation.Result{{Name: "newBootID", Message: "restart it"}}}
	prepare := func(t *testing.T) *site {
		s := newSite(t)
		s.answer("HoldNode", reply{value: activities.Held{UID: "uid-1", Mark: "mark-1", BootID: "boot-1"}})
		s.doneAt(10 * time.Minute)
		return s
	}
	t.Run("passes", func(t *testing.T) {
		s := prepare(t)
		status := s.run(asked)
		s.expectCompleted()
		if in := inputOf[activities.ValidateInput](s, "Validate", 0); in.BootIDBefore != "boot-1" || in.Subject.Node != "n1" {
			t.Errorf("%+v", in)
		}
		if status.Validation.State != validation.Passed || s.count("Validate") != 1 {
			t.Errorf("%+v", status.Validation)
		}
	})
	t.Run("fails, and is tried again", func(t *testing.T) {
		s := prepare(t)
		s.answer("Validate", reply{value: bad})
		s.checkAt(15*time.Minute, func(status workflows.Status) {
			if status.Phase != workflows.Validating || !strings.Contains(status.Failure, "newBootID: restart it") || len(s.released) > 0 {
				t.Errorf("%s %q %v", status.Phase, status.Failure, s.released)
			}
		})
		early := s.updateAt(16*time.Minute, workflows.MsgCancel)
		s.signalAt(20*time.Minute, workflows.MsgRetry, nil)
		status := s.run(asked)
		s.expectCompleted()
		if early.rejected == nil || s.count("Validate") != 2 {
			t.Errorf("%+v %v", early, s.log)
		}
		first, second := inputOf[activities.ValidateInput](s, "Validate", 0), inputOf[activities.ValidateInput](s, "Validate", 1)
		if first.Key == second.Key {
			t.Errorf("both validations have the key %s", first.Key)
		}
		if !strings.Contains(states(status), "Validating MaintenanceIncomplete Validating MaintenanceEnded") {
			t.Errorf("states %s", states(status))
		}
	})
	t.Run("fails, and is overruled", func(t *testing.T) {
		s := prepare(t)
		s.answer("Validate", reply{value: bad})
		s.signalAt(20*time.Minute, workflows.MsgValidated, input{"by": "amy"})
		status := s.run(asked)
		s.expectCompleted()
		if !status.Validation.Overruled || s.count("Validate") != 1 {
			t.Errorf("%+v", status.Validation)
		}
	})
	t.Run("fails, and is released", func(t *testing.T) {
		s := prepare(t)
		s.answer("Validate", reply{value: bad})
		s.signalAt(20*time.Minute, workflows.MsgCancel, input{"release": true, "by": "amy"})
		status := s.run(asked)
		s.expectCancelled()
		if status.Failure != "cancelled by amy" {
			t.Errorf("failure %q", status.Failure)
		}
	})
	t.Run("is not waited for", func(t *testing.T) {
		s := prepare(t)
		s.answer("Validate", reply{after: 15 * time.Minute})
		s.signalAt(12*time.Minute, workflows.MsgCancel, input{"release": true})
		s.run(of(input{"validation": input{"newBootID": true, "checks": []string{"smoke"}}}))
		s.expectCancelled()
		if s.count("AbandonChecks") != 1 {
			t.Errorf("it did %v", s.log)
		}
	})
}

func TestValidationBySignal(t *testing.T) {
	asked := of(input{"validation": input{"signal": true, "newBootID": true, "deadline": "30m"}})
	prepare := func(t *testing.T) *site { return newSite(t).doneAt(10 * time.Minute) }
	t.Run("validated", func(t *testing.T) {
		s := prepare(t)
		s.expectAt(15*time.Minute, workflows.Validating, "")
		s.signalAt(20*time.Minute, workflows.MsgValidated, input{"by": "amy"})
		s.run(asked)
		s.expectCompleted()
		if in := inputOf[activities.ValidateInput](s, "Validate", 0); in.Validation.Signal {
			t.Error("the activity waits for the signal too")
		}
	})
	t.Run("declared failed", func(t *testing.T) {
		s := prepare(t)
		s.signalAt(20*time.Minute, workflows.MsgValidationFailed, input{"by": "amy", "comment": "hot"})
		s.expectAt(25*time.Minute, workflows.Validating, "a decision")
		s.signalAt(30*time.Minute, workflows.MsgValidated, nil)
		s.run(asked)
		s.expectCompleted()
	})
	t.Run("nobody says anything", func(t *testing.T) {
		s := prepare(t)
		s.checkAt(45*time.Minute, func(status workflows.Status) {
			if !strings.Contains(status.Failure, `nobody said "validated" within 30m0s`) {
				t.Errorf("failure %q", status.Failure)
			}
		})
		s.signalAt(50*time.Minute, workflows.MsgCancel, input{"release": true})
		s.run(asked)
		s.expectCancelled()
	})
}

func TestTheTaintGoesBeforeDaemonSetsAreValidated(t *testing.T) {
	s := newSite(t)
	s.doneAt(10 * time.Minute)
	s.run(of(input{"drain": input{"plan": input{"include": []string{"Default", "DaemonSet"}}}, "validation": input{"daemonSets": "all"}}))
	s.expectCompleted()
	if s.count("Untaint") != 1 {
		t.Errorf("it did %v", s.log)
	}
}

func TestWhatTheConfigurationLacksIsRefused(t *testing.T) {
	s := newSite(t)
	s.prepared.Unknown = `notify[0]: the worker's configuration has no channel "pager" (channels)`
	s.env.ExecuteWorkflow(workflows.NodeMaintenance, of(input{"notify": []string{"pager"}}).payload(t))
	s.expectFailure(workflows.ErrorInvalidSpec, `no channel "pager"`)
	s.expectLog()
}

// told are the states that a channel was told, message by message.
func told(s *site) string {
	var texts []string
	for i := range s.count("Deliver") {
		for _, e := range inputOf[activities.DeliverInput](s, "Deliver", i).Events {
			texts = append(texts, string(e.State))
		}
	}
	return strings.Join(texts, " ")
}

func TestAChannelIsTold(t *testing.T) {
	plan := notices.Plan{Channel: "oncall", RetryFor: notices.DefaultRetryFor}
	t.Run("everything in order", func(t *testing.T) {
		s := newSite(t)
		s.prepared.Channels = []notices.Plan{plan}
		s.doneAt(10 * time.Minute)
		s.run(of(input{"reason": "firmware"}))
		s.expectCompleted()
		want := "MaintenanceUnknown MaintenanceScheduled MaintenanceStarted ObjectsDrained MaintenanceEnded MaintenanceComplete"
		if got := told(s); got != want {
			t.Errorf("told %s", got)
		}
		in := inputOf[activities.DeliverInput](s, "Deliver", 0)
		if in.Channel != "oncall" || in.Events[0].Reason != "firmware" || in.Events[0].Node != "n1" || in.Key != "oncall/"+in.Events[0].ID+"/0" {
			t.Errorf("%+v", in)
		}
	})
	t.Run("a dead one does not delay the maintenance", func(t *testing.T) {
		s := newSite(t)
		s.prepared.Channels = []notices.Plan{plan}
		var ended time.Duration
		s.usual["Deliver"] = reply{after: time.Hour}
		start := s.env.Now()
		s.doneAt(10 * time.Minute)
		s.at(11*time.Minute, func() {
			if s.count("ReleaseNode") == 1 {
				ended = s.env.Now().Sub(start)
			}
		})
		s.run(of(nil))
		s.expectCompleted()
		if ended == 0 {
			t.Errorf("it did %v", s.log)
		}
	})
	t.Run("only what it wants", func(t *testing.T) {
		s := newSite(t)
		filtered := plan
		filtered.Filter = notices.Filter{Events: []notices.State{notices.MaintenanceStarted, notices.MaintenanceIncomplete}}
		other := plan
		other.Channel, other.Filter = "others", notices.Filter{Requestors: []string{"somebody-else"}}
		s.prepared.Channels = []notices.Plan{filtered, other}
		s.doneAt(10 * time.Minute)
		s.run(of(nil))
		if got := told(s); got != "MaintenanceStarted" {
			t.Errorf("told %s", got)
		}
	})
	t.Run("again and again while a state lasts", func(t *testing.T) {
		s := newSite(t)
		periodic := plan
		periodic.Schedule = notices.Schedule{Periodic: &notices.Periodic{Interval: period.Duration(time.Hour)}}
		periodic.Filter = notices.Filter{Events: []notices.State{notices.ObjectsDrained}}
		s.prepared.Channels = []notices.Plan{periodic}
		s.doneAt(150 * time.Minute)
		s.run(of(input{"readyTimeout": "5h"}))
		if got := told(s); got != "ObjectsDrained ObjectsDrained ObjectsDrained" {
			t.Errorf("told %s", got)
		}
		keys := map[string]bool{}
		for i := range 3 {
			keys[inputOf[activities.DeliverInput](s, "Deliver", i).Key] = true
		}
		if len(keys) != 3 {
			t.Errorf("keys %v", keys)
		}
	})
	t.Run("only what lasts", func(t *testing.T) {
		s := newSite(t)
		delayed := plan
		delayed.Schedule = notices.Schedule{OneShot: &notices.OneShot{Delay: period.Duration(5 * time.Minute)}}
		s.prepared.Channels = []notices.Plan{delayed}
		s.doneAt(30 * time.Minute)
		s.run(of(nil))
		if got := told(s); got != "ObjectsDrained MaintenanceComplete" {
			t.Errorf("told %s", got)
		}
	})
	t.Run("in a thread", func(t *testing.T) {
		s := newSite(t)
		threaded := plan
		threaded.Thread = notices.ThreadMaintenance
		s.prepared.Channels = []notices.Plan{threaded}
		s.answer("Deliver", reply{value: notify.Receipt{Thread: "ts-1"}})
		s.doneAt(10 * time.Minute)
		s.run(of(nil))
		if first, second := inputOf[activities.DeliverInput](s, "Deliver", 0), inputOf[activities.DeliverInput](s, "Deliver", 1); first.Thread != "" || second.Thread != "ts-1" {
			t.Errorf("threads %q and %q", first.Thread, second.Thread)
		}
	})
}

func TestAnAuditRecordIsKept(t *testing.T) {
	s := newSite(t)
	s.prepared.Audited = true
	s.doneAt(10 * time.Minute)
	s.run(of(input{"owner": "team-metal", "ticket": "CHG-1"}))
	s.expectCompleted()
	r := inputOf[record.Record](s, "KeepRecord", 0)
	if r.Phase != string(workflows.Completed) || r.Owner != "team-metal" || r.Ticket != "CHG-1" || r.NodeUID != "uid-1" || len(r.States) != 6 || r.Validate() != nil {
		t.Errorf("record %+v", r)
	}
}

func TestTheCollectorOfAChannel(t *testing.T) {
	event := func(n string) notices.Event {
		return notices.Event{ID: "e-" + n, State: notices.MaintenanceStarted, Node: "n" + n}
	}
	t.Run("many nodes in one message", func(t *testing.T) {
		s := newSite(t)
		plan := notices.Plan{Channel: "oncall", Digest: period.Duration(10 * time.Minute), RetryFor: notices.DefaultRetryFor}
		for i, at := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute, 3 * time.Minute} {
			s.signalAt(at, workflows.SignalEvent, event([]string{"1", "2", "3", "3"}[i]))
		}
		s.env.ExecuteWorkflow(workflows.Notification, workflows.NotificationInput{Plan: plan, Collects: true, Waiting: []notices.Event{event("0")}})
		if err := s.env.GetWorkflowError(); err != nil {
			t.Fatal(err)
		}
		if s.count("Deliver") != 1 || len(inputOf[activities.DeliverInput](s, "Deliver", 0).Events) != 4 {
			t.Errorf("told %d times: %s", s.count("Deliver"), told(s))
		}
	})
	t.Run("what cannot be delivered", func(t *testing.T) {
		s := newSite(t)
		plan := notices.Plan{Channel: "oncall", Digest: period.Duration(time.Second), RetryFor: notices.DefaultRetryFor}
		s.answer("Deliver", reply{err: temporal.NewNonRetryableApplicationError("410 gone", activities.ErrorUndeliverable, nil)})
		s.signalAt(10*time.Second, workflows.SignalEvent, event("1"))
		s.env.ExecuteWorkflow(workflows.Notification, workflows.NotificationInput{Plan: plan, Collects: true, Waiting: []notices.Event{event("0")}})
		var failure *temporal.ApplicationError
		if err := s.env.GetWorkflowError(); !errors.As(err, &failure) || failure.Type() != workflows.ErrorNotDelivered || !strings.Contains(failure.Message(), "410 gone") {
			t.Errorf("error %v", err)
		}
		if s.count("Deliver") != 2 {
			t.Errorf("told %s", told(s))
		}
	})
}

func TestAFailedValidationIsNeverTakenForAPassedOne(t *testing.T) {
	s := newSite(t)
	s.answer("Validate", reply{value: activities.Validated{State: validation.Failed, Results: []validation.Result{{Name: "conditions Ready", OK: true}}}})
	s.doneAt(10 * time.Minute)
	s.checkAt(20*time.Minute, func(status workflows.Status) {
		if !strings.Contains(status.Failure, "not for 5m0s before the deadline") {
			t.Errorf("%s: %q", status.Phase, status.Failure)
		}
	})
	s.signalAt(30*time.Minute, workflows.MsgCancel, input{"release": true})
	s.run(of(input{"validation": input{"conditions": []input{{"type": "Ready"}}, "soak": "5m"}}))
	s.expectCancelled()
}

func TestTheLastHooksAreNotTheRequestorsAnyMore(t *testing.T) {
	asked := of(input{"hooks": input{"beforeRelease": []string{"check"}}})
	prepare := func(t *testing.T) *site {
		s := newSite(t)
		s.prepared.Hooks = []validation.HookPlan{hookPlan("check", nil)}
		return s.doneAt(10 * time.Minute)
	}
	t.Run("no message keeps the node that cannot", func(t *testing.T) {
		s := prepare(t)
		s.answer("CallHook", reply{after: 4 * time.Minute})
		var late []*outcome
		for _, name := range []string{workflows.MsgFailed, workflows.MsgRetry, workflows.MsgCancel, workflows.MsgValidated, workflows.MsgValidationFailed} {
			late = append(late, s.updateAt(12*time.Minute, name))
		}
		late = append(late, s.updateAt(12*time.Minute, workflows.MsgJoin, input{"requestor": "net"}))
		s.expectAt(12*time.Minute, workflows.Validating, "hook check")
		s.run(asked)
		s.expectCompleted()
		for i, out := range late {
			if out.rejected == nil {
				t.Errorf("message %d was accepted: %+v", i, out)
			}
		}
	})
	t.Run("released meanwhile", func(t *testing.T) {
		s := prepare(t)
		s.answer("CallHook", reply{after: 4 * time.Minute})
		s.signalAt(12*time.Minute, workflows.MsgCancel, input{"release": true})
		status := s.run(asked)
		s.expectCancelled()
		if strings.Contains(states(status), "MaintenanceComplete") {
			t.Errorf("states %s", states(status))
		}
	})
	t.Run("failed after the validation was overruled", func(t *testing.T) {
		s := prepare(t)
		failing := temporal.NewNonRetryableApplicationError("503", activities.ErrorHookFailed, nil)
		s.answer("CallHook", reply{err: failing})
		s.answer("Validate", reply{value: activities.Validated{State: validation.Failed}})
		s.signalAt(20*time.Minute, workflows.MsgValidated, nil)
		s.signalAt(30*time.Minute, workflows.MsgRetry, nil)
		s.run(of(input{"hooks": input{"beforeRelease": []string{"check"}}, "validation": input{"newBootID": true}}))
		s.expectCompleted()
		if s.count("CallHook") != 2 {
			t.Errorf("it did %v", s.log)
		}
	})
}

func TestConditionsGoWhereTheNodeWasNeverHeld(t *testing.T) {
	s := newSite(t)
	s.prepared.Conditions = true
	s.signalAt(time.Hour, workflows.MsgCancel, nil)
	s.run(of(input{"notBefore": s.env.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)}))
	s.expectCancelled()
	if last := inputOf[activities.ConditionsInput](s, "ShowConditions", -1); len(last.Conditions) != 0 || s.count("ShowConditions") != 2 {
		t.Errorf("last %+v of %v", last, s.log)
	}
}

func TestEscalateLeavesTheSLAItsTime(t *testing.T) {
	s := newSite(t)
	endless(s)
	s.signalAt(5*time.Minute, workflows.MsgEscalate, nil)
	s.checkAt(6*time.Minute, func(status workflows.Status) {
		if taken(status) != "bypassBudget" {
			t.Errorf("took %s", taken(status))
		}
	})
	status := s.run(of(input{"sla": input{"after": "10m"}, "drain": input{"escalation": []input{{"after": "20m", "do": "bypassBudget"}, {"after": "30m", "do": "fail"}}}}))
	if taken(status) != "bypassBudget expireSLA fail" {
		t.Errorf("took %s", taken(status))
	}
}

func TestAMaintenanceThatWasTerminatedIsNotToldOfForEver(t *testing.T) {
	s := newSite(t)
	plan := notices.Plan{Channel: "oncall", RetryFor: notices.DefaultRetryFor, Schedule: notices.Schedule{Periodic: &notices.Periodic{Interval: period.Duration(time.Hour)}}}
	s.answer("Runs", reply{value: true}, reply{value: false})
	s.env.ExecuteWorkflow(workflows.Notification, workflows.NotificationInput{Plan: plan, Waiting: []notices.Event{
		{ID: "e-1", State: notices.ObjectsDrained, At: s.env.Now(), WorkflowID: "w", RunID: "r"},
	}})
	if err := s.env.GetWorkflowError(); err != nil || s.count("Deliver") != 2 {
		t.Errorf("told %d times, %v", s.count("Deliver"), err)
	}
}

func TestTooManyEventsForADeadReceiver(t *testing.T) {
	s := newSite(t)
	plan := notices.Plan{Channel: "oncall", Digest: period.Duration(time.Second), RetryFor: notices.DefaultRetryFor}
	s.answer("Deliver", reply{after: time.Hour})
	for batch := range 3 {
		s.at(time.Duration(1+batch)*time.Minute, func() {
			for i := range 400 {
				s.env.SignalWorkflow(workflows.SignalEvent, notices.Event{ID: fmt.Sprintf("e-%d-%d", batch, i), State: notices.MaintenanceStarted})
			}
		})
	}
	s.env.ExecuteWorkflow(workflows.Notification, workflows.NotificationInput{Plan: plan, Collects: true, Waiting: []notices.Event{{ID: "first", State: notices.MaintenanceStarted}}})
	var failure *temporal.ApplicationError
	if err := s.env.GetWorkflowError(); !errors.As(err, &failure) || !strings.Contains(failure.Message(), "200 messages to oncall were not delivered: more than 1000 events wait") {
		t.Errorf("error %v", err)
	}
}
