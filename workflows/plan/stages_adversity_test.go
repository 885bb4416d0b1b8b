package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
)

// TestAnIdlePlanAnswersWhoAsks: as long as it does not, a lockstep that begins anew gives no node back.
func TestAnIdlePlanAnswersWhoAsks(t *testing.T) {
	l := newLockstep(t, "a")
	l.say(time.Minute, api.PlanProgress{Repeat: true})
	l.at(2*time.Minute, func() {
		if len(l.intents) != 1 || l.intents[0].Stage != plan.Idle {
			t.Fatalf("it sent %+v", l.intents)
		}
		in := l.intents[0]
		in.RunID = "d4c1a9b0-0000-4000-8000-000000000001" // that of the test environment is none
		if _, err := in.Validate(l.env.Now()); err != nil {
			t.Error(err)
		}
	})
	l.answer = func(i api.PlanIntent) []api.PlanProgress {
		if i.Stage == plan.Idle {
			return nil
		}
		return l.obey(i)
	}
	l.set(time.Hour, plan.Cordon)
	l.set(2*time.Hour, plan.Complete)
	l.ended(allAtOnce, api.PlanCompleted, plan.Counts{Total: 1, Done: 1})
	if want := "Idle ; Cordon a; Complete a"; l.sent() != want {
		t.Errorf("it sent %s, want %s", l.sent(), want)
	}
}

// TestAPlanThatEndsWhileItsFirstIntentIsUnderWayGivesItsNodesBack: the lockstep may have taken it.
func TestAPlanThatEndsWhileItsFirstIntentIsUnderWayGivesItsNodesBack(t *testing.T) {
	for _, end := range []func(*lockstep){
		func(l *lockstep) { l.signalAt(time.Minute, api.MsgCancel, nil) },
		func(l *lockstep) { l.set(time.Minute, plan.Complete) },
	} {
		l := newLockstep(t, "a")
		l.sends = 2 * time.Minute
		end(l)
		if _, err := l.run(in("Drain")); err != nil && l.status().Phase != api.PlanCancelled {
			t.Error(err)
		}
		if want := "Drain a; Complete a"; l.sent() != want {
			t.Errorf("it sent %q, want %q", l.sent(), want)
		}
		if s := l.status(); s.Counts.Done != 1 {
			t.Errorf("it ended with %+v: %s", s.Counts, s.Failure)
		}
	}
}

// TestANodeThatIsMadeAnewIsTakenAgain: as soon as the lockstep reports that the one before is gone.
func TestANodeThatIsMadeAnewIsTakenAgain(t *testing.T) {
	l := newLockstep(t, "a", "b")
	l.say(time.Minute, api.PlanProgress{Revision: 1, Nodes: []api.SharedProgress{{Node: "b", Phase: api.NodeGone, Left: true, Message: "the node is gone"}}})
	l.set(10*time.Minute, plan.Complete)
	l.ended(in("Drain"), api.PlanCompleted, plan.Counts{Total: 2, Done: 2})
	if want := "Drain a,b; Drain a; Drain a,b; Complete a,b"; l.sent() != want {
		t.Errorf("it sent %s, want %s", l.sent(), want)
	}
}

// TestARefusedNodeKeepsNothingElseFromBeingKnown: what the plan intended before goes on.
func TestARefusedNodeKeepsNothingElseFromBeingKnown(t *testing.T) {
	l := newLockstep(t, "a")
	l.answer = func(i api.PlanIntent) []api.PlanProgress {
		if slices.Contains(i.Nodes, "b") && i.Stage == plan.Drain {
			return []api.PlanProgress{{Revision: i.Revision, Refused: "b is shared with plan x, and they differ"}}
		}
		if i.Stage == plan.Drain {
			return []api.PlanProgress{{Revision: i.Revision, Tier: 3}}
		}
		return l.obey(i)
	}
	l.at(time.Minute, func() { l.nodes = append(l.nodes, plan.Facts{Name: "b"}) })
	l.say(5*time.Minute, api.PlanProgress{Revision: 1, Tier: 7})
	l.at(6*time.Minute, func() {
		if s := l.status(); s.Stages.Tier != 7 || s.Stages.Stage != plan.Drain || !strings.Contains(s.Failure, "they differ") {
			t.Errorf("%+v: %s", s.Stages, s.Failure)
		}
	})
	l.set(7*time.Minute, plan.Complete)
	l.ended(in("Drain"), api.PlanCompleted, plan.Counts{Total: 2, Done: 2})
}
