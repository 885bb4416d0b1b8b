package maintenance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	checkactivity "drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

// dead is the input of a maintenance whose work turns its node off.
func dead(more workflowtest.Input) workflowtest.Input {
	in := withWork(more)
	in["outOfService"] = true
	return in
}

func said(status api.Status, text string) bool {
	return slices.ContainsFunc(status.Transitions, func(t api.Transition) bool { return strings.Contains(t.Message, text) })
}

func TestANodeThatWorkHasTurnedOffIsOutOfServiceUntilItIsEmpty(t *testing.T) {
	s := workSite(t, 10*time.Minute, nil)
	s.Answer("AwaitOutOfService", workflowtest.Reply{After: 5 * time.Minute})
	s.SignalAt(12*time.Minute, api.SignalDrainBlocked, api.DrainProgress{At: time.Now(), Remaining: 2, Blockers: []api.Blocker{
		{Pod: "default/web", Message: "is not deleted yet"}, {Pod: "volume/pv-1", Message: "is still attached"},
	}})
	s.CheckAt(13*time.Minute, func(status api.Status) {
		if status.Phase != api.Validating || !strings.Contains(status.WaitingFor, "default/web is not deleted yet, and 1 more") {
			t.Errorf("%s waits for %q", status.Phase, status.WaitingFor)
		}
	})
	status := s.Run(dead(nil))
	s.ExpectCompleted()
	if !said(status, "tainted as out of service") || !said(status, "its pods are gone") {
		t.Errorf("transitions %+v", status.Transitions)
	}
	if in := workflowtest.InputOf[drain.OutOfServiceInput](s, "TakeOutOfService", 0); in.UID != "uid-1" || in.Until.IsZero() {
		t.Errorf("tainted with %+v", in)
	}
	if in := workflowtest.InputOf[node.ReleaseInput](s, "ReleaseNode", 0); in.Prior != nil && in.Prior.OutOfService {
		t.Errorf("released with %+v", in.Prior)
	}
}

func TestANodeThatNothingHasProvenOffIsNotTainted(t *testing.T) {
	s := workSite(t, 10*time.Minute, nil)
	s.Answer("AwaitWork", workflowtest.Reply{After: time.Minute, Value: checkactivity.WorkEnded{Message: "no answer from its BMC"}})
	s.SignalAt(30*time.Minute, api.MsgDone, nil)
	status := s.Run(dead(nil))
	s.ExpectCompleted()
	if s.Count("TakeOutOfService") != 0 || !said(status, "no work has proven that the node is off") {
		t.Errorf("it did %v", s.Log)
	}
}

func TestANodeThatAnswersOrHasRestartedIsNotWaitedFor(t *testing.T) {
	for text, taken := range map[string]drain.TakenOutOfService{
		"the node still answers": {Answers: true}, "the node has restarted": {Restarted: true}, "the taint is taken off": {CameBack: true},
	} {
		s := workSite(t, 10*time.Minute, nil)
		s.Answer("TakeOutOfService", workflowtest.Reply{Value: taken})
		status := s.Run(dead(nil))
		s.ExpectCompleted()
		if s.Count("AwaitOutOfService") != 0 || !said(status, text) {
			t.Errorf("%s: it did %v; %+v", text, s.Log, status.Transitions)
		}
	}
}

func TestACancelTakesTheTaintOffWithTheMark(t *testing.T) {
	s := workSite(t, 10*time.Minute, nil)
	s.Usual["HoldNode"] = workflowtest.Reply{Value: node.Held{UID: "uid-1", Mark: "mark-1", Prior: &node.Prior{UID: "uid-1", Cordoned: true}}}
	s.Answer("AwaitOutOfService", workflowtest.Reply{After: time.Hour})
	s.SignalAt(20*time.Minute, api.MsgCancel, api.Cancel{Release: true})
	status := s.Run(dead(nil))
	if status.Phase != api.Cancelled {
		t.Errorf("%s: %s", status.Phase, status.Failure)
	}
	if in := workflowtest.InputOf[node.ReleaseInput](s, "ReleaseNode", 0); in.Prior == nil || !in.Prior.OutOfService {
		t.Errorf("released with %+v", in.Prior)
	}
}

func TestOnlyAnOutOfServiceMaintenanceTaints(t *testing.T) {
	s := workSite(t, 10*time.Minute, nil)
	s.Run(withWork(nil))
	s.ExpectCompleted()
	if s.Count("TakeOutOfService") != 0 {
		t.Errorf("it did %v", s.Log)
	}
}
