package maintenance_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

// TestAnUpdateWithNothingLeftToDoIsRejected: it says so by its type, and leaves nothing in the status.
func TestAnUpdateWithNothingLeftToDoIsRejected(t *testing.T) {
	in := func(fields workflowtest.Input) workflowtest.Input { return fields }
	s := workflowtest.New(t)
	wanted := map[string]*workflowtest.Outcome{}
	expect := func(at time.Duration, want, name string, payload ...any) {
		wanted[want] = s.UpdateAt(at, name, payload...)
	}

	expect(5*time.Minute, "is approved already", api.MsgApprove)
	s.SignalAt(2*time.Minute, api.MsgApprove, in(workflowtest.Input{"by": "amy"}))
	expect(20*time.Minute, "is Ready already", api.MsgRetry)
	expect(20*time.Minute, "ops shares the maintenance already", api.MsgJoin, in(workflowtest.Input{"requestor": "ops"}))
	expect(20*time.Minute, "zed does not share the maintenance", api.MsgLeave, in(workflowtest.Input{"requestor": "zed"}))
	expect(20*time.Minute, "may be held until", api.MsgExtend, in(workflowtest.Input{"for": "1s"}))
	s.SignalAt(21*time.Minute, api.MsgStarted, nil)
	expect(22*time.Minute, "the work has begun already", api.MsgStarted)
	s.SignalAt(23*time.Minute, api.MsgDone, in(workflowtest.Input{"requestor": "net"}))
	expect(24*time.Minute, "net was done already; the node is put back when ops is done too", api.MsgDone, in(workflowtest.Input{"requestor": "net"}))
	s.SignalAt(25*time.Minute, api.MsgFailed, in(workflowtest.Input{"reason": "no power"}))
	expect(26*time.Minute, "is RequestorFailed already: no power", api.MsgFailed)
	// What is meant for another run, or claims the work, is refused and not done already.
	other := s.UpdateAt(26*time.Minute, api.MsgFailed, in(workflowtest.Input{"run": "another"}))
	claim := s.UpdateAt(22*time.Minute, api.MsgStarted, in(workflowtest.Input{"claim": true}))
	s.DoneAt(30 * time.Minute)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"approval": true, "additionalRequestors": []string{"net"}, "readyTimeout": "30m"}))
	s.ExpectCompleted()

	for want, out := range wanted {
		var rejected *temporal.ApplicationError
		if !errors.As(out.Rejected, &rejected) || rejected.Type() != api.ErrorNothingToDo || !strings.Contains(rejected.Message(), want) {
			t.Errorf("%s: %+v", want, out)
		}
	}
	for want, out := range map[string]*workflowtest.Outcome{"it is meant for run another": other, "the work was begun by somebody else": claim} {
		var rejected *temporal.ApplicationError
		if out.Rejected == nil || !strings.Contains(out.Rejected.Error(), want) || errors.As(out.Rejected, &rejected) && rejected.Type() == api.ErrorNothingToDo {
			t.Errorf("%s: %+v", want, out)
		}
	}
	if got := len(status.Messages); got != 5 {
		t.Errorf("%d messages are on record: %+v", got, status.Messages)
	}
}

// TestADrainThatGoesAsFarIsNotEscalated: a signal is taken as ever, as a history has it.
func TestADrainThatGoesAsFarIsNotEscalated(t *testing.T) {
	s := workflowtest.New(t)
	endless(s)
	s.SignalAt(5*time.Minute, api.MsgEscalate, workflowtest.Input{"do": "kill", "by": "amy", "comment": "now"})
	less := s.UpdateAt(6*time.Minute, api.MsgEscalate, workflowtest.Input{"do": "bypassBudget"})
	s.SignalAt(7*time.Minute, api.MsgSkipPod, workflowtest.Input{"pod": "default/web-1"})
	skipped := s.UpdateAt(8*time.Minute, api.MsgSkipPod, workflowtest.Input{"pod": "default/web-1"})
	s.SignalAt(9*time.Minute, api.MsgEscalate, workflowtest.Input{"do": "kill"})
	s.SignalAt(10*time.Minute, api.MsgCancel, nil)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCancelled()
	for want, out := range map[string]*workflowtest.Outcome{"the drain already goes as far as kill": less, "default/web-1 is skipped already": skipped} {
		var rejected *temporal.ApplicationError
		if !errors.As(out.Rejected, &rejected) || rejected.Type() != api.ErrorNothingToDo || rejected.Message() != want {
			t.Errorf("%s: %+v", want, out)
		}
	}
	if got := workflowtest.EffectsOf(status, api.MsgEscalate); len(got) != 2 || got[1] != "takes the rung kill" {
		t.Errorf("signals: %q", got)
	}
	if got := workflowtest.EffectsOf(status, api.MsgCancel); len(got) != 1 || got[0] != "cancelled; the node is being put back" {
		t.Errorf("cancel: %q", got)
	}
}

// TestAMaintenanceOf010AnswersEveryMessage sends each message as an update to a maintenance that 0.1.0 began, and that goes on here.
func TestAMaintenanceOf010AnswersEveryMessage(t *testing.T) {
	payloads := map[string]workflowtest.Input{
		api.MsgJoin: {"requestor": "net"}, api.MsgLeave: {"requestor": "net"}, api.MsgNote: {"comment": "found"}, api.MsgExtend: {"for": "4h"}, api.MsgCancel: {"beforeReady": true},
		api.MsgSkipPod: {"pod": "default/web-1"}, api.MsgHookDone: {"hook": "move"}, api.MsgSkipHook: {"hook": "move"},
		api.MsgConsent: {"force": true, "by": "amy", "comment": "why"}, api.MsgReschedule: {"notBefore": "2036-01-01T00:00:00Z"},
	}
	taken := []string{api.MsgStarted, api.MsgNote, api.MsgExtend, api.MsgJoin, api.MsgLeave, api.MsgFailed, api.MsgRetry, api.MsgDone}
	s := workflowtest.New(t)
	ofRelease(s, func(run int) bool { return run == 0 })
	s.ContinueAt(reached)
	at := reached + time.Minute
	outcomes := map[string]*workflowtest.Outcome{}
	send := func(name string) {
		if outcomes[name] != nil {
			return
		}
		payload := payloads[name]
		if payload == nil {
			payload = workflowtest.Input{}
		}
		outcomes[name] = s.UpdateAt(at, name, payload)
		at += time.Second
	}
	for _, name := range taken[:len(taken)-1] {
		send(name)
	}
	for _, name := range api.MessagesTo(api.NodeMaintenanceType) {
		if name != api.MsgDone {
			send(name)
		}
	}
	send(api.MsgDone)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	for name, out := range outcomes {
		switch {
		case slices.Contains(taken, name):
			if !out.Accepted || out.Err != nil || out.Effect == "" {
				t.Errorf("%s: %+v", name, out)
			}
		case out.Rejected == nil || strings.Contains(out.Rejected.Error(), "unknown"):
			t.Errorf("%s: %+v, want it refused with a reason", name, out)
		}
	}
	if s.Runs != 2 {
		t.Errorf("%d runs", s.Runs)
	}
}
