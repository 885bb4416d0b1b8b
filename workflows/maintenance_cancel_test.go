package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drydock/activities"
	"drydock/workflows"
	"drydock/workflows/schedule"
)

// stages bring a maintenance to a phase in which it stays for more than an hour from one minute on.
var stages = []struct {
	name   string
	phase  workflows.Phase
	in     input
	set    func(s *site)
	undone []string
}{
	{
		name: "not acknowledged", phase: workflows.Pending,
		set: func(s *site) { s.scheduler = silent },
	},
	{
		name: "acknowledged", phase: workflows.Pending,
		set: func(s *site) {
			s.scheduler = silent
			s.signalAt(time.Second, workflows.SignalSlotPending, workflows.SlotAnswer{RequestID: testRun + "/1", Code: schedule.MaxParallel, Reason: "full"})
		},
	},
	{
		name: "no scheduler", phase: workflows.Pending,
		set: func(s *site) {
			asked := 0
			s.scheduler = func(name string, _ any) error {
				if asked++; name == workflows.SignalSlotRequest && asked > 1 {
					return errUnknown
				}
				return nil
			}
		},
	},
	{
		name: "frozen before the cordon", phase: workflows.Scheduled,
		set: func(s *site) {
			s.freeze = []string{"frozen by amy"}
			s.signalAt(10*time.Minute, workflows.SignalHold, workflows.Hold{})
		},
	},
	{
		name: "cordoning", phase: workflows.Cordoning,
		set:    func(s *site) { s.answer("HoldNode", reply{after: 2 * time.Hour}) },
		undone: []string{"HoldNode", "ReleaseNode"},
	},
	{
		name: "waiting for pods", phase: workflows.WaitingForPods, in: input{"waitForPodCompletion": input{"podSelector": "a=b"}},
		set:    func(s *site) { s.answer("WaitForPods", reply{after: 2 * time.Hour}) },
		undone: []string{"HoldNode", "WaitForPods", "ReleaseNode"},
	},
	{
		name: "draining", phase: workflows.Draining,
		set:    func(s *site) { s.answer("Drain", reply{after: 2 * time.Hour}) },
		undone: []string{"HoldNode", "Drain", "ReleaseNode"},
	},
	{
		name: "drained by others", phase: workflows.Draining, in: input{"drain": input{"mode": "external", "escalation": []input{}}},
		set:    func(*site) {},
		undone: []string{"HoldNode", "ReleaseNode"},
	},
	{
		name: "backing off", phase: workflows.Pending, in: input{"drain": input{"escalation": []input{{"after": "30s", "do": "giveBack"}}}},
		set:    func(s *site) { s.answer("Drain", reply{after: 24 * time.Hour}) },
		undone: []string{"HoldNode", "Drain", "ReleaseNode"},
	},
	{
		name: "ready", phase: workflows.Ready, in: input{"readyTimeout": "0s", "drain": input{"mode": "none"}},
		set:    func(*site) {},
		undone: []string{"HoldNode", "AnnouncePhase", "ReleaseNode"},
	},
	{
		name: "requestor failed", phase: workflows.RequestorFailed, in: input{"drain": input{"mode": "none"}},
		set: func(s *site) {
			s.signalAt(30*time.Second, workflows.MsgFailed, input{"reason": "half flashed"})
		},
		undone: []string{"HoldNode", "AnnouncePhase", "AnnouncePhase", "ReleaseNode"},
	},
}

func TestCancelInEveryPhase(t *testing.T) {
	const when = time.Minute
	for _, stage := range stages {
		held := stage.phase == workflows.Ready || stage.phase == workflows.RequestorFailed
		for _, way := range []string{"signal", "signal with release", "update", "update with release", "workflow"} {
			release := strings.HasSuffix(way, "release")
			t.Run(stage.name+"/"+way, func(t *testing.T) {
				s := newSite(t)
				stage.set(s)
				s.expectAt(when-time.Second, stage.phase, "")
				payload := input{"by": "amy", "comment": "not today"}
				if release {
					payload["release"] = true
				}
				var update *outcome
				switch {
				case way == "workflow":
					s.at(when, s.env.CancelWorkflow)
				case strings.HasPrefix(way, "signal"):
					s.signalAt(when, workflows.MsgCancel, payload)
				default:
					update = s.updateAt(when, workflows.MsgCancel, payload)
				}
				if held && !release {
					s.expectAt(when+time.Second, workflows.RequestorFailed, "")
					s.expectAt(when+5*time.Hour, workflows.RequestorFailed, "a decision")
					s.signalAt(when+6*time.Hour, workflows.MsgCancel, input{"release": true})
				}
				status := s.run(of(stage.in))
				s.expectCancelled()
				if status.Phase != workflows.Cancelled {
					t.Errorf("the end is %s", status.Phase)
				}
				got := slices.DeleteFunc(slices.Clone(s.log), func(what string) bool { return strings.HasPrefix(what, "slot-") })
				want := stage.undone
				if stage.phase == workflows.Ready && !release {
					want = []string{"HoldNode", "AnnouncePhase", "AnnouncePhase", "ReleaseNode"}
				}
				if !slices.Equal(got, want) {
					t.Errorf("it did %v, want %v", got, want)
				}
				if update != nil {
					refused := stage.phase == workflows.RequestorFailed && !release
					if refused != (update.rejected != nil) || update.err != nil {
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

func TestCancelDuringTheReleaseChangesNothing(t *testing.T) {
	s := newSite(t)
	s.doneAt(10 * time.Minute)
	s.answer("ReleaseNode", reply{after: 10 * time.Minute})
	s.signalAt(15*time.Minute, workflows.MsgCancel, nil)
	update := s.updateAt(15*time.Minute, workflows.MsgCancel)
	s.at(16*time.Minute, s.env.CancelWorkflow)
	status := s.run(of(nil))
	s.expectCompleted()
	if update.rejected == nil {
		t.Errorf("a cancel of an ending maintenance was accepted: %+v", update)
	}
	if got := received(status, workflows.MsgCancel); len(got) != 1 || !strings.HasPrefix(got[0], "ignored: ") {
		t.Errorf("cancel: %v", got)
	}
	if s.count("ReleaseNode") != 1 {
		t.Errorf("released %d times", s.count("ReleaseNode"))
	}
}

func TestCancelBeforeTheInputIsReadUndoesNothingButEnds(t *testing.T) {
	s := newSite(t)
	s.at(0, s.env.CancelWorkflow)
	status := s.run(of(nil))
	s.expectCancelled()
	if status.Phase != workflows.Cancelled || s.count("HoldNode") > 0 {
		t.Errorf("the end is %s after %v", status.Phase, s.log)
	}
}

func TestCancelThatMeetsTheGrantGivesTheSlotBack(t *testing.T) {
	s := newSite(t)
	s.scheduler = silent
	s.at(time.Minute, func() {
		s.env.SignalWorkflowSkippingWorkflowTask(workflows.SignalSlotGranted, workflows.SlotAnswer{RequestID: testRun + "/1"})
		s.env.SignalWorkflow(workflows.MsgCancel, nil)
	})
	status := s.run(of(nil))
	s.expectCancelled()
	if status.Phase != workflows.Cancelled || s.count("HoldNode") > 0 {
		t.Errorf("the end is %s after %v", status.Phase, s.log)
	}
}

func TestReleaseIsRetriedUntilItSucceeds(t *testing.T) {
	s := newSite(t)
	s.doneAt(10 * time.Minute)
	s.answer("ReleaseNode",
		reply{err: failing(activities.ErrorMissingPermission, "may not patch nodes")},
		reply{err: failing(activities.ErrorMissingPermission, "may not patch nodes")})
	s.expectAt(10*time.Minute+20*time.Second, workflows.Releasing, "may not patch nodes")
	status := s.run(of(nil))
	s.expectCompleted()
	if status.Phase != workflows.Completed || s.count("ReleaseNode") != 3 {
		t.Errorf("%s after %d attempts", status.Phase, s.count("ReleaseNode"))
	}
}

func TestSlotIsGivenBackOnceThereIsASchedulerAgain(t *testing.T) {
	s := newSite(t)
	s.doneAt(10 * time.Minute)
	tries := 0
	s.scheduler = func(name string, arg any) error {
		if r, ok := arg.(workflows.SlotRequest); ok {
			s.grant(r.ID)
			return nil
		}
		if tries++; tries < 12 {
			return errUnknown
		}
		return nil
	}
	s.expectAt(10*time.Minute+20*time.Second, workflows.Releasing, "the node and its slot to be released")
	s.run(of(nil))
	s.expectCompleted()
	if tries != 12 {
		t.Errorf("the slot was released at the %dth attempt, want the 12th", tries)
	}
}

func TestNodeThatIsGoneWhenItsRequestorIsDoneIsReported(t *testing.T) {
	s := newSite(t)
	s.doneAt(10 * time.Minute)
	s.answer("ReleaseNode", reply{value: activities.Released{Gone: true}})
	status := s.run(of(nil))
	if result := s.expectCompleted(); result.Phase != workflows.NodeGone || status.Phase != workflows.NodeGone {
		t.Errorf("result = %+v", result)
	}
}

func TestNodeThatOthersStillHoldIsNoted(t *testing.T) {
	s := newSite(t)
	s.doneAt(10 * time.Minute)
	s.answer("ReleaseNode", reply{value: activities.Released{OtherHolders: []string{"net"}}})
	status := s.run(of(nil))
	s.expectCompleted()
	if !strings.Contains(messagesOf(status), "stays out of service for [net]") {
		t.Errorf("transitions:\n%s", messagesOf(status))
	}
}
