package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

// all are the messages to a maintenance.
var all = []string{
	api.MsgDone, api.MsgFailed, api.MsgRetry, api.MsgCancel, api.MsgExtend,
	api.MsgStarted, api.MsgDrained, api.MsgJoin, api.MsgLeave,
}

func TestWrongPayloadIsRecordedAndChangesNothing(t *testing.T) {
	for _, stage := range []struct {
		phase api.Phase
		at    time.Duration
	}{
		{api.Draining, 10 * time.Minute},
		{api.Ready, 30 * time.Minute},
		{api.RequestorFailed, 50 * time.Minute},
	} {
		for _, name := range all {
			t.Run(string(stage.phase)+"/"+name, func(t *testing.T) {
				s := workflowtest.New(t)
				s.Answer("Drain", workflowtest.Reply{After: 20 * time.Minute})
				s.SignalAt(40*time.Minute, api.MsgFailed, nil)
				before := api.Status{}
				s.CheckAt(stage.at-time.Second, func(status api.Status) { before = status })
				updates := map[string]*workflowtest.Outcome{}
				at := stage.at
				for what, text := range workflowtest.WrongPayloads {
					s.SignalAt(at, name, workflowtest.Raw(text))
					updates[what] = s.UpdateAt(at, name, workflowtest.Raw(text))
					at += time.Second
				}
				s.CheckAt(at, func(status api.Status) {
					if status.Phase != stage.phase || status.Phase != before.Phase || len(status.Transitions) != len(before.Transitions) ||
						len(status.Requestors) != 1 || status.Requestors[0].DoneAt != nil || status.WaitingFor != before.WaitingFor {
						t.Errorf("wrong payloads changed\n%+v to\n%+v", before, status)
					}
					if got := len(status.Messages) - len(before.Messages); got != len(workflowtest.WrongPayloads) {
						t.Errorf("%d messages are recorded, want %d", got, len(workflowtest.WrongPayloads))
					}
					for _, m := range status.Messages[len(before.Messages):] {
						if m.Name != name || !strings.HasPrefix(m.Effect, "ignored: ") {
							t.Errorf("recorded %+v", m)
						}
					}
				})
				s.DoneAt(55 * time.Minute)
				s.Run(workflowtest.InputWith(nil))
				s.ExpectCompleted()
				for what, update := range updates {
					if update.Rejected == nil || update.Accepted {
						t.Errorf("update with %s: %+v", what, update)
					}
				}
			})
		}
	}
}

func TestDrydocksOwnSignalsAreHarmlessWhenWrong(t *testing.T) {
	s := workflowtest.New(t)
	s.Scheduler = silent
	at := time.Second
	for _, name := range []string{
		api.SignalSlotGranted, api.SignalSlotPending, api.SignalSlotRefused, api.SignalNodeChanged,
		api.SignalHold, api.SignalDrainBlocked,
	} {
		for _, text := range workflowtest.WrongPayloads {
			s.SignalAt(at, name, workflowtest.Raw(text))
			at += 10 * time.Millisecond
		}
		s.SignalAt(at, name, nil)
	}
	s.ExpectAt(time.Minute, api.Pending, "the scheduler")
	s.At(2*time.Minute, func() { s.Grant(workflowtest.RunID + "/1") })
	s.DoneAt(20 * time.Minute)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
}

func TestMessageWithoutAPayloadTakesEffect(t *testing.T) {
	t.Run("signal", func(t *testing.T) {
		s := workflowtest.New(t)
		s.DoneAt(10 * time.Minute)
		s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
	})
	for name, payload := range map[string][]any{"none": nil, "nil": {nil}, "empty object": {workflowtest.Raw(`{}`)}} {
		t.Run("update with "+name, func(t *testing.T) {
			s := workflowtest.New(t)
			update := s.UpdateAt(10*time.Minute, api.MsgDone, payload...)
			s.Run(workflowtest.InputWith(nil))
			s.ExpectCompleted()
			if !update.Accepted || update.Err != nil || update.Effect != "ops is done" {
				t.Errorf("update: %+v", update)
			}
		})
	}
	t.Run("signal with an empty object", func(t *testing.T) {
		s := workflowtest.New(t)
		s.SignalAt(10*time.Minute, api.MsgDone, workflowtest.Raw(`{}`))
		s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
	})
}

func TestMessageSaysWhoAndWhy(t *testing.T) {
	s := workflowtest.New(t)
	s.SignalAt(10*time.Minute, api.MsgDone, workflowtest.Input{"by": "amy", "comment": "kernel 6.12"})
	status := s.Run(workflowtest.InputWith(nil))
	if len(status.Messages) != 1 || status.Messages[0].By != "amy" || status.Messages[0].Comment != "kernel 6.12" {
		t.Errorf("messages = %+v", status.Messages)
	}
}

func TestDoneOutsideReadyIsRecordedAndIgnored(t *testing.T) {
	for _, stage := range stages {
		if stage.phase == api.Ready || stage.phase == api.RequestorFailed {
			continue
		}
		t.Run(stage.name, func(t *testing.T) {
			s := workflowtest.New(t)
			stage.set(s)
			s.SignalAt(time.Minute, api.MsgDone, nil)
			update := s.UpdateAt(time.Minute, api.MsgDone)
			s.ExpectAt(2*time.Minute, stage.phase, "")
			s.SignalAt(3*time.Minute, api.MsgCancel, nil)
			status := s.Run(workflowtest.InputWith(stage.in))
			if got := workflowtest.EffectsOf(status, api.MsgDone); len(got) != 1 || !strings.HasPrefix(got[0], "ignored: ") {
				t.Errorf("done: %v", got)
			}
			if update.Rejected == nil {
				t.Errorf("update: %+v", update)
			}
		})
	}
}

func TestMessageForAnotherRunIsIgnored(t *testing.T) {
	for _, name := range []string{api.MsgDone, api.MsgFailed, api.MsgCancel, api.MsgExtend, api.MsgStarted} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.SignalAt(10*time.Minute, name, workflowtest.Input{"run": "an-earlier-run"})
			update := s.UpdateAt(10*time.Minute, name, workflowtest.Input{"run": "an-earlier-run"})
			s.ExpectAt(11*time.Minute, api.Ready, "")
			s.CheckAt(11*time.Minute, func(status api.Status) {
				if got := workflowtest.EffectsOf(status, name); len(got) != 1 || !strings.Contains(got[0], "meant for run an-earlier-run") {
					t.Errorf("%s: %v", name, got)
				}
				if status.StartedAt != nil {
					t.Error("the message took effect")
				}
			})
			s.SignalAt(20*time.Minute, api.MsgDone, workflowtest.Input{"run": workflowtest.RunID})
			s.Run(workflowtest.InputWith(nil))
			s.ExpectCompleted()
			if update.Rejected == nil {
				t.Errorf("update: %+v", update)
			}
		})
	}
}

func TestStatusKeepsTheLatestMessagesOnly(t *testing.T) {
	s := workflowtest.New(t)
	for i := range 100 {
		s.SignalAt(10*time.Minute+time.Duration(i)*time.Second, api.MsgRetry, nil)
	}
	s.DoneAt(20 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if len(status.Messages) != 30 || status.Messages[29].Name != api.MsgDone {
		t.Errorf("%d messages", len(status.Messages))
	}
}

func TestMessagesInOneTaskTakeEffectInOrder(t *testing.T) {
	s := workflowtest.New(t)
	s.At(10*time.Minute, func() {
		s.Env.SignalWorkflowSkippingWorkflowTask(api.MsgFailed, nil)
		s.Env.SignalWorkflowSkippingWorkflowTask(api.MsgRetry, nil)
		s.Env.SignalWorkflow(api.MsgDone, nil)
	})
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	for _, m := range status.Messages {
		if strings.HasPrefix(m.Effect, "ignored: ") {
			t.Errorf("message %+v", m)
		}
	}
}

// TestANoteIsRecordedAndChangesNothing sends notes in several phases, one of them without a word.
func TestANoteIsRecordedAndChangesNothing(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{After: 20 * time.Minute})
	s.SignalAt(10*time.Minute, api.MsgNote, workflowtest.Input{"by": "amy", "comment": "fan 2 is loud"})
	noted := s.UpdateAt(30*time.Minute, api.MsgNote, workflowtest.Input{"by": "amy", "comment": "fan 2 replaced, INC-4711"})
	empty := s.UpdateAt(31*time.Minute, api.MsgNote, workflowtest.Input{"by": "amy", "comment": " "})
	s.DoneAt(time.Hour)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if noted.Err != nil || empty.Rejected == nil {
		t.Errorf("a note came to %+v, one without a comment to %+v", noted, empty)
	}
	var comments []string
	for _, m := range status.Messages {
		if m.Name == api.MsgNote && m.Outcome == api.Applied {
			comments = append(comments, m.By+": "+m.Comment)
		}
	}
	if got := strings.Join(comments, ", "); got != "amy: fan 2 is loud, amy: fan 2 replaced, INC-4711" {
		t.Errorf("on record are %q", got)
	}
}
