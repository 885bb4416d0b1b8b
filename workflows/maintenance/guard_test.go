package maintenance_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

// changedAt tells the maintenance what somebody did to its node.
func changedAt(s *workflowtest.Site, d time.Duration, change api.NodeChange) *workflowtest.Site {
	if change.RequestID == "" {
		change.RequestID = workflowtest.RunID + "/1"
	}
	return s.SignalAt(d, api.SignalNodeChanged, change)
}

// lifted is what HoldNode answers when the cordon had been lifted and is set again.
var lifted = workflowtest.Reply{Value: node.Held{UID: "uid-1", Mark: "mark-1", Again: true}}

func TestCordonThatIsLiftedIsSetAgainThreeTimes(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("HoldNode", workflowtest.Reply{}, lifted, lifted, lifted)
	for i := range 5 {
		changedAt(s, time.Duration(10+i)*time.Minute, api.NodeChange{Uncordoned: true})
	}
	s.DoneAt(30 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	var cordons []bool
	for i := range s.Count("HoldNode") {
		cordons = append(cordons, workflowtest.InputOf[node.HoldInput](s, "HoldNode", i).Cordon)
	}
	if len(cordons) < 5 || !cordons[0] || !cordons[1] || !cordons[2] || !cordons[3] || cordons[4] {
		t.Errorf("cordons: %v", cordons)
	}
	contested := workflowtest.InputOf[node.HoldInput](s, "HoldNode", 4)
	if contested.Event.Reason != "CordonContested" || !contested.Event.Warning {
		t.Errorf("the alarm is %+v", contested.Event)
	}
	if !strings.Contains(workflowtest.MessagesOf(status), "(3 of 3)") || !strings.Contains(workflowtest.MessagesOf(status), "; left schedulable") {
		t.Errorf("transitions:\n%s", workflowtest.MessagesOf(status))
	}
}

// KEP-4212 reconciles the cordon of its maintenances: it is set again however often it is lifted, after growing pauses.
func TestCordonThatPlansShareIsSetAgainWithoutEnd(t *testing.T) {
	s := sharedSite(t)
	s.SignalAt(time.Minute, api.SignalTarget, targetOf(1))
	s.Usual["HoldNode"] = lifted
	s.Answer("HoldNode", workflowtest.Reply{})
	const lifts = 12
	for i := range lifts {
		changedAt(s, time.Duration(1+i)*2*time.Hour, api.NodeChange{Uncordoned: true})
	}
	var before int
	s.At(8*time.Hour+30*time.Second, func() { before = s.Count("HoldNode") })
	s.At(8*time.Hour+2*time.Minute, func() {
		if now := s.Count("HoldNode"); before != 4 || now != 5 {
			t.Errorf("the fourth lift was answered after %d and then %d cordons, want 4 before its pause and 5 after it", before, now)
		}
	})
	s.SignalAt(39*time.Hour, api.SignalTarget, lastTarget(2, first))
	s.DoneAt(40 * time.Hour)
	status := s.Run(sharedInput(nil))
	s.ExpectCompleted()
	cordons := 0
	for i := range s.Count("HoldNode") {
		in := workflowtest.InputOf[node.HoldInput](s, "HoldNode", i)
		if cordons++; !in.Cordon || in.Event.Reason == "CordonContested" {
			t.Errorf("hold %d gives the cordon up: %+v", i, in)
		}
	}
	if cordons != 1+lifts {
		t.Errorf("%d cordons after %d lifts:\n%s", cordons, lifts, workflowtest.MessagesOf(status))
	}
}

// A cordon that is due is none of the next attempt's: the node is cordoned with it, and nobody has lifted that.
func TestADueCordonIsForgottenWithTheSlot(t *testing.T) {
	s := sharedSite(t)
	s.SignalAt(time.Minute, api.SignalTarget, targetOf(1))
	s.Usual["HoldNode"] = lifted
	s.Answer("HoldNode", workflowtest.Reply{}, lifted, lifted, lifted, workflowtest.Reply{Err: workflowtest.Failing(api.ErrorSlotNotHeld, "no slot")})
	for i := range 4 {
		changedAt(s, time.Duration(1+i)*2*time.Hour, api.NodeChange{Uncordoned: true})
	}
	changedAt(s, 8*time.Hour+10*time.Second, api.NodeChange{Unmarked: true})
	var before, after int
	s.At(8*time.Hour+50*time.Second, func() { before = s.Count("HoldNode") })
	s.At(12*time.Hour, func() { after = s.Count("HoldNode") })
	s.SignalAt(39*time.Hour, api.SignalTarget, lastTarget(2, first))
	s.DoneAt(40 * time.Hour)
	status := s.Run(sharedInput(nil))
	s.ExpectCompleted()
	if n := strings.Count(workflowtest.MessagesOf(status), "uncordoned the node once more"); n != 1 || before != 6 || after != before || status.Attempt != 2 {
		t.Errorf("attempt %d, %d lifts are said after the third, and the node was held %d and then %d times:\n%s", status.Attempt, n, before, after, workflowtest.MessagesOf(status))
	}
}

func TestCordonThatIsLiftedOnceButReportedOftenCountsOnce(t *testing.T) {
	s := workflowtest.New(t)
	// The node is watched, and what is seen lags: the same lift may be reported again while it is being undone.
	s.Answer("HoldNode", workflowtest.Reply{}, workflowtest.Reply{After: time.Second, Value: lifted.Value})
	for i := range 6 {
		changedAt(s, 10*time.Minute+time.Duration(i)*100*time.Millisecond, api.NodeChange{Uncordoned: true})
	}
	s.DoneAt(30 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	for i := range s.Count("HoldNode") {
		if !workflowtest.InputOf[node.HoldInput](s, "HoldNode", i).Cordon {
			t.Errorf("one lift ended the cordon:\n%s", workflowtest.MessagesOf(status))
		}
	}
	if strings.Contains(workflowtest.MessagesOf(status), "2 of 3") {
		t.Errorf("one lift counts twice:\n%s", workflowtest.MessagesOf(status))
	}
}

func TestNodeThatIsDeletedBeforeReadyEndsTheMaintenance(t *testing.T) {
	for name, stage := range map[string]struct {
		phase api.Phase
		in    workflowtest.Input
		set   func(*workflowtest.Site)
	}{
		"cordoning": {api.Cordoning, nil, func(s *workflowtest.Site) { s.Answer("HoldNode", workflowtest.Reply{After: time.Hour}) }},
		"draining": {api.Draining, nil, func(s *workflowtest.Site) {
			s.Answer("HoldNode", workflowtest.Reply{}).Answer("Drain", workflowtest.Reply{After: time.Hour})
		}},
		"waiting for pods": {api.WaitingForPods, workflowtest.Input{"waitForPodCompletion": workflowtest.Input{"podSelector": "a=b"}}, func(s *workflowtest.Site) {
			s.Answer("HoldNode", workflowtest.Reply{}).Answer("WaitForPods", workflowtest.Reply{After: time.Hour})
		}},
		"external drain": {api.Draining, workflowtest.Input{"drain": workflowtest.Input{"mode": "external"}}, func(s *workflowtest.Site) {
			s.Answer("HoldNode", workflowtest.Reply{})
		}},
		"frozen": {api.Draining, nil, func(s *workflowtest.Site) {
			s.Answer("HoldNode", workflowtest.Reply{})
			s.Answer("Drain", workflowtest.Reply{After: time.Hour})
			s.HoldAt(30*time.Second, "frozen")
			s.HoldAt(10 * time.Minute)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			stage.set(s)
			s.ExpectAt(59*time.Second, stage.phase, "")
			changedAt(s, time.Minute, api.NodeChange{Missing: true})
			s.Usual["HoldNode"] = deleted
			s.Usual["ReleaseNode"] = workflowtest.Reply{Value: node.Released{Gone: true}}
			status := s.Run(workflowtest.InputWith(stage.in))
			if result := s.ExpectCompleted(); result.Phase != api.NodeGone || !strings.Contains(status.Failure, "node n1: the node was deleted") {
				t.Errorf("result = %+v", result)
			}
		})
	}
}

// deleted is what HoldNode answers when there is no such node.
var deleted = workflowtest.Reply{Err: workflowtest.Failing(api.ErrorNodeGone, "there is no such node")}

func TestADeletionThatIsForgedChangesNothing(t *testing.T) {
	for name, in := range map[string]workflowtest.Input{
		"while draining": nil, "while Ready": {"onNodeReplaced": "end"}, "while Ready, for a replacement": {"onNodeReplaced": "adopt"},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			if in == nil {
				s.Answer("Drain", workflowtest.Reply{After: 30 * time.Minute})
			}
			changedAt(s, 10*time.Minute, api.NodeChange{Missing: true})
			s.DoneAt(40 * time.Minute)
			status := s.Run(workflowtest.InputWith(in))
			if result := s.ExpectCompleted(); result.Phase != api.Completed {
				t.Errorf("result = %+v", result)
			}
			if again := workflowtest.InputOf[node.HoldInput](s, "HoldNode", 1); again.UID != "uid-1" || again.Event.Reason != "" || s.Count("HoldNode") != 2 {
				t.Errorf("the node was looked for %d times, by %+v", s.Count("HoldNode")-1, again)
			}
			if !strings.Contains(workflowtest.MessagesOf(status), "it is there") || s.Count("AdoptNode") > 0 {
				t.Errorf("messages:\n%s", workflowtest.MessagesOf(status))
			}
		})
	}
}

func TestNodeThatIsReplacedWhileItsRequestorWorks(t *testing.T) {
	t.Run("is adopted", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("HoldNode", workflowtest.Reply{}, deleted).Answer("AdoptNode", workflowtest.Reply{After: 20 * time.Minute})
		changedAt(s, 10*time.Minute, api.NodeChange{Missing: true})
		s.ExpectAt(20*time.Minute, api.Ready, "")
		s.DoneAt(40 * time.Minute)
		status := s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if !strings.Contains(workflowtest.MessagesOf(status), "a node of the same name registered and is held") {
			t.Errorf("transitions:\n%s", workflowtest.MessagesOf(status))
		}
		s.ExpectLog("slot-request", "HoldNode", "Drain", "AnnouncePhase", "HoldNode", "AdoptNode", "ReleaseNode", "slot-release")
	})
	t.Run("and then made schedulable", func(t *testing.T) {
		s := workflowtest.New(t)
		changedAt(s, 10*time.Minute, api.NodeChange{Missing: true})
		s.Answer("HoldNode", workflowtest.Reply{}, deleted, workflowtest.Reply{Value: node.Held{UID: "uid-2", Again: true}})
		changedAt(s, 20*time.Minute, api.NodeChange{Uncordoned: true})
		s.DoneAt(40 * time.Minute)
		s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if again := workflowtest.InputOf[node.HoldInput](s, "HoldNode", 2); again.UID != "uid-2" {
			t.Errorf("the replacement is held as %q", again.UID)
		}
	})
	t.Run("also when its requestor failed", func(t *testing.T) {
		s := workflowtest.New(t)
		s.SignalAt(5*time.Minute, api.MsgFailed, nil)
		changedAt(s, 10*time.Minute, api.NodeChange{Unmarked: true})
		s.DoneAt(40 * time.Minute)
		s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if s.Count("AdoptNode") != 1 {
			t.Errorf("it did %v", s.Log)
		}
	})
	t.Run("ends the maintenance that says so", func(t *testing.T) {
		s := workflowtest.New(t)
		changedAt(s, 10*time.Minute, api.NodeChange{Missing: true})
		s.Answer("HoldNode", workflowtest.Reply{}, deleted)
		s.Usual["ReleaseNode"] = workflowtest.Reply{Value: node.Released{Gone: true}}
		s.Run(workflowtest.InputWith(workflowtest.Input{"onNodeReplaced": "end"}))
		if result := s.ExpectCompleted(); result.Phase != api.NodeGone {
			t.Errorf("result = %+v", result)
		}
	})
	t.Run("ends it too when only the mark shows it", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("HoldNode", workflowtest.Reply{}, workflowtest.Reply{Err: workflowtest.Failing(api.ErrorNodeReplaced, "created anew")})
		changedAt(s, 10*time.Minute, api.NodeChange{Unmarked: true})
		s.Run(workflowtest.InputWith(workflowtest.Input{"onNodeReplaced": "end"}))
		if result := s.ExpectCompleted(); result.Phase != api.NodeGone {
			t.Errorf("result = %+v", result)
		}
	})
	t.Run("and is done before the replacement comes", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("HoldNode", workflowtest.Reply{}, deleted).Answer("AdoptNode", workflowtest.Reply{After: 10 * time.Hour})
		changedAt(s, 10*time.Minute, api.NodeChange{Missing: true})
		s.Usual["ReleaseNode"] = workflowtest.Reply{Value: node.Released{Gone: true}}
		s.DoneAt(20 * time.Minute)
		status := s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if got := status.Transitions[len(status.Transitions)-1].At.Sub(status.Transitions[0].At); got > 21*time.Minute {
			t.Errorf("ended after %s", got)
		}
	})
	t.Run("and overdue", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("HoldNode", workflowtest.Reply{}, deleted).Answer("AdoptNode", workflowtest.Reply{After: 10 * time.Hour})
		changedAt(s, 10*time.Minute, api.NodeChange{Missing: true})
		s.ExpectAt(2*time.Hour, api.RequestorFailed, "")
		s.SignalAt(3*time.Hour, api.MsgCancel, workflowtest.Input{"release": true})
		s.Run(workflowtest.InputWith(nil))
		s.ExpectCancelled()
	})
}

func TestMarkThatSomebodyRemovedIsSetAgain(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{After: 30 * time.Minute})
	changedAt(s, 10*time.Minute, api.NodeChange{Unmarked: true})
	s.DoneAt(40 * time.Minute)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if s.Count("HoldNode") != 2 {
		t.Errorf("it did %v", s.Log)
	}
	if again := workflowtest.InputOf[node.HoldInput](s, "HoldNode", 1); again.UID != "uid-1" || again.Event.Reason != "MarkRestored" {
		t.Errorf("the mark is restored with %+v", again)
	}
}

func TestMarkThatIsNotThereYetIsNotMissed(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("HoldNode", workflowtest.Reply{After: 10 * time.Minute})
	changedAt(s, 5*time.Minute, api.NodeChange{Unmarked: true})
	s.DoneAt(30 * time.Minute)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if s.Count("HoldNode") != 1 {
		t.Errorf("it did %v", s.Log)
	}
}

func TestChangeOfTheNodeThatConcernsNobodyIsIgnored(t *testing.T) {
	s := workflowtest.New(t)
	s.Scheduler = silent
	changedAt(s, time.Second, api.NodeChange{Missing: true}) // nothing is held yet
	s.At(time.Minute, func() { s.Grant(workflowtest.RunID + "/1") })
	changedAt(s, 10*time.Minute, api.NodeChange{RequestID: "another/1", Missing: true})
	s.DoneAt(20 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	if s.ExpectCompleted(); status.Phase != api.Completed {
		t.Errorf("the end is %s", status.Phase)
	}
}

func TestNodeIsNotHeldAnewOnceItIsReleased(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("HoldNode", workflowtest.Reply{}, workflowtest.Reply{After: 10 * time.Minute})
	s.Answer("ReleaseNode", workflowtest.Reply{After: 10 * time.Minute})
	changedAt(s, 10*time.Minute, api.NodeChange{Uncordoned: true})
	s.DoneAt(11 * time.Minute)                                     // while the cordon is restored
	changedAt(s, 15*time.Minute, api.NodeChange{Uncordoned: true}) // while the node is released
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if s.Count("HoldNode") != 2 {
		t.Errorf("it did %v", s.Log)
	}
}

// remembered is what HoldNode answers with what the node was like before.
func remembered(cordoned, again bool) workflowtest.Reply {
	return workflowtest.Reply{Value: node.Held{UID: "uid-1", Mark: "mark-1", Again: again, Prior: &node.Prior{UID: "uid-1", Cordoned: cordoned}}}
}

func TestTheMaintenanceRemembersWhatItsNodeWasLike(t *testing.T) {
	s := workflowtest.New(t)
	// The cordon was a person's, who lifts it: what the node was like is not what it was at first.
	s.Answer("HoldNode", remembered(false, false), remembered(true, true), remembered(true, false))
	changedAt(s, 10*time.Minute, api.NodeChange{Uncordoned: true})
	changedAt(s, 15*time.Minute, api.NodeChange{Unmarked: true})
	s.Answer("ReleaseNode", workflowtest.Reply{Value: node.Released{Stripped: true, Uncordoned: true}})
	s.DoneAt(20 * time.Minute)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"onNodeReplaced": "end"}))
	s.ExpectCompleted()
	if first := workflowtest.InputOf[node.HoldInput](s, "HoldNode", 0); first.Prior != nil {
		t.Errorf("the first hold remembers %+v", first.Prior)
	}
	for i, cordoned := range []bool{false, true} {
		if again := workflowtest.InputOf[node.HoldInput](s, "HoldNode", i+1); again.Prior == nil || again.Prior.Cordoned != cordoned {
			t.Errorf("hold %d remembers %+v", i+2, again.Prior)
		}
	}
	if in := workflowtest.InputOf[node.ReleaseInput](s, "ReleaseNode", 0); in.Prior == nil || !in.Prior.Cordoned {
		t.Errorf("released with %+v", in.Prior)
	}
	if !strings.Contains(workflowtest.MessagesOf(status), "had removed the mark") {
		t.Errorf("transitions:\n%s", workflowtest.MessagesOf(status))
	}
}

func TestMarksThatAreLostDoNotUseUpTheCordonsTries(t *testing.T) {
	s := workflowtest.New(t)
	gone := workflowtest.Reply{After: time.Second, Err: workflowtest.Failing(api.ErrorNotHolder, "no mark")}
	s.Answer("Drain", gone, gone, gone)
	held := remembered(true, false)
	s.Answer("HoldNode", held, held, held, held, remembered(true, true))
	changedAt(s, 10*time.Minute, api.NodeChange{Uncordoned: true})
	s.DoneAt(20 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if !strings.Contains(workflowtest.MessagesOf(status), "cordoned again (1 of 3)") {
		t.Errorf("transitions:\n%s", workflowtest.MessagesOf(status))
	}
}

// TestANodeThatIsMarkedAgainWithoutASlotIsGivenBack: the mark is set before the scheduler's last word, and the slot may be
// another's by now.
func TestANodeThatIsMarkedAgainWithoutASlotIsGivenBack(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("AdoptNode", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorSlotNotHeld, "the scheduler knows of no slot")})
	changedAt(s, 10*time.Minute, api.NodeChange{Unmarked: true})
	s.DoneAt(40 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if s.Count("ReleaseNode") != 2 || s.Count("HoldNode") != 2 || !strings.Contains(workflowtest.MessagesOf(status), "asking again") {
		t.Errorf("it did %v\n%s", s.Log, workflowtest.MessagesOf(status))
	}
}

// TestAForgedChangeOfTheNodeStaysWithinItsBounds: a command that is too large for the server would end the workflow.
func TestAForgedChangeOfTheNodeStaysWithinItsBounds(t *testing.T) {
	s := workflowtest.New(t)
	huge := api.PodsArrived{}
	for i := range 15 {
		huge.Pods = append(huge.Pods, api.ArrivedPod{Pod: fmt.Sprint(i, strings.Repeat("<", 4000)), At: s.Env.Now().Add(time.Hour)})
	}
	changedAt(s, 10*time.Minute, api.NodeChange{Arrived: &huge})
	s.SignalAt(11*time.Minute, api.SignalHold, api.FreezeNotice{
		RequestID: workflowtest.RunID + "/1", Revision: 1, Reasons: []string{strings.Repeat("<", 60_000)},
	})
	s.At(12*time.Minute, func() { s.Hold() })
	s.DoneAt(30 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if len(status.Arrived) > api.MaxArrived || len(asJSON(t, status)) > 256<<10 {
		t.Errorf("%d pods arrived; the status has %d bytes", len(status.Arrived), len(asJSON(t, status)))
	}
	warned := false
	for i := range s.Count("AnnouncePhase") {
		in := workflowtest.InputOf[node.AnnounceInput](s, "AnnouncePhase", i)
		if n := len(asJSON(t, in)); n > 8<<10 {
			t.Errorf("AnnouncePhase was given %d bytes", n)
		}
		// Another coroutine shows the phase.
		if in.Event.Reason == "PodArrived" {
			warned = in.Phase == ""
		}
	}
	if !warned {
		t.Errorf("it did %v", s.Log)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
