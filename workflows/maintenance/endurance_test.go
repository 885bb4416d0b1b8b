package maintenance_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	preflightactivity "drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/workflows/maintenance"
	"drydock.dev/drydock/workflows/workflowtest"
)

// wait is a place where a maintenance may stay for months.
type wait struct {
	name  string
	input map[string]any
	set   func(s *workflowtest.Site)
	// differs are fields of the status that depend on the number of runs.
	differs []string
}

// ofItsEnd are fields that differ where the pauses between two tries begin anew with each run.
var ofItsEnd = []string{"since", "transitions.[].at", "states.[].at", "states.[].id"}

// A maintenance is to go on in a new run from reached on. It does so between two steps; a step that lasts tooLong is under way then.
const (
	reached = 10*time.Minute + 30*time.Second
	tooLong = 11 * time.Minute
)

var waits = []wait{
	{name: "approval", input: map[string]any{"approval": true, "approvalReminder": "1m"}, set: func(s *workflowtest.Site) {
		s.SignalAt(20*time.Minute, api.MsgApprove, api.Simple{Message: api.Message{By: "amy"}})
		s.DoneAt(time.Hour)
	}},
	{name: "notice", input: map[string]any{"notBefore": "2026-07-01T12:30:00Z"}, set: func(s *workflowtest.Site) { s.DoneAt(time.Hour) }},
	{name: "preflight", input: map[string]any{"preflight": spec.PreflightWait, "notBefore": "2026-07-01T12:30:00Z"}, set: func(s *workflowtest.Site) {
		workflowtest.Serve[preflightactivity.Input](s, "AwaitPreflight", preflight.Report{Node: workflowtest.Node})
		s.Answer("AwaitPreflight", workflowtest.Reply{After: tooLong})
		s.DoneAt(time.Hour)
	}},
	{name: "slot", set: func(s *workflowtest.Site) {
		s.Scheduler = silent
		s.At(20*time.Minute, func() { s.Grant(workflowtest.RunID + "/1") })
		s.DoneAt(time.Hour)
	}},
	{name: "hook of kind signal", input: map[string]any{"hooks": map[string]any{"beforeCordon": []string{"tell"}}}, set: func(s *workflowtest.Site) {
		s.Prepared.Hooks = []validation.Hook{hookPlan("tell", func(h *validation.Hook) {
			h.Kind, h.HasCleanup, h.Deadline = validation.KindSignal, true, period.Duration(time.Hour)
		})}
		s.SignalAt(tooLong, api.MsgHookDone, workflowtest.Input{"hook": "tell", "by": "amy"})
		drainAgain(s, 2)
	}},
	{name: "cordon", set: func(s *workflowtest.Site) {
		away := temporal.NewApplicationError("the API server is not there", "ServiceUnavailable")
		s.Answer("HoldNode", workflowtest.Reply{Err: away}, workflowtest.Reply{After: tooLong, Err: away})
		drainAgain(s, 2)
	}},
	{name: "pods to complete", input: map[string]any{"waitForPodCompletion": map[string]any{"podSelector": "app=batch"}}, set: func(s *workflowtest.Site) {
		s.Answer("WaitForPods", workflowtest.Reply{After: tooLong})
		drainAgain(s, 2)
	}},
	{name: "given back", input: map[string]any{"drain": map[string]any{"escalation": []any{map[string]any{"after": "8m", "do": spec.GiveBack}}}}, set: func(s *workflowtest.Site) {
		s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour})
		s.DoneAt(time.Hour)
	}},
	{name: "freeze and thaw while it drains", set: func(s *workflowtest.Site) {
		s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour})
		s.HoldAt(10*time.Minute+time.Second, "frozen by amy")
		s.HoldAt(20 * time.Minute)
		s.DoneAt(time.Hour)
	}},
	{name: "ready", input: map[string]any{"readyTimeout": "2h"}, set: func(s *workflowtest.Site) { s.DoneAt(time.Hour) }},
	{name: "requestor failed", set: func(s *workflowtest.Site) {
		s.SignalAt(8*time.Minute, api.MsgFailed, api.FailedMessage{Reason: "no firmware"})
		s.DoneAt(time.Hour)
	}},
	{name: "validation failed", input: map[string]any{"validation": map[string]any{"newBootID": true}}, set: func(s *workflowtest.Site) {
		s.Answer("Validate", workflowtest.Reply{Err: workflowtest.Failing("x", "the node is not ready")})
		s.DoneAt(5 * time.Minute)
		s.SignalAt(time.Hour, api.MsgValidated, nil)
	}},
	{name: "release forbidden", differs: ofItsEnd, set: func(s *workflowtest.Site) {
		s.DoneAt(5 * time.Minute)
		forbidden := workflowtest.Reply{Err: workflowtest.Failing(api.ErrorMissingPermission, "may not patch nodes")}
		s.Answer("ReleaseNode", forbidden, forbidden, forbidden, forbidden, forbidden, forbidden)
	}},
}

// came is what a maintenance comes to: its status, without some fields and what woke it up for another run.
func came(t *testing.T, status api.Status, without ...string) string {
	t.Helper()
	status.Messages = slices.DeleteFunc(slices.Clone(status.Messages), func(m api.Received) bool { return m.Name == "wake-up" })
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	for _, path := range without {
		remove(tree, strings.Split(path, "."))
	}
	if text, err = json.MarshalIndent(tree, "", " "); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// expectSameLines says where two texts part.
func expectSameLines(t *testing.T, got, want string) {
	t.Helper()
	is, wants := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(is), len(wants)) {
		if is[i] != wants[i] {
			t.Errorf("in line %d after\n%s\nit came to\n%s\nand in one run to\n%s", i, strings.Join(is[max(i-5, 0):i], "\n"), is[i], wants[i])
			return
		}
	}
	if got != want {
		t.Errorf("it came to %d lines, and in one run to %d", len(is), len(wants))
	}
}

// remove takes a field out of a tree; "[]" stands for each entry of a list.
func remove(tree any, path []string) {
	switch tree := tree.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(tree, path[0])
		} else {
			remove(tree[path[0]], path[1:])
		}
	case []any:
		for _, entry := range tree {
			remove(entry, path[1:])
		}
	}
}

func TestAMaintenanceGoesOnInANewRunWhereverItWaits(t *testing.T) {
	for _, w := range waits {
		t.Run(w.name, func(t *testing.T) {
			begin := func() *workflowtest.Site {
				s := workflowtest.New(t)
				w.set(s)
				return s
			}
			expectTheSame(t, begin, workflowtest.InputWith(w.input), w.differs...)
		})
	}
}

// expectTheSame runs a maintenance in one run and in many: it has to come to the same.
func expectTheSame(t *testing.T, begin func() *workflowtest.Site, in workflowtest.Input, without ...string) {
	t.Helper()
	one := begin()
	want := one.Run(in)
	many := begin()
	for i := range 5 {
		many.ContinueAt(reached + time.Duration(i)*time.Minute)
	}
	many.ContinueAt(30 * time.Minute)
	got := many.Run(in)
	if many.Runs < 3 || one.Runs != 1 {
		t.Errorf("%d runs, and %d", one.Runs, many.Runs)
	}
	expectSameLines(t, came(t, got, without...), came(t, want, without...))
	if got.RunID != workflowtest.RunID || got.Phase != api.Completed {
		t.Errorf("run %s ended %s", got.RunID, got.Phase)
	}
}

// steered are the places where a maintenance waits that plans share.
var steered = []wait{
	{name: "first target", set: func(s *workflowtest.Site) {
		s.SignalAt(40*time.Minute, api.SignalTarget, lastTarget(1, first))
		s.DoneAt(time.Hour)
	}},
	{name: "cordoned", set: func(s *workflowtest.Site) {
		s.SignalAt(0, api.SignalTarget, targetOf(1))
		s.SignalAt(40*time.Minute, api.SignalTarget, lastTarget(2, first))
		s.DoneAt(time.Hour)
	}},
	{name: "drained so far", set: func(s *workflowtest.Site) {
		s.SignalAt(0, api.SignalTarget, targetOf(1, first))
		s.SignalAt(40*time.Minute, api.SignalTarget, lastTarget(2, second))
		s.DoneAt(time.Hour)
	}},
	{name: "drained to the last", input: map[string]any{"readyTimeout": "2h"}, set: func(s *workflowtest.Site) {
		s.SignalAt(0, api.SignalTarget, lastTarget(1, second))
		s.DoneAt(time.Hour)
	}},
	{name: "frozen while it drains", set: func(s *workflowtest.Site) {
		s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour})
		s.SignalAt(0, api.SignalTarget, targetOf(1, first))
		s.HoldAt(10*time.Minute+time.Second, "frozen by amy")
		s.SignalAt(15*time.Minute, api.SignalTarget, targetOf(2, second))
		s.HoldAt(20 * time.Minute)
		s.DoneAt(time.Hour)
	}},
	{name: "failed, and to be drained further", set: func(s *workflowtest.Site) {
		s.SignalAt(0, api.SignalTarget, lastTarget(1, first))
		s.SignalAt(8*time.Minute, api.MsgFailed, api.FailedMessage{Reason: "no firmware"})
		s.SignalAt(9*time.Minute, api.SignalTarget, targetOf(2, second))
		s.SignalAt(50*time.Minute, api.MsgRetry, nil)
		s.DoneAt(time.Hour)
	}},
}

func TestASharedMaintenanceGoesOnInANewRunWhereverItWaits(t *testing.T) {
	for _, w := range steered {
		t.Run(w.name, func(t *testing.T) {
			expectTheSame(t, func() *workflowtest.Site {
				s := sharedSite(t)
				w.set(s)
				return s
			}, sharedInput(w.input))
		})
	}
}

func TestStateThatNoRunHandedOverIsRefused(t *testing.T) {
	s := workflowtest.New(t)
	s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, workflowtest.InputWith(nil).Payload(t),
		workflowtest.Raw(`{"at":"ready","status":{"phase":"Ready"}}`))
	s.ExpectFailure(api.ErrorInvalidSpec, "second input")
	if len(s.Log) != 0 {
		t.Errorf("it did %v", s.Log)
	}
}

func TestHostileTextsStayWithinTheirBounds(t *testing.T) {
	hostile := strings.Repeat("<", 20<<10)
	s := workflowtest.New(t)
	said := api.Message{By: hostile, Comment: hostile}
	blocked := api.DrainProgress{}
	for range 25 {
		blocked.Blockers = append(blocked.Blockers, api.Blocker{Pod: "a/b", Reason: hostile[:1500], Message: hostile[:1500]})
		blocked.Pods = append(blocked.Pods, api.EndedPod{Pod: hostile[:100]})
	}
	s.SignalAt(10*time.Second, api.SignalDrainBlocked, blocked)
	for i := range 100 {
		at := 2*time.Minute + time.Duration(i)*time.Minute
		s.SignalAt(at, api.MsgFailed, api.FailedMessage{Message: said, Reason: hostile})
		s.SignalAt(at+10*time.Second, api.MsgRetry, api.Simple{Message: said})
		s.SignalAt(at+20*time.Second, api.MsgJoin, api.Membership{Message: said, Requestor: fmt.Sprintf("team-%d", i)})
		s.SignalAt(at+30*time.Second, hostile[:100], said)
	}
	// What is too long to be read at all has no effect.
	s.SignalAt(95*time.Minute, api.MsgCancel, api.Cancel{Message: api.Message{By: strings.Repeat("<", 400<<10)}, Release: true})
	s.ContinueAt(90 * time.Minute)
	s.CheckAt(150*time.Minute, func(status api.Status) {
		if text, err := json.Marshal(status); err != nil || len(text) > 1<<20 {
			t.Errorf("the status has %d bytes, %v", len(text), err)
		}
		if len(status.Requestors) != spec.MaxRequestors {
			t.Errorf("%d requestors share it", len(status.Requestors))
		}
	})
	s.SignalAt(160*time.Minute, api.MsgCancel, api.Cancel{Message: said, Release: true})
	s.Run(workflowtest.InputWith(map[string]any{"readyTimeout": "24h"}))
	s.ExpectCancelled()
}

func TestAMessageIsAppliedOnce(t *testing.T) {
	s := workflowtest.New(t)
	failed := api.FailedMessage{Message: api.Message{ID: "f-1"}, Reason: "once"}
	s.SignalAt(5*time.Minute, api.MsgFailed, failed)
	s.SignalAt(6*time.Minute, api.MsgRetry, api.Simple{Message: api.Message{ID: "r-1"}})
	s.ContinueAt(7 * time.Minute)
	s.SignalAt(8*time.Minute, api.MsgFailed, failed)
	twice := s.UpdateAt(9*time.Minute, api.MsgFailed, failed)
	s.ExpectAt(10*time.Minute, api.Ready, "")
	s.DoneAt(20 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	if got := workflowtest.EffectsOf(status, api.MsgFailed); len(got) != 1 || twice.Rejected == nil || s.Runs != 2 {
		t.Errorf("effects %q, update %+v, %d runs", got, twice, s.Runs)
	}
	if m := status.Messages[0]; m.ID != "f-1" || m.Outcome != api.Applied {
		t.Errorf("message %+v", m)
	}
}

func TestASlotThatTheSchedulerDoesNotKnowIsAskedForAnew(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("HoldNode", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorSlotNotHeld, "the scheduler knows of no slot")})
	s.DoneAt(time.Hour)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if !slices.ContainsFunc(status.Transitions, func(t api.Transition) bool { return strings.Contains(t.Message, "does not know its slot") }) ||
		status.Slot.RequestID != workflowtest.RunID+"/2" {
		t.Errorf("slot %+v, transitions\n%s", status.Slot, workflowtest.MessagesOf(status))
	}
}

func TestWhatEndsAMaintenanceComesFirst(t *testing.T) {
	s := workflowtest.New(t)
	s.At(5*time.Minute, func() {
		s.Env.SignalWorkflow(api.MsgCancel, api.Cancel{Message: api.Message{By: "amy"}})
		s.Env.SignalWorkflow(api.MsgDrained, nil)
	})
	status := s.Run(workflowtest.InputWith(map[string]any{"drain": map[string]any{"mode": spec.ModeExternal}}))
	s.ExpectCancelled()
	if got := workflowtest.EffectsOf(status, api.MsgDrained); len(got) != 1 || !strings.Contains(got[0], "ending") {
		t.Errorf("drained: %q", got)
	}
}

func TestANoticeOfAFreezeThatIsOverHoldsNothing(t *testing.T) {
	s := workflowtest.New(t)
	notice := func(revision int, reasons ...string) api.FreezeNotice {
		return api.FreezeNotice{RequestID: workflowtest.RunID + "/1", Revision: revision, Reasons: reasons}
	}
	s.SignalAt(10*time.Second, api.SignalHold, notice(7))
	s.SignalAt(20*time.Second, api.SignalHold, notice(6, "frozen by amy"))
	other := notice(9, "frozen by bob")
	other.RequestID = "another/1"
	s.SignalAt(30*time.Second, api.SignalHold, other)
	s.ExpectAt(5*time.Minute, api.Ready, "")
	// A notice that the scheduler never sent holds until the scheduler is asked.
	s.SignalAt(6*time.Minute, api.SignalHold, notice(1000, "frozen by nobody"))
	s.DoneAt(6*time.Minute + 10*time.Second)
	s.ExpectAt(6*time.Minute+30*time.Second, api.Releasing, "frozen by nobody")
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if s.Count("AskSlot") == 0 {
		t.Error("nobody asked the scheduler")
	}
}

func TestWhatLastsTakesNoSlotFromWhatIsQuick(t *testing.T) {
	s := workflowtest.New(t)
	workflowtest.Serve[preflightactivity.Input](s, "AwaitPreflight", preflight.Report{Node: workflowtest.Node})
	s.DoneAt(3 * time.Hour)
	s.Run(workflowtest.InputWith(map[string]any{"preflight": "wait", "waitForPodCompletion": map[string]any{"podSelector": "a=b"}}))
	s.ExpectCompleted()
	for activity, want := range map[string]string{
		"AwaitPreflight": "drydock-preflights", "WaitForPods": "drydock-drains", "Drain": "drydock-drains",
		"HoldNode": "drydock", "ReleaseNode": "drydock", "AnnouncePhase": "drydock",
	} {
		if got := s.Called[activity].TaskQueue; got != want {
			t.Errorf("%s is carried out on %q, want %q", activity, got, want)
		}
	}
}
