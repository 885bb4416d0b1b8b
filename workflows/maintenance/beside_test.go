package maintenance_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/node"
	preflightactivity "drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/workflows/workflowtest"
)

// What goes on beside the steps of a maintenance has a coroutine of its own, or is answered in one. However it ends, the
// steps go on: a coroutine that waited with another's context would wedge the whole workflow, for ever.
var beside = map[string]struct {
	in workflowtest.Input
	// set prepares what goes wrong beside the wait for the requestors, which has begun after five minutes.
	set func(*workflowtest.Site)
	// met checks that it went wrong in that way.
	met func(*workflowtest.Site, api.Status) error
}{
	"a hook that ends":  {hooked, answered(workflowtest.Reply{After: 8 * time.Minute}), hookWas("done")},
	"a hook that fails": {hooked, answered(workflowtest.Reply{After: 8 * time.Minute, Err: workflowtest.Failing(api.ErrorHookFailed, "503")}), hookWas("failed: 503")},
	"a hook that fails at once": {
		hooked, answered(workflowtest.Reply{Err: workflowtest.Failing(api.ErrorHookFailed, "503")}), hookWas("failed: 503")},
	"a hook that is repeated": {
		hooked, answered(workflowtest.Reply{After: time.Minute, Err: errors.New("not yet")}, workflowtest.Reply{After: 7 * time.Minute}), hookWas("done")},
	"a hook whose time is over": {hooked, answered(workflowtest.Reply{After: 8 * time.Minute, Err: deadline()}), hookWas("failed: no success within 5m0s")},
	"a hook that is skipped": {hooked, func(s *workflowtest.Site) {
		answered(workflowtest.Reply{After: 24 * time.Hour})(s)
		s.SignalAt(8*time.Minute, api.MsgSkipHook, workflowtest.Input{"hook": "tell", "comment": "too slow"})
	}, hookWas("skipped: too slow")},
	"a hook that is skipped by an update": {hooked, func(s *workflowtest.Site) {
		answered(workflowtest.Reply{After: 24 * time.Hour})(s)
		s.UpdateAt(8*time.Minute, api.MsgSkipHook, workflowtest.Input{"hook": "tell"})
	}, hookWas("skipped")},
	"a hook that is to be tidied up, in vain": {hooked, func(s *workflowtest.Site) {
		answered(workflowtest.Reply{After: 8 * time.Minute, Err: workflowtest.Failing(api.ErrorHookFailed, "503")})(s)
		s.Usual["AbandonHook"] = workflowtest.Reply{After: time.Minute, Err: workflowtest.Failing(api.ErrorHookFailed, "no")}
	}, hookWas("failed: 503")},
	"a hook that goes on until the end": {hooked, answered(workflowtest.Reply{After: 24 * time.Hour, Err: deadline()}), nil},
	"a hook that waits for a word": {hooked, ofKindSignal(func(s *workflowtest.Site) {
		s.SignalAt(4*time.Minute, api.MsgHookDone, workflowtest.Input{"hook": "tell"})
	}), hookWas("done")},
	"a hook that waits for a word that says no": {hooked, ofKindSignal(func(s *workflowtest.Site) {
		s.SignalAt(4*time.Minute, api.MsgHookDone, workflowtest.Input{"hook": "tell", "failed": true})
	}), hookWas("failed: declared failed")},
	"a hook that waits for a word in vain": {hooked, ofKindSignal(func(*workflowtest.Site) {}), hookWas("failed: no hook-done within 5m0s")},

	"a channel that gets its events late": {nil, telling(workflowtest.Reply{After: 3 * time.Minute}), channelWas("handed over")},
	"a channel that cannot be read": {
		nil, telling(workflowtest.Reply{After: 3 * time.Minute, Err: workflowtest.Failing("Gone", "no")}), channelWas("handed over")},
	"a guard that sets the cordon again": {nil, uncordoned(workflowtest.Reply{After: time.Minute, Value: node.Held{UID: "uid-1", Mark: "mark-1", Again: true}}), noted("cordoned again (1 of 3)")},
	"a guard that cannot":                {nil, uncordoned(workflowtest.Reply{After: time.Minute, Err: workflowtest.Failing("Forbidden", "no")}), noted("the node could not be held")},
	"a guard whose attempt fails":        {nil, uncordoned(workflowtest.Reply{Err: errors.New("not yet")}, workflowtest.Reply{Value: node.Held{UID: "uid-1", Again: true}}), noted("cordoned again (1 of 3)")},
	"a guard that waits for a replacement": {workflowtest.Input{"onNodeReplaced": "adopt"}, func(s *workflowtest.Site) {
		s.Answer("HoldNode", workflowtest.Reply{}, deleted)
		s.Usual["AdoptNode"] = workflowtest.Reply{After: 24 * time.Hour}
		s.SignalAt(8*time.Minute, api.SignalNodeChanged, api.NodeChange{RequestID: workflowtest.RunID + "/1", Missing: true})
	}, noted("its replacement is adopted")},
	"a phase that is not shown": {nil, func(s *workflowtest.Site) {
		s.Usual["AnnouncePhase"] = workflowtest.Reply{After: time.Minute, Err: workflowtest.Failing("Forbidden", "no")}
	}, nil},
	"conditions that are not shown": {nil, func(s *workflowtest.Site) {
		s.Prepared.Conditions = true
		s.Usual["ShowConditions"] = workflowtest.Reply{After: time.Minute, Err: deadline()}
	}, nil},
	"a reminder that comes before the word": {workflowtest.Input{"approval": true, "approvalReminder": "1m"}, func(s *workflowtest.Site) {
		telling(workflowtest.Reply{After: time.Minute, Err: workflowtest.Failing("Gone", "no")})(s)
		s.SignalAt(150*time.Second, api.MsgApprove, nil)
	}, func(_ *workflowtest.Site, status api.Status) error {
		for _, state := range status.States {
			if state.State == notices.ApprovalReminder {
				return nil
			}
		}
		return errors.New("nobody was reminded")
	}},
	"a preflight that is asked twice": {workflowtest.Input{"preflight": "wait"}, func(s *workflowtest.Site) {
		workflowtest.Serve[preflightactivity.Input](s, "AwaitPreflight", preflight.Report{Node: workflowtest.Node})
		s.Answer("AwaitPreflight", workflowtest.Reply{After: time.Second, Err: errors.New("not yet")}, workflowtest.Reply{After: time.Minute})
		s.SignalAt(30*time.Second, api.SignalDrainBlocked, api.DrainProgress{Blockers: []api.Blocker{{Pod: "default/web", Message: "in the way"}}})
	}, nil},
	"rungs that were taken": {workflowtest.Input{"drain": workflowtest.Input{"escalation": []workflowtest.Input{{"after": "1m", "do": "bypassBudget"}}}}, func(s *workflowtest.Site) {
		s.Answer("Drain", workflowtest.Reply{After: 90 * time.Second, Err: errors.New("not yet")}, workflowtest.Reply{After: time.Minute})
		s.Answer("AnnouncePhase", workflowtest.Reply{After: time.Minute, Err: workflowtest.Failing("Forbidden", "no")})
		s.SignalAt(40*time.Second, api.MsgEscalate, workflowtest.Input{"do": "bypassBudget"})
	}, nil},
	"a slot that is granted late": {nil, func(s *workflowtest.Site) {
		s.Scheduler = func(_ string, arg any) error {
			if r, ok := arg.(api.SlotRequest); ok && s.Env.Now().Sub(r.Created) > 10*time.Second {
				s.Grant(r.ID)
			} else if ok {
				s.Env.SignalWorkflow(api.SignalSlotPending, api.SlotAnswer{RequestID: r.ID, Code: schedule.Quota, Reason: "full"})
				s.Env.RegisterDelayedCallback(func() { s.Grant(r.ID) }, time.Minute)
			}
			return nil
		}
	}, nil},
	"a freeze that is notified and over": {nil, func(s *workflowtest.Site) {
		s.HoldAt(8*time.Minute, "frozen")
		s.HoldAt(9 * time.Minute)
	}, nil},
	"a validation that is looked at": {workflowtest.Input{"validation": workflowtest.Input{"newBootID": true, "deadline": "20m"}}, func(s *workflowtest.Site) {
		s.Answer("Validate", workflowtest.Reply{After: time.Second, Err: errors.New("not yet")})
		s.Answer("AbandonChecks", workflowtest.Reply{Err: workflowtest.Failing("Forbidden", "no")})
	}, nil},
	"wrong messages": {nil, func(s *workflowtest.Site) {
		s.SignalAt(8*time.Minute, api.MsgSkipHook, "nothing that is one")
		s.UpdateAt(8*time.Minute, api.MsgExtend, workflowtest.Input{"for": "soon"})
	}, nil},
}

// hooked calls the hook that tellsBeside plans.
var hooked = workflowtest.Input{"hooks": workflowtest.Input{"afterDrain": []string{"tell"}}}

// answered has the non-blocking hook answer so, and its cleanup at once.
func answered(replies ...workflowtest.Reply) func(*workflowtest.Site) {
	return func(s *workflowtest.Site) {
		s.Prepared.Hooks = []validation.Hook{hookPlan("tell", func(p *validation.Hook) { p.Blocking, p.HasCleanup = false, true })}
		s.Answer("CallHook", replies...)
	}
}

func ofKindSignal(set func(*workflowtest.Site)) func(*workflowtest.Site) {
	return func(s *workflowtest.Site) {
		s.Prepared.Hooks = []validation.Hook{hookPlan("tell", func(p *validation.Hook) { p.Blocking, p.Kind = false, validation.KindSignal })}
		set(s)
	}
}

func telling(reply workflowtest.Reply) func(*workflowtest.Site) {
	return func(s *workflowtest.Site) {
		s.Prepared.Channels = []notices.Channel{{Name: "oncall", RetryFor: notices.DefaultRetryFor}, {Name: "chat", RetryFor: notices.DefaultRetryFor}}
		s.Answer("ReadEvents", reply)
		s.Answer("Deliver", reply)
	}
}

// uncordoned has somebody lift the cordon, and the guard's attempts to set it again answered so.
func uncordoned(replies ...workflowtest.Reply) func(*workflowtest.Site) {
	return func(s *workflowtest.Site) {
		s.Answer("HoldNode", append([]workflowtest.Reply{{}}, replies...)...)
		s.SignalAt(8*time.Minute, api.SignalNodeChanged, api.NodeChange{RequestID: workflowtest.RunID + "/1", Uncordoned: true})
	}
}

func hookWas(outcome string) func(*workflowtest.Site, api.Status) error {
	return func(_ *workflowtest.Site, status api.Status) error {
		if len(status.Hooks) == 0 || status.Hooks[0].Outcome != outcome || status.Hooks[0].Name != "tell" {
			return fmt.Errorf("hooks %+v, want %s", status.Hooks, outcome)
		}
		return nil
	}
}

func channelWas(outcome string) func(*workflowtest.Site, api.Status) error {
	return func(_ *workflowtest.Site, status api.Status) error {
		if len(status.Channels) == 0 || status.Channels[0].Outcome != outcome {
			return fmt.Errorf("channels %+v, want %s", status.Channels, outcome)
		}
		return nil
	}
}

func noted(what string) func(*workflowtest.Site, api.Status) error {
	return func(_ *workflowtest.Site, status api.Status) error {
		return contains(workflowtest.MessagesOf(status), what)
	}
}

func contains(text, what string) error {
	if !strings.Contains(text, what) {
		return fmt.Errorf("%q is not in %s", what, text)
	}
	return nil
}

func TestWhateverHappensBesideAMaintenanceItsMessagesTakeEffect(t *testing.T) {
	for name, c := range beside {
		prepare := func(t *testing.T) *workflowtest.Site {
			s := workflowtest.New(t)
			c.set(s)
			return s
		}
		t.Run(name+"/done", func(t *testing.T) {
			s := prepare(t).DoneAt(15 * time.Minute)
			status := s.Run(workflowtest.InputWith(c.in))
			s.ExpectCompleted()
			if status.Phase != api.Completed {
				t.Errorf("the end is %s: %s", status.Phase, status.Failure)
			}
			if c.met != nil {
				if err := c.met(s, status); err != nil {
					t.Error(err)
				}
			}
		})
		t.Run(name+"/cancel", func(t *testing.T) {
			s := prepare(t)
			s.SignalAt(15*time.Minute, api.MsgCancel, workflowtest.Input{"release": true, "by": "amy"})
			status := s.Run(workflowtest.InputWith(c.in))
			s.ExpectCancelled()
			if err := contains(status.Failure, "cancelled by amy"); err != nil {
				t.Error(err)
			}
		})
		t.Run(name+"/cancel meanwhile", func(t *testing.T) {
			s := prepare(t)
			s.SignalAt(8*time.Minute+30*time.Second, api.MsgCancel, workflowtest.Input{"release": true, "by": "amy"})
			s.Run(workflowtest.InputWith(c.in))
			s.ExpectCancelled()
		})
	}
}
