package workflows_test

import (
	"strings"
	"testing"
	"time"

	"drydock/workflows"
)

// all are the messages to a maintenance.
var all = []string{
	workflows.MsgDone, workflows.MsgFailed, workflows.MsgRetry, workflows.MsgCancel, workflows.MsgExtend,
	workflows.MsgStarted, workflows.MsgDrained, workflows.MsgJoin, workflows.MsgLeave,
}

// wrong are payloads that no message takes.
var wrong = map[string]string{
	"a string":        `"ops"`,
	"an empty string": `""`,
	"an array":        `[{"by":"amy"}]`,
	"a number":        `7`,
	"a boolean":       `true`,
	"null":            `null`,
	"unknown field":   `{"by":"amy","nobody":"knows"}`,
	"another case":    `{"By":"amy"}`,
	"a null field":    `{"by":null}`,
	"wrong type":      `{"by":7}`,
	"twice":           `{"by":"amy","by":"bob"}`,
	"not JSON":        `{"by"`,
}

func TestWrongPayloadIsRecordedAndChangesNothing(t *testing.T) {
	for _, stage := range []struct {
		phase workflows.Phase
		at    time.Duration
	}{
		{workflows.Draining, 10 * time.Minute},
		{workflows.Ready, 30 * time.Minute},
		{workflows.RequestorFailed, 50 * time.Minute},
	} {
		for _, name := range all {
			t.Run(string(stage.phase)+"/"+name, func(t *testing.T) {
				s := newSite(t)
				s.answer("Drain", reply{after: 20 * time.Minute})
				s.signalAt(40*time.Minute, workflows.MsgFailed, nil)
				before := workflows.Status{}
				s.checkAt(stage.at-time.Second, func(status workflows.Status) { before = status })
				updates := map[string]*outcome{}
				at := stage.at
				for what, text := range wrong {
					s.signalAt(at, name, raw(text))
					updates[what] = s.updateAt(at, name, raw(text))
					at += time.Second
				}
				s.checkAt(at, func(status workflows.Status) {
					if status.Phase != stage.phase || status.Phase != before.Phase || len(status.Transitions) != len(before.Transitions) ||
						len(status.Requestors) != 1 || status.Requestors[0].DoneAt != nil || status.WaitingFor != before.WaitingFor {
						t.Errorf("wrong payloads changed\n%+v to\n%+v", before, status)
					}
					if got := len(status.Messages) - len(before.Messages); got != len(wrong) {
						t.Errorf("%d messages are recorded, want %d", got, len(wrong))
					}
					for _, m := range status.Messages[len(before.Messages):] {
						if m.Name != name || !strings.HasPrefix(m.Effect, "ignored: ") {
							t.Errorf("recorded %+v", m)
						}
					}
				})
				s.doneAt(55 * time.Minute)
				s.run(of(nil))
				s.expectCompleted()
				for what, update := range updates {
					if update.rejected == nil || update.accepted {
						t.Errorf("update with %s: %+v", what, update)
					}
				}
			})
		}
	}
}

func TestDrydocksOwnSignalsAreHarmlessWhenWrong(t *testing.T) {
	s := newSite(t)
	s.scheduler = silent
	at := time.Second
	for _, name := range []string{
		workflows.SignalSlotGranted, workflows.SignalSlotPending, workflows.SignalSlotRefused, workflows.SignalNodeChanged,
		workflows.SignalHold, workflows.SignalDrainBlocked,
	} {
		for _, text := range wrong {
			s.signalAt(at, name, raw(text))
			at += 10 * time.Millisecond
		}
		s.signalAt(at, name, nil)
	}
	s.expectAt(time.Minute, workflows.Pending, "an answer from the scheduler")
	s.at(2*time.Minute, func() { s.grant(testRun + "/1") })
	s.doneAt(20 * time.Minute)
	s.run(of(nil))
	s.expectCompleted()
}

func TestMessageWithoutAPayloadTakesEffect(t *testing.T) {
	t.Run("signal", func(t *testing.T) {
		s := newSite(t)
		s.doneAt(10 * time.Minute)
		s.run(of(nil))
		s.expectCompleted()
	})
	for name, payload := range map[string][]any{"none": nil, "nil": {nil}, "empty object": {raw(`{}`)}} {
		t.Run("update with "+name, func(t *testing.T) {
			s := newSite(t)
			update := s.updateAt(10*time.Minute, workflows.MsgDone, payload...)
			s.run(of(nil))
			s.expectCompleted()
			if !update.accepted || update.err != nil || update.effect != "ops is done" {
				t.Errorf("update: %+v", update)
			}
		})
	}
	t.Run("signal with an empty object", func(t *testing.T) {
		s := newSite(t)
		s.signalAt(10*time.Minute, workflows.MsgDone, raw(`{}`))
		s.run(of(nil))
		s.expectCompleted()
	})
}

func TestMessageSaysWhoAndWhy(t *testing.T) {
	s := newSite(t)
	s.signalAt(10*time.Minute, workflows.MsgDone, input{"by": "amy", "comment": "kernel 6.12"})
	status := s.run(of(nil))
	if len(status.Messages) != 1 || status.Messages[0].By != "amy" || status.Messages[0].Comment != "kernel 6.12" {
		t.Errorf("messages = %+v", status.Messages)
	}
}

func TestDoneOutsideReadyIsRecordedAndIgnored(t *testing.T) {
	for _, stage := range stages {
		if stage.phase == workflows.Ready || stage.phase == workflows.RequestorFailed {
			continue
		}
		t.Run(stage.name, func(t *testing.T) {
			s := newSite(t)
			stage.set(s)
			s.signalAt(time.Minute, workflows.MsgDone, nil)
			update := s.updateAt(time.Minute, workflows.MsgDone)
			s.expectAt(2*time.Minute, stage.phase, "")
			s.signalAt(3*time.Minute, workflows.MsgCancel, nil)
			status := s.run(of(stage.in))
			if got := received(status, workflows.MsgDone); len(got) != 1 || !strings.HasPrefix(got[0], "ignored: ") {
				t.Errorf("done: %v", got)
			}
			if update.rejected == nil {
				t.Errorf("update: %+v", update)
			}
		})
	}
}

func TestMessageForAnotherRunIsIgnored(t *testing.T) {
	for _, name := range []string{workflows.MsgDone, workflows.MsgFailed, workflows.MsgCancel, workflows.MsgExtend, workflows.MsgStarted} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.signalAt(10*time.Minute, name, input{"run": "an-earlier-run"})
			update := s.updateAt(10*time.Minute, name, input{"run": "an-earlier-run"})
			s.expectAt(11*time.Minute, workflows.Ready, "")
			s.checkAt(11*time.Minute, func(status workflows.Status) {
				if got := received(status, name); len(got) != 1 || !strings.Contains(got[0], "meant for run an-earlier-run") {
					t.Errorf("%s: %v", name, got)
				}
				if status.StartedAt != nil {
					t.Error("the message took effect")
				}
			})
			s.signalAt(20*time.Minute, workflows.MsgDone, input{"run": testRun})
			s.run(of(nil))
			s.expectCompleted()
			if update.rejected == nil {
				t.Errorf("update: %+v", update)
			}
		})
	}
}

func TestStatusKeepsTheLatestMessagesOnly(t *testing.T) {
	s := newSite(t)
	for i := range 100 {
		s.signalAt(10*time.Minute+time.Duration(i)*time.Second, workflows.MsgRetry, nil)
	}
	s.doneAt(20 * time.Minute)
	status := s.run(of(nil))
	s.expectCompleted()
	if len(status.Messages) != 30 || status.Messages[29].Name != workflows.MsgDone {
		t.Errorf("%d messages", len(status.Messages))
	}
}

func TestMessagesInOneTaskTakeEffectInOrder(t *testing.T) {
	s := newSite(t)
	s.at(10*time.Minute, func() {
		s.env.SignalWorkflowSkippingWorkflowTask(workflows.MsgFailed, nil)
		s.env.SignalWorkflowSkippingWorkflowTask(workflows.MsgRetry, nil)
		s.env.SignalWorkflow(workflows.MsgDone, nil)
	})
	status := s.run(of(nil))
	s.expectCompleted()
	for _, m := range status.Messages {
		if strings.HasPrefix(m.Effect, "ignored: ") {
			t.Errorf("message %+v", m)
		}
	}
}
