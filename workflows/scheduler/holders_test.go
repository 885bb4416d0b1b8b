package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/scheduler"
)

// controlPlane lets the remediation of a control-plane node by a check ask.
func (f *fleet) controlPlane(when time.Duration, node, check string) *asking {
	a := f.request(when, node, "health-"+check, 0)
	a.request.Kind = schedule.KindControlPlane
	return a
}

const (
	first  = "n1/health-a"
	second = "n2/health-b"
)

func TestOneControlPlaneNodeHasASlot(t *testing.T) {
	for _, after := range []int{0, 1, 2} {
		t.Run(fmt.Sprint("continued as new after ", after), func(t *testing.T) {
			f := newFleet(t, 3)
			f.state.ContinueAfter = after
			a := f.controlPlane(time.Minute, "n1", "a")
			b := f.controlPlane(2*time.Minute, "n2", "b")
			planned := f.request(3*time.Minute, "n1", "ops", 0) // a maintenance of the node is another matter
			f.expectAt(5*time.Minute, first+" n1/ops", second)
			f.at(6*time.Minute, func() { f.signal(api.SignalSlotRequest, a.request); f.signal(api.SignalSlotRequest, b.request) }) // repeated
			f.at(10*time.Minute, func() { f.release(a) })
			f.expectAt(12*time.Minute, "n1/ops "+second, "")
			f.run(time.Hour)
			if len(a.granted) != 2 || len(b.granted) != 1 || len(planned.granted) != 1 || len(b.pending) != 2 || a.refused != nil {
				t.Errorf("granted %v, %v and %v; got %+v", a.granted, b.granted, planned.granted, b.pending)
			}
			if len(b.pending) > 0 && b.pending[0].Reason != "one control-plane node is remediated at a time, now n1" {
				t.Errorf("it waits for %q", b.pending[0].Reason)
			}
			if len(a.changed) > 0 || f.count("ReleaseNode") > 0 {
				t.Errorf("it marks no node, and got %+v; %v", a.changed, f.log)
			}
		})
	}
}

func TestOfTwoThatAskAtOnceOneHasTheSlot(t *testing.T) {
	f := newFleet(t, 3)
	f.controlPlane(time.Minute, "n1", "a")
	f.controlPlane(time.Minute, "n2", "b")
	f.expectAt(2*time.Minute, first, second)
	f.run(time.Hour)
}

func TestARequestOfAControlPlaneNodeIsWithdrawn(t *testing.T) {
	f := newFleet(t, 3)
	a := f.controlPlane(time.Minute, "n1", "a")
	b := f.controlPlane(2*time.Minute, "n2", "b")
	f.at(5*time.Minute, func() { f.release(b) })
	f.expectAt(6*time.Minute, first, "")
	f.at(10*time.Minute, func() { f.release(a) })
	f.expectAt(11*time.Minute, "", "")
	f.run(time.Hour)
	if len(b.granted) > 0 {
		t.Errorf("it was granted %v", b.granted)
	}
}

// Anybody can say that a slot is given back.
func TestTheSlotOfAControlPlaneNodeIsGivenBackByItsHolderOnly(t *testing.T) {
	f := newFleet(t, 3)
	a := f.controlPlane(time.Minute, "n1", "a")
	f.controlPlane(2*time.Minute, "n2", "b")
	f.at(5*time.Minute, func() { f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: a.request.ID}) })
	f.expectAt(10*time.Minute, first, second)
	f.run(time.Hour)
	if f.count("Query slot") != 1 {
		t.Errorf("it was asked %d times", f.count("Query slot"))
	}
}

func TestASlotIsTakenBackFromARemediationThatEndsWithoutAWord(t *testing.T) {
	f := newFleet(t, 3)
	a := f.controlPlane(time.Minute, "n1", "a")
	f.controlPlane(2*time.Minute, "n2", "b")
	f.kill(5*time.Minute, a)
	f.expectAt(7*time.Minute, second, "")
	f.run(time.Hour)
	if f.count("AskFate node-remediation/a/n1") != 1 || f.count("ReleaseNode") > 0 {
		t.Errorf("%v", f.log)
	}
}

// What it has made may be about to restart the node.
func TestASlotIsNotTakenBackWhileTheNodeIsLeased(t *testing.T) {
	f := newFleet(t, 3)
	f.leased = map[string]time.Duration{"n1": 10 * time.Minute}
	a := f.controlPlane(time.Minute, "n1", "a")
	f.controlPlane(2*time.Minute, "n2", "b")
	f.kill(5*time.Minute, a)
	f.expectAt(9*time.Minute, first, second)
	f.expectAt(12*time.Minute, second, "")
	f.run(time.Hour)
}

// Its execution was deleted, and somebody says that it has given its slot back.
func (f *fleet) deleted(when time.Duration, a *asking) {
	f.at(when, func() {
		f.mu.Lock()
		delete(f.asking, a.request.RunID)
		f.mu.Unlock()
		f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: a.request.ID})
	})
}

func TestASlotIsKeptWhileWhatADeletedRemediationMadeIsAtWork(t *testing.T) {
	f := newFleet(t, 3)
	f.leased = map[string]time.Duration{"n1": 10 * time.Minute}
	a := f.controlPlane(time.Minute, "n1", "a")
	f.controlPlane(2*time.Minute, "n2", "b")
	f.deleted(5*time.Minute, a)
	f.expectAt(9*time.Minute, first, second)
	f.expectAt(12*time.Minute, second, "")
	f.run(time.Hour)
}

// A watch may be behind its last write.
func TestTheSlotOfADeletedTransitionIsKeptUntilTheNodeShowsIt(t *testing.T) {
	f := newFleet(t, 4)
	f.state.Limits.Limits = schedule.Limits{MaxUnavailable: schedule.Count(1)}
	a := f.profile(time.Minute, "n1", "p")
	f.profile(2*time.Minute, "n2", "p")
	f.deleted(5*time.Minute, a)
	f.expectAt(5*time.Minute+40*time.Second, "n1/profile-p", "n2/profile-p")
	f.expectAt(7*time.Minute, "n2/profile-p", "")
	f.run(20 * time.Minute)
}

// The remediation that follows a terminated one of the node goes on at once.
func TestTheNodeThatHasASlotHasItForALaterRemediationToo(t *testing.T) {
	f := newFleet(t, 3)
	a := f.controlPlane(time.Minute, "n1", "a")
	next := f.controlPlane(4*time.Minute, "n1", "a")
	next.request.RunID = runOf("n1", "later")
	next.request.ID = next.request.RunID + "/1"
	f.asking = map[string]*asking{a.request.RunID: a, next.request.RunID: next}
	f.controlPlane(2*time.Minute, "n2", "b")
	f.expectAt(5*time.Minute, first+" "+first, second)
	f.run(time.Hour)
}

func TestAFreezeKeepsControlPlaneNodesFromASlot(t *testing.T) {
	f := newFleet(t, 3)
	a := f.controlPlane(3*time.Minute, "n1", "a")
	f.update(time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "ops", Running: true})
	f.expectAt(5*time.Minute, "", first)
	f.update(6*time.Minute, api.UpdateThaw, api.ThawRequest{By: "ops"})
	f.expectAt(8*time.Minute, first, "")
	f.update(10*time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "ops", Running: true})
	f.expectAt(12*time.Minute, first, "")
	f.run(time.Hour)
	if len(a.holds) > 0 {
		t.Errorf("it was held by %+v: a remediation that has begun goes on", a.holds)
	}
}

func TestARemediationKeepsItsControlPlaneSlotInARebuild(t *testing.T) {
	f := newFleet(t, 3)
	f.state = scheduler.State{}
	a := f.controlPlane(200*time.Hour, "n1", "a")
	a.granted = []time.Duration{0}
	worker := f.request(200*time.Hour, "n3", "health-a", 0) // one of a node that is not of the control plane wants no slot
	worker.request.Kind, worker.over = schedule.KindControlPlane, true
	f.inventory = execution.Inventory{Running: []execution.Run{{WorkflowID: "node-remediation/a/n1"}, {WorkflowID: "node-remediation/a/n3"}}}
	f.controlPlane(time.Minute, "n2", "b")
	f.expectAt(2*time.Minute, first, second)
	f.at(5*time.Minute, func() { f.release(a) })
	f.expectAt(7*time.Minute, second, "")
	f.run(time.Hour)
}

// One that does not answer may hold the slot: nobody else has it before it has said so.
func TestARemediationThatDoesNotAnswerKeepsOthersWaiting(t *testing.T) {
	f := newFleet(t, 3)
	f.state = scheduler.State{}
	a := f.controlPlane(200*time.Hour, "n1", "a")
	a.over = true
	f.answers[a.request.RunID] = execution.Answered{Unanswered: "its workflow task fails", FirstRunID: a.request.RunID}
	f.inventory = execution.Inventory{Running: []execution.Run{{WorkflowID: "node-remediation/a/n1"}}}
	f.controlPlane(time.Minute, "n2", "b")
	f.expectAt(5*time.Minute, first, second)
	f.at(6*time.Minute, func() { delete(f.answers, a.request.RunID) })
	f.expectAt(10*time.Minute, second, "")
	f.run(time.Hour)
}

// That it may have a slot was assumed. Two control-plane nodes are remediated at a time where its slot is confirmed.
func TestWhatWasAssumedIsNoGrant(t *testing.T) {
	for _, after := range []int{0, 1, 2} {
		for name, answers := range map[string]bool{"it says that it waits": true, "it asks": false} {
			t.Run(fmt.Sprint(name, ", continued as new after ", after), func(t *testing.T) {
				f := newFleet(t, 3)
				f.state = scheduler.State{ContinueAfter: after}
				a := f.controlPlane(200*time.Hour, "n1", "a")
				f.answers[a.request.RunID] = execution.Answered{Unanswered: "its workflow task fails", FirstRunID: a.request.RunID}
				f.inventory = execution.Inventory{Running: []execution.Run{{WorkflowID: "node-remediation/a/n1"}}}
				b := f.controlPlane(time.Minute, "n2", "b")
				b.request.Priority = 1
				f.at(4*time.Minute, func() { f.signal(api.SignalSlotRequest, a.request) })
				f.at(4*time.Minute+20*time.Second, func() {
					if held := f.slotsHeld(a.request.ID, b.request.ID); !held.Rebuilding || len(held.Held) > 0 {
						t.Errorf("of a slot that is assumed it says %+v", held)
					}
				})
				f.expectAt(5*time.Minute, first, second)
				f.at(6*time.Minute, func() {
					delete(f.answers, a.request.RunID)
					if !answers {
						f.signal(api.SignalSlotRequest, a.request)
					}
				})
				f.expectAt(10*time.Minute, second, first)
				f.at(11*time.Minute, func() { f.release(b) })
				f.expectAt(13*time.Minute, first, "")
				f.run(time.Hour)
				if len(a.granted) != 1 || a.granted[0] < 11*time.Minute {
					t.Errorf("granted %v", a.granted)
				}
			})
		}
	}
}

func TestATransitionOfWhichASlotWasAssumedKeepsToTheLimits(t *testing.T) {
	f := newFleet(t, 4)
	f.state = scheduler.State{Limits: api.LimitsInForce{Limits: schedule.Limits{MaxUnavailable: schedule.Count(1)}}}
	f.nodes["n3"].down = true
	a := f.profile(200*time.Hour, "n1", "p")
	f.answers[a.request.RunID] = execution.Answered{Unanswered: "its workflow task fails", FirstRunID: a.request.RunID}
	f.inventory = execution.Inventory{Running: []execution.Run{{WorkflowID: "profile-transition/p/n1"}}}
	f.expectAt(2*time.Minute, "n1/profile-p", "")
	f.at(6*time.Minute, func() { delete(f.answers, a.request.RunID); f.signal(api.SignalSlotRequest, a.request) })
	f.expectAt(7*time.Minute+30*time.Second, "", "n1/profile-p")
	f.run(10 * time.Minute)
	if len(a.granted) > 0 {
		t.Errorf("granted %v", a.granted)
	}
}

// A server may not say which run does not answer.
func TestNothingIsGrantedWhileItIsNotKnownWhichRunMayHoldASlot(t *testing.T) {
	f := newFleet(t, 3)
	f.state = scheduler.State{}
	a := f.controlPlane(200*time.Hour, "n1", "a")
	a.over = true
	f.answers[a.request.RunID] = execution.Answered{Unanswered: "its workflow task fails"}
	f.inventory = execution.Inventory{Running: []execution.Run{{WorkflowID: "node-remediation/a/n1"}}}
	b := f.controlPlane(time.Minute, "n2", "b")
	f.at(6*time.Minute, func() {
		if len(b.granted) > 0 {
			t.Errorf("granted %v", b.granted)
		}
		delete(f.answers, a.request.RunID)
	})
	f.expectAt(20*time.Minute, second, "")
	f.run(time.Hour)
}

// After a reset, and where it finds an unknown mark, a scheduler does not rely on the holders that it knows.
func TestASchedulerThatDoesNotKnowTheHolderQueriesForIt(t *testing.T) {
	f := newFleet(t, 3)
	a := f.controlPlane(time.Minute, "n1", "a")
	b := f.controlPlane(200*time.Hour, "n2", "b")
	mark := api.StrayMark{Node: "n3", Kind: api.StrayUnknown, RunID: runOf("n3", "ops"), Requestor: "ops", WorkflowID: "node-maintenance/n3/ops"}
	f.change(5*time.Minute, "n3", func(n *fleetNode) {
		a.over, b.granted = true, []time.Duration{0}
		f.inventory = execution.Inventory{
			Running: []execution.Run{{WorkflowID: "node-remediation/a/n1"}, {WorkflowID: "node-remediation/b/n2"}}, Strays: []api.StrayMark{mark}, StraysAll: 1,
		}
		f.marks = func() cluster.MarksSeen { return cluster.MarksSeen{Unknown: []api.StrayMark{mark}} }
	})
	f.expectAt(8*time.Minute, second, "")
	f.run(30 * time.Minute)
}

func TestWhoMayAskForAControlPlaneNode(t *testing.T) {
	for name, change := range map[string]func(*api.SlotRequest){
		"no check":        func(r *api.SlotRequest) { r.Requestor = "ops" },
		"another kind":    func(r *api.SlotRequest) { r.Kind = "kubelet" },
		"a gang":          func(r *api.SlotRequest) { r.Gang = &schedule.Gang{Name: "x", Size: 1} },
		"a maintenance's": func(r *api.SlotRequest) { r.Remediation = true },
		"another's run":   func(r *api.SlotRequest) { r.RunID = runOf("n3", "ops") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 3)
			change(&f.controlPlane(time.Minute, "n1", "a").request)
			f.controlPlane(2*time.Minute, "n2", "b")
			f.expectAt(5*time.Minute, second, "")
			f.run(time.Hour)
		})
	}
}

// Nobody runs for whom somebody has asked: the slot is free again at once.
func TestARequestForNobodyKeepsTheSlotFromNobody(t *testing.T) {
	f := newFleet(t, 3)
	a := f.controlPlane(time.Minute, "n1", "a")
	a.dead = true
	f.controlPlane(2*time.Minute, "n2", "b")
	f.expectAt(5*time.Minute, second, "")
	f.run(time.Hour)
}

func TestWhatWasRecordedBeforeKindsAreKnownStays(t *testing.T) {
	f := newFleet(t, 3)
	f.until010 = 10 * time.Minute
	f.controlPlane(time.Minute, "n1", "a")
	f.expectAt(5*time.Minute, "", "")
	f.run(10 * time.Minute)
	if len(f.grants()) > 0 {
		t.Errorf("granted %s", strings.Join(f.grants(), ", "))
	}
}

// profile lets a profile's transition ask for its node.
func (f *fleet) profile(when time.Duration, node, profile string) *asking {
	a := f.request(when, node, "profile-"+profile, 0)
	a.request.Kind = schedule.KindProfile
	return a
}

func TestAProfileTakesNoNodeOutBesideWhatMayBeUnavailable(t *testing.T) {
	for _, after := range []int{0, 1, 2} {
		t.Run(fmt.Sprint("continued as new after ", after), func(t *testing.T) {
			f := newFleet(t, 4)
			f.state.ContinueAfter = after
			f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(2), MaxUnavailable: schedule.Count(1)}
			a := f.profile(time.Minute, "n1", "p")
			f.profile(2*time.Minute, "n2", "p")
			f.request(3*time.Minute, "n3", "ops", 0)
			f.expectAt(5*time.Minute, "n1/profile-p", "n2/profile-p n3/ops")
			// The transition is done: the node is cordoned, and no watch is ahead of that.
			f.at(6*time.Minute, func() { f.release(a) })
			f.expectAt(6*time.Minute+20*time.Second, "n1/profile-p", "n2/profile-p n3/ops")
			f.change(6*time.Minute+10*time.Second, "n1", func(n *fleetNode) { n.down = true })
			f.expectAt(8*time.Minute, "", "n2/profile-p n3/ops")
			f.change(10*time.Minute, "n1", func(n *fleetNode) { n.down = false })
			f.expectAt(12*time.Minute, "n2/profile-p", "n3/ops")
			f.run(20 * time.Minute)
			if f.count("ReleaseNode") > 0 {
				t.Errorf("%v", f.log)
			}
		})
	}
}

func TestAProfileIsNotHeldUpByMaxParallel(t *testing.T) {
	f := newFleet(t, 4)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(1)}
	f.request(time.Minute, "n1", "ops", 0)
	f.profile(2*time.Minute, "n2", "p")
	f.profile(2*time.Minute, "n1", "p")
	f.expectAt(3*time.Minute, "n1/ops n1/profile-p n2/profile-p", "")
	f.run(5 * time.Minute)
}

func TestTheSlotOfATransitionThatEndsWithoutAWordIsTakenBack(t *testing.T) {
	f := newFleet(t, 4)
	f.state.Limits.Limits = schedule.Limits{MaxUnavailable: schedule.Count(1)}
	a := f.profile(time.Minute, "n1", "p")
	f.profile(2*time.Minute, "n2", "p")
	f.kill(5*time.Minute, a)
	f.expectAt(7*time.Minute, "n2/profile-p", "")
	f.run(20 * time.Minute)
}

func TestTransitionsKeepTheirSlotsInARebuild(t *testing.T) {
	f := newFleet(t, 4)
	f.state = scheduler.State{Limits: api.LimitsInForce{Limits: schedule.Limits{MaxUnavailable: schedule.Count(1)}}}
	a := f.profile(200*time.Hour, "n1", "p")
	a.granted = []time.Duration{0}
	f.inventory = execution.Inventory{Running: []execution.Run{{WorkflowID: "profile-transition/p/n1"}}}
	f.profile(time.Minute, "n2", "p")
	f.expectAt(2*time.Minute, "n1/profile-p", "n2/profile-p")
	f.run(5 * time.Minute)
}

func TestAProfileKeepsToAFreeze(t *testing.T) {
	f := newFleet(t, 4)
	f.update(time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "ops"})
	f.profile(2*time.Minute, "n1", "p")
	f.expectAt(3*time.Minute, "", "n1/profile-p")
	f.update(4*time.Minute, api.UpdateThaw, api.ThawRequest{By: "ops"})
	f.expectAt(5*time.Minute, "n1/profile-p", "")
	f.run(10 * time.Minute)
}
