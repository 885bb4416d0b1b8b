package workflows_test

import (
	"strings"
	"testing"
	"time"

	"drydock/activities"
	"drydock/workflows"
)

// changedAt tells the maintenance what somebody did to its node.
func (s *site) changedAt(d time.Duration, change workflows.NodeChange) *site {
	if change.RequestID == "" {
		change.RequestID = testRun + "/1"
	}
	return s.signalAt(d, workflows.SignalNodeChanged, change)
}

// lifted is what HoldNode answers when the cordon had been lifted and is set again.
var lifted = reply{value: activities.Held{UID: "uid-1", Mark: "mark-1", Again: true}}

func TestCordonThatIsLiftedIsSetAgainThreeTimes(t *testing.T) {
	s := newSite(t)
	s.answer("HoldNode", reply{}, lifted, lifted, lifted)
	for i := range 5 {
		s.changedAt(time.Duration(10+i)*time.Minute, workflows.NodeChange{Uncordoned: true})
	}
	s.doneAt(30 * time.Minute)
	status := s.run(of(nil))
	s.expectCompleted()
	var cordons []bool
	for i := range s.count("HoldNode") {
		cordons = append(cordons, inputOf[activities.HoldInput](s, "HoldNode", i).Cordon)
	}
	if len(cordons) < 5 || !cordons[0] || !cordons[1] || !cordons[2] || !cordons[3] || cordons[4] {
		t.Errorf("cordons: %v", cordons)
	}
	contested := inputOf[activities.HoldInput](s, "HoldNode", 4)
	if contested.Event.Reason != "CordonContested" || !contested.Event.Warning {
		t.Errorf("the alarm is %+v", contested.Event)
	}
	if !strings.Contains(messagesOf(status), "(3 of 3)") || !strings.Contains(messagesOf(status), "it is left schedulable") {
		t.Errorf("transitions:\n%s", messagesOf(status))
	}
}

func TestCordonThatIsLiftedOnceButReportedOftenCountsOnce(t *testing.T) {
	s := newSite(t)
	// The node is watched, and what is seen lags: the same lift may be told again while it is being undone.
	s.answer("HoldNode", reply{}, reply{after: time.Second, value: lifted.value})
	for i := range 6 {
		s.changedAt(10*time.Minute+time.Duration(i)*100*time.Millisecond, workflows.NodeChange{Uncordoned: true})
	}
	s.doneAt(30 * time.Minute)
	status := s.run(of(nil))
	s.expectCompleted()
	for i := range s.count("HoldNode") {
		if !inputOf[activities.HoldInput](s, "HoldNode", i).Cordon {
			t.Errorf("one lift ended the cordon:\n%s", messagesOf(status))
		}
	}
	if strings.Contains(messagesOf(status), "2 of 3") {
		t.Errorf("one lift counts twice:\n%s", messagesOf(status))
	}
}

func TestNodeThatIsDeletedBeforeReadyEndsTheMaintenance(t *testing.T) {
	for name, stage := range map[string]struct {
		phase workflows.Phase
		in    input
		set   func(*site)
	}{
		"cordoning":        {workflows.Cordoning, nil, func(s *site) { s.answer("HoldNode", reply{after: time.Hour}) }},
		"draining":         {workflows.Draining, nil, func(s *site) { s.answer("Drain", reply{after: time.Hour}) }},
		"waiting for pods": {workflows.WaitingForPods, input{"waitForPodCompletion": input{"podSelector": "a=b"}}, func(s *site) { s.answer("WaitForPods", reply{after: time.Hour}) }},
		"external drain":   {workflows.Draining, input{"drain": input{"mode": "external"}}, func(*site) {}},
		"frozen": {workflows.Draining, nil, func(s *site) {
			s.answer("Drain", reply{after: time.Hour})
			s.signalAt(30*time.Second, workflows.SignalHold, workflows.Hold{Reasons: []string{"frozen"}})
			s.signalAt(10*time.Minute, workflows.SignalHold, workflows.Hold{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			stage.set(s)
			s.expectAt(59*time.Second, stage.phase, "")
			s.changedAt(time.Minute, workflows.NodeChange{Missing: true})
			s.usual["ReleaseNode"] = reply{value: activities.Released{Gone: true}}
			status := s.run(of(stage.in))
			if result := s.expectCompleted(); result.Phase != workflows.NodeGone || !strings.Contains(status.Failure, "node n1: the node was deleted") {
				t.Errorf("result = %+v", result)
			}
		})
	}
}

func TestNodeThatIsReplacedWhileItsRequestorWorks(t *testing.T) {
	t.Run("is adopted", func(t *testing.T) {
		s := newSite(t)
		s.answer("AdoptNode", reply{after: 20 * time.Minute})
		s.changedAt(10*time.Minute, workflows.NodeChange{Missing: true})
		s.expectAt(20*time.Minute, workflows.Ready, "")
		s.doneAt(40 * time.Minute)
		status := s.run(of(nil))
		s.expectCompleted()
		if !strings.Contains(messagesOf(status), "a node of the same name registered and is held") {
			t.Errorf("transitions:\n%s", messagesOf(status))
		}
		s.expectLog("slot-request", "HoldNode", "Drain", "AnnouncePhase", "AdoptNode", "ReleaseNode", "slot-release")
	})
	t.Run("and then made schedulable", func(t *testing.T) {
		s := newSite(t)
		s.changedAt(10*time.Minute, workflows.NodeChange{Missing: true})
		s.answer("HoldNode", reply{}, reply{value: activities.Held{UID: "uid-2", Again: true}})
		s.changedAt(20*time.Minute, workflows.NodeChange{Uncordoned: true})
		s.doneAt(40 * time.Minute)
		s.run(of(nil))
		s.expectCompleted()
		if again := inputOf[activities.HoldInput](s, "HoldNode", 1); again.UID != "uid-2" {
			t.Errorf("the replacement is held as %q", again.UID)
		}
	})
	t.Run("also when its requestor failed", func(t *testing.T) {
		s := newSite(t)
		s.signalAt(5*time.Minute, workflows.MsgFailed, nil)
		s.changedAt(10*time.Minute, workflows.NodeChange{Unmarked: true})
		s.doneAt(40 * time.Minute)
		s.run(of(nil))
		s.expectCompleted()
		if s.count("AdoptNode") != 1 {
			t.Errorf("it did %v", s.log)
		}
	})
	t.Run("ends the maintenance that says so", func(t *testing.T) {
		s := newSite(t)
		s.changedAt(10*time.Minute, workflows.NodeChange{Missing: true})
		s.usual["ReleaseNode"] = reply{value: activities.Released{Gone: true}}
		s.run(of(input{"onNodeReplaced": "end"}))
		if result := s.expectCompleted(); result.Phase != workflows.NodeGone {
			t.Errorf("result = %+v", result)
		}
	})
	t.Run("ends it too when only the mark shows it", func(t *testing.T) {
		s := newSite(t)
		s.answer("HoldNode", reply{}, reply{err: failing(activities.ErrorNodeReplaced, "created anew")})
		s.changedAt(10*time.Minute, workflows.NodeChange{Unmarked: true})
		s.run(of(input{"onNodeReplaced": "end"}))
		if result := s.expectCompleted(); result.Phase != workflows.NodeGone {
			t.Errorf("result = %+v", result)
		}
	})
	t.Run("and is done before the replacement comes", func(t *testing.T) {
		s := newSite(t)
		s.answer("AdoptNode", reply{after: 10 * time.Hour})
		s.changedAt(10*time.Minute, workflows.NodeChange{Missing: true})
		s.usual["ReleaseNode"] = reply{value: activities.Released{Gone: true}}
		s.doneAt(20 * time.Minute)
		status := s.run(of(nil))
		s.expectCompleted()
		if got := status.Transitions[len(status.Transitions)-1].At.Sub(status.Transitions[0].At); got > 21*time.Minute {
			t.Errorf("ended after %s", got)
		}
	})
	t.Run("and overdue", func(t *testing.T) {
		s := newSite(t)
		s.answer("AdoptNode", reply{after: 10 * time.Hour})
		s.changedAt(10*time.Minute, workflows.NodeChange{Missing: true})
		s.expectAt(2*time.Hour, workflows.RequestorFailed, "")
		s.signalAt(3*time.Hour, workflows.MsgCancel, input{"release": true})
		s.run(of(nil))
		s.expectCancelled()
	})
}

func TestMarkThatSomebodyRemovedIsSetAgain(t *testing.T) {
	s := newSite(t)
	s.answer("Drain", reply{after: 30 * time.Minute})
	s.changedAt(10*time.Minute, workflows.NodeChange{Unmarked: true})
	s.doneAt(40 * time.Minute)
	s.run(of(nil))
	s.expectCompleted()
	if s.count("HoldNode") != 2 {
		t.Errorf("it did %v", s.log)
	}
	if again := inputOf[activities.HoldInput](s, "HoldNode", 1); again.UID != "uid-1" || again.Event.Reason != "MarkRestored" {
		t.Errorf("the mark is restored with %+v", again)
	}
}

func TestMarkThatIsNotThereYetIsNotMissed(t *testing.T) {
	s := newSite(t)
	s.answer("HoldNode", reply{after: 10 * time.Minute})
	s.changedAt(5*time.Minute, workflows.NodeChange{Unmarked: true})
	s.doneAt(30 * time.Minute)
	s.run(of(nil))
	s.expectCompleted()
	if s.count("HoldNode") != 1 {
		t.Errorf("it did %v", s.log)
	}
}

func TestChangeOfTheNodeThatConcernsNobodyIsIgnored(t *testing.T) {
	s := newSite(t)
	s.scheduler = silent
	s.changedAt(time.Second, workflows.NodeChange{Missing: true}) // nothing is held yet
	s.at(time.Minute, func() { s.grant(testRun + "/1") })
	s.changedAt(10*time.Minute, workflows.NodeChange{RequestID: "another/1", Missing: true})
	s.doneAt(20 * time.Minute)
	status := s.run(of(nil))
	if s.expectCompleted(); status.Phase != workflows.Completed {
		t.Errorf("the end is %s", status.Phase)
	}
}

func TestNodeIsNotHeldAnewOnceItIsReleased(t *testing.T) {
	s := newSite(t)
	s.answer("HoldNode", reply{}, reply{after: 10 * time.Minute})
	s.answer("ReleaseNode", reply{after: 10 * time.Minute})
	s.changedAt(10*time.Minute, workflows.NodeChange{Uncordoned: true})
	s.doneAt(11 * time.Minute)                                          // while the cordon is restored
	s.changedAt(15*time.Minute, workflows.NodeChange{Uncordoned: true}) // while the node is released
	s.run(of(nil))
	s.expectCompleted()
	if s.count("HoldNode") != 2 {
		t.Errorf("it did %v", s.log)
	}
}
