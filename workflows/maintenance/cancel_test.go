package maintenance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/workflowtest"
)

// stages bring a maintenance to a phase in which it stays for more than an hour from one minute on.
var stages = []struct {
	name   string
	phase  api.Phase
	in     workflowtest.Input
	set    func(s *workflowtest.Site)
	undone []string
}{
	{
		name: "not acknowledged", phase: api.Pending,
		set: func(s *workflowtest.Site) { s.Scheduler = silent },
	},
	{
		name: "acknowledged", phase: api.Pending,
		set: func(s *workflowtest.Site) {
			s.Scheduler = silent
			s.SignalAt(time.Second, api.SignalSlotPending, api.SlotAnswer{RequestID: workflowtest.RunID + "/1", Code: schedule.MaxParallel, Reason: "full"})
		},
	},
	{
		name: "no scheduler", phase: api.Pending,
		set: func(s *workflowtest.Site) {
			asked := 0
			s.Scheduler = func(name string, _ any) error {
				if asked++; name == api.SignalSlotRequest && asked > 1 {
					return errUnknown
				}
				return nil
			}
		},
	},
	{
		name: "frozen before the cordon", phase: api.Scheduled,
		set: func(s *workflowtest.Site) {
			s.Freeze = []string{"frozen by amy"}
			s.HoldAt(10 * time.Minute)
		},
	},
	{
		name: "cordoning", phase: api.Cordoning,
		set:    func(s *workflowtest.Site) { s.Answer("HoldNode", workflowtest.Reply{After: 2 * time.Hour}) },
		undone: []string{"HoldNode", "ReleaseNode"},
	},
	{
		name: "waiting for pods", phase: api.WaitingForPods, in: workflowtest.Input{"waitForPodCompletion": workflowtest.Input{"podSelector": "a=b"}},
		set:    func(s *workflowtest.Site) { s.Answer("WaitForPods", workflowtest.Reply{After: 2 * time.Hour}) },
		undone: []string{"HoldNode", "WaitForPods", "ReleaseNode"},
	},
	{
		name: "draining", phase: api.Draining,
		set:    func(s *workflowtest.Site) { s.Answer("Drain", workflowtest.Reply{After: 2 * time.Hour}) },
		undone: []string{"HoldNode", "Drain", "ReleaseNode"},
	},
	{
		name: "drained by others", phase: api.Draining, in: workflowtest.Input{"drain": workflowtest.Input{"mode": "external", "escalation": []workflowtest.Input{}}},
		set:    func(*workflowtest.Site) {},
		undone: []string{"HoldNode", "ReleaseNode"},
	},
	{
		name: "backing off", phase: api.Pending, in: workflowtest.Input{"drain": workflowtest.Input{"escalation": []workflowtest.Input{{"after": "30s", "do": "giveBack"}}}},
		set:    func(s *workflowtest.Site) { s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}) },
		undone: []string{"HoldNode", "Drain", "ReleaseNode"},
	},
	{
		name: "ready", phase: api.Ready, in: workflowtest.Input{"readyTimeout": "0s", "drain": workflowtest.Input{"mode": "none"}},
		set:    func(*workflowtest.Site) {},
		undone: []string{"HoldNode", "AnnouncePhase", "ReleaseNode"},
	},
	{
		name: "requestor failed", phase: api.RequestorFailed, in: workflowtest.Input{"drain": workflowtest.Input{"mode": "none"}},
		set: func(s *workflowtest.Site) {
			s.SignalAt(30*time.Second, api.MsgFailed, workflowtest.Input{"reason": "half flashed"})
		},
		undone: []string{"HoldNode", "AnnouncePhase", "AnnouncePhase", "ReleaseNode"},
	},
}

func TestCancelInEveryPhase(t *testing.T) {
	const when = time.Minute
	for _, stage := range stages {
		held := stage.phase == api.Ready || stage.phase == api.RequestorFailed
		for _, way := range []string{"signal", "signal with release", "update", "update with release", "workflow"} {
			release := strings.HasSuffix(way, "release")
			t.Run(stage.name+"/"+way, func(t *testing.T) {
				s := workflowtest.New(t)
				stage.set(s)
				s.ExpectAt(when-time.Second, stage.phase, "")
				payload := workflowtest.Input{"by": "amy", "comment": "not today"}
				if release {
					payload["release"] = true
				}
				var update *workflowtest.Outcome
				switch {
				case way == "workflow":
					s.At(when, s.Env.CancelWorkflow)
				case strings.HasPrefix(way, "signal"):
					s.SignalAt(when, api.MsgCancel, payload)
				default:
					update = s.UpdateAt(when, api.MsgCancel, payload)
				}
				if held && !release {
					s.ExpectAt(when+time.Second, api.RequestorFailed, "")
					s.ExpectAt(when+5*time.Hour, api.RequestorFailed, "a decision")
					s.SignalAt(when+6*time.Hour, api.MsgCancel, workflowtest.Input{"release": true})
				}
				status := s.Run(workflowtest.InputWith(stage.in))
				s.ExpectCancelled()
				if status.Phase != api.Cancelled {
					t.Errorf("the end is %s", status.Phase)
				}
				got := slices.DeleteFunc(slices.Clone(s.Log), func(what string) bool { return strings.HasPrefix(what, "slot-") || what == "AskSlot" })
				want := stage.undone
				if stage.phase == api.Ready && !release {
					want = []string{"HoldNode", "AnnouncePhase", "AnnouncePhase", "ReleaseNode"}
				}
				if !slices.Equal(got, want) {
					t.Errorf("it did %v, want %v", got, want)
				}
				if update != nil {
					refused := stage.phase == api.RequestorFailed && !release
					if refused != (update.Rejected != nil) || update.Err != nil {
						t.Errorf("update: %+v", update)
					}
				}
				if way != "workflow" && !(held && !release) && !strings.Contains(status.Failure, "cancelled by amy: not today") {
					t.Errorf("the reason is %q", status.Failure)
				}
			})
		}
	}
}

// TestACancelBeforeReadyLeavesAloneWhoIsReady: a plan that ends has the work on its nodes finished.
func TestACancelBeforeReadyLeavesAloneWhoIsReady(t *testing.T) {
	const when = time.Minute
	for _, stage := range stages {
		held := stage.phase == api.Ready || stage.phase == api.RequestorFailed
		t.Run(stage.name, func(t *testing.T) {
			s := workflowtest.New(t)
			stage.set(s)
			s.SignalAt(when, api.MsgCancel, api.Cancel{BeforeReady: true})
			if held {
				s.ExpectAt(when+time.Second, stage.phase, "")
				update := s.UpdateAt(when+2*time.Second, api.MsgCancel, api.Cancel{BeforeReady: true})
				s.SignalAt(when+time.Minute, api.MsgCancel, api.Cancel{Release: true})
				defer func() {
					if update.Rejected == nil {
						t.Errorf("update: %+v", update)
					}
				}()
			}
			if status := s.Run(workflowtest.InputWith(stage.in)); status.Phase != api.Cancelled {
				t.Errorf("the end is %s", status.Phase)
			}
			s.ExpectCancelled()
		})
	}
}

func TestCancelDuringTheReleaseChangesNothing(t *testing.T) {
	s := workflowtest.New(t)
	s.DoneAt(10 * time.Minute)
	s.Answer("ReleaseNode", workflowtest.Reply{After: 10 * time.Minute})
	s.SignalAt(15*time.Minute, api.MsgCancel, nil)
	update := s.UpdateAt(15*time.Minute, api.MsgCancel)
	s.At(16*time.Minute, s.Env.CancelWorkflow)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if update.Rejected == nil {
		t.Errorf("a cancel of an ending maintenance was accepted: %+v", update)
	}
	if got := workflowtest.EffectsOf(status, api.MsgCancel); len(got) != 1 || !strings.HasPrefix(got[0], "ignored: ") {
		t.Errorf("cancel: %v", got)
	}
	if s.Count("ReleaseNode") != 1 {
		t.Errorf("released %d times", s.Count("ReleaseNode"))
	}
}

func TestCancelBeforeTheInputIsReadUndoesNothingButEnds(t *testing.T) {
	s := workflowtest.New(t)
	s.At(0, s.Env.CancelWorkflow)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCancelled()
	if status.Phase != api.Cancelled || s.Count("HoldNode") > 0 {
		t.Errorf("the end is %s after %v", status.Phase, s.Log)
	}
}

func TestCancelThatMeetsTheGrantGivesTheSlotBack(t *testing.T) {
	s := workflowtest.New(t)
	s.Scheduler = silent
	s.At(time.Minute, func() {
		s.Env.SignalWorkflowSkippingWorkflowTask(api.SignalSlotGranted, api.SlotAnswer{RequestID: workflowtest.RunID + "/1"})
		s.Env.SignalWorkflow(api.MsgCancel, nil)
	})
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCancelled()
	if status.Phase != api.Cancelled || s.Count("HoldNode") > 0 {
		t.Errorf("the end is %s after %v", status.Phase, s.Log)
	}
}

func TestReleaseIsRetriedUntilItSucceeds(t *testing.T) {
	s := workflowtest.New(t)
	s.DoneAt(10 * time.Minute)
	s.Answer("ReleaseNode",
		workflowtest.Reply{Err: workflowtest.Failing(api.ErrorMissingPermission, "may not patch nodes")},
		workflowtest.Reply{Err: workflowtest.Failing(api.ErrorMissingPermission, "may not patch nodes")})
	s.ExpectAt(10*time.Minute+20*time.Second, api.Releasing, "may not patch nodes")
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if status.Phase != api.Completed || s.Count("ReleaseNode") != 3 {
		t.Errorf("%s after %d attempts", status.Phase, s.Count("ReleaseNode"))
	}
}

func TestSlotIsGivenBackOnceThereIsASchedulerAgain(t *testing.T) {
	s := workflowtest.New(t)
	s.DoneAt(10 * time.Minute)
	tries := 0
	s.Scheduler = func(name string, arg any) error {
		if r, ok := arg.(api.SlotRequest); ok {
			s.Grant(r.ID)
			return nil
		}
		if tries++; tries < 12 {
			return errUnknown
		}
		return nil
	}
	s.ExpectAt(10*time.Minute+20*time.Second, api.Releasing, "the node's release")
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if tries != 12 {
		t.Errorf("the slot was released at the %dth attempt, want the 12th", tries)
	}
}

func TestNodeThatIsGoneWhenItsRequestorIsDoneIsReported(t *testing.T) {
	s := workflowtest.New(t)
	s.DoneAt(10 * time.Minute)
	s.Answer("ReleaseNode", workflowtest.Reply{Value: node.Released{Gone: true}})
	status := s.Run(workflowtest.InputWith(nil))
	if result := s.ExpectCompleted(); result.Phase != api.NodeGone || status.Phase != api.NodeGone {
		t.Errorf("result = %+v", result)
	}
}

func TestNodeThatOthersStillHoldIsNoted(t *testing.T) {
	s := workflowtest.New(t)
	s.DoneAt(10 * time.Minute)
	s.Answer("ReleaseNode", workflowtest.Reply{Value: node.Released{OtherHolders: []string{"net"}}})
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if !strings.Contains(workflowtest.MessagesOf(status), "stays out of service for net") {
		t.Errorf("transitions:\n%s", workflowtest.MessagesOf(status))
	}
}
