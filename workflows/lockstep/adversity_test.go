package lockstep

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
)

// TestAMaintenanceThatWasResetGetsItsTargetAgain: it reports that it does not know the later ones.
func TestAMaintenanceThatWasResetGetsItsTargetAgain(t *testing.T) {
	s := newSite(t)
	s.plan("a", 0, tiersOf(10, 20), "n1", "n2").says(time.Second, api.StageDrain)
	s.takes["n1"] = 2 * time.Minute
	s.at(time.Minute, func() {
		m := s.nodes["n1"]
		s.mu.Lock()
		m.target, m.drained, m.phase = api.NodeTarget{Revision: 0}, false, api.Pending
		s.mu.Unlock()
		s.report(m)
	})
	s.run(10 * time.Minute)
	if h := s.receivedBy("a"); h.last.Tier != 2 || !s.nodes["n1"].drained {
		s.dump()
		t.Errorf("n1 is at %+v, and plan a received %+v", s.nodes["n1"].target, h.last)
	}
}

// TestAMaintenanceThatWasResetIsEndedAgain: it does not know any more that it is to end.
func TestAMaintenanceThatWasResetIsEndedAgain(t *testing.T) {
	s := newSite(t)
	s.lostEnds = map[string]bool{"n1": true}
	s.plan("a", 0, tiersOf(10), "n1", "n2").says(time.Second, api.StageDrain).says(time.Minute, api.StageComplete)
	s.at(90*time.Second, func() { s.report(s.nodes["n1"]) })
	s.run(10 * time.Minute)
	if !s.nodes["n1"].over || !s.receivedBy("a").complete || s.count("end n1") != 2 {
		s.dump()
		t.Errorf("n1 is held for ever: its end was sent %d times", s.count("end n1"))
	}
}

// TestTheWordOfALockstepBeforeHoldsNobodyUp: its last targets arrive under the revision that this one gives next.
func TestTheWordOfALockstepBeforeHoldsNobodyUp(t *testing.T) {
	s := newSite(t)
	s.plan("a", 0, tiersOf(10, 20), "n1").says(time.Second, api.StageDrain)
	s.takes["n1"] = time.Minute
	s.at(20*time.Second, func() {
		s.mu.Lock()
		m := s.nodes["n1"]
		m.target.Targets = []drainplan.Entry{{PodType: drainplan.Default, PodPriority: 15}}
		s.mu.Unlock()
		s.drainsLater(m)
		s.report(m)
	})
	s.run(10 * time.Minute)
	if h := s.receivedBy("a"); h.last.Tier != 2 {
		s.dump()
		t.Errorf("n1 is at %+v, and plan a received %+v", s.nodes["n1"].target, h.last)
	}
}

// TestAForgedRevisionShutsOutNoneThatFollows: no maintenance takes leaps as large as one likes.
func TestAForgedRevisionShutsOutNoneThatFollows(t *testing.T) {
	s := newSite(t)
	s.plan("a", 0, tiersOf(10, 20), "n1").says(time.Second, api.StageDrain)
	s.takes["n1"] = 20 * time.Second
	for i, revision := range []int{1<<63 - 1, 1 << 43} {
		s.at(time.Duration(5+i)*time.Second, func() {
			s.signal(api.SignalNodeProgress, api.NodeProgress{Node: "n1", RunID: s.nodes["n1"].run, Phase: api.Draining, Revision: revision})
		})
	}
	s.run(5 * time.Minute)
	if h := s.receivedBy("a"); h.last.Tier != 2 || s.nodes["n1"].target.Revision > 10 {
		s.dump()
		t.Errorf("n1 is at %+v, and plan a received %+v", s.nodes["n1"].target, h.last)
	}
}

// TestWhatASilentPlanHoldsGoesNoFurther: its maintenance reports that the plan holds it, which may be at an earlier tier.
func TestWhatASilentPlanHoldsGoesNoFurther(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"n1", "n2"} {
		s.nodes[name] = &shared{node: name, run: runOf(name), phase: api.Ready, drained: true, target: api.NodeTarget{Revision: 7, Targets: tiersOf(20)}}
	}
	s.nodes["n1"].target.Plans = []string{"new", "old"}
	s.nodes["n2"].target.Plans = []string{"new"}
	old := s.plan("old", -time.Hour, tiersOf(20, 50), "n1", "n9").in
	old.Revision, old.Stage = 4, api.StageDrain
	s.plans["old"], s.silent["old"] = old.RunID, true
	s.takes["n9"] = time.Hour
	s.plan("new", 0, tiersOf(30), "n1").says(time.Second, api.StageDrain)
	s.plan("other", 0, tiersOf(30), "n2").says(time.Second, api.StageDrain)
	s.at(10*time.Minute, func() {
		if got := text(s.nodes["n1"].target.Targets); got != "Default<=20" {
			t.Errorf("n1 is drained up to %s while plan old has not said what it intends", got)
		}
		if got := text(s.nodes["n2"].target.Targets); got != "Default<=30" {
			t.Errorf("n2 is drained up to %s", got)
		}
		if n := s.receivedBy("new").nodes["n1"]; n.Message != "Waiting for plan old to say what it intends." {
			t.Errorf("plan new received %+v", n)
		}
		s.signal(api.SignalPlanIntent, old)
	})
	s.at(20*time.Minute, func() {
		if got := text(s.nodes["n1"].target.Targets); got != "Default<=20" {
			t.Errorf("n1 is drained up to %s while n9 is not drained up to 20", got)
		}
	})
	s.run(3 * time.Hour)
	if got := text(s.nodes["n1"].target.Targets); got != "Default<=50" {
		t.Errorf("n1 is drained up to %s in the end", got)
	}
	if t.Failed() {
		s.dump()
	}
}

// TestVeryManyPlansAreAskedAfterATermination: not all of their intents can be looked up at once.
func TestVeryManyPlansAreAskedAfterATermination(t *testing.T) {
	s := newSite(t)
	const plans = 60
	for i := range plans {
		p := s.plan(fmt.Sprintf("p%02d", i), -time.Hour, tiersOf(10), fmt.Sprintf("n%02d", i)).in
		p.Revision, p.Stage = 3, api.StageCordon
		s.plans[p.Name], s.intents[p.Name] = p.RunID, p
	}
	s.plan("new", 0, tiersOf(30), "n99").says(time.Second, api.StageCordon)
	s.at(31*time.Second, func() {
		if n := len(s.state(api.LockstepRequest{}).Plans); n != plans+1 {
			t.Errorf("%d plans had sent their intents when others stop waiting for them, want %d", n, plans+1)
		}
	})
	s.run(2 * time.Minute)
}

// TestANodeIsBegunAnewWithOtherSettings: a plan that comes while another is being completed does not go on with what that one
// had begun.
func TestANodeIsBegunAnewWithOtherSettings(t *testing.T) {
	s := newSite(t)
	a := s.plan("a", 0, tiersOf(10), "n1", "n2")
	a.in.Maintenance = json.RawMessage(`{"drain":{"mode":"wait"}}`)
	a.says(time.Second, api.StageDrain).says(time.Minute+5*time.Millisecond, api.StageComplete)
	b := s.plan("b", time.Minute, tiersOf(10), "n1", "n3")
	b.in.Maintenance = json.RawMessage(`{"drain":{"force":true}}`)
	b.says(time.Minute, api.StageDrain)
	// The same settings, in other words.
	c := s.plan("c", time.Minute, tiersOf(10), "n2")
	c.in.Maintenance = json.RawMessage(`{"drain": {"mode": "wait"}, "reason": "c"}`)
	c.says(time.Minute, api.StageDrain)
	s.run(5 * time.Minute)
	drain, _ := json.Marshal(s.nodes["n1"].input["drain"])
	if string(drain) != `{"force":true}` || s.nodes["n1"].over || !s.nodes["n1"].drained || s.count("begin n1") != 2 {
		t.Errorf("n1 was begun %d times, the last time with %s", s.count("begin n1"), drain)
	}
	if s.count("begin n2") != 1 || s.nodes["n2"].over || s.receivedBy("b").last.Tier != 1 || s.receivedBy("c").last.Tier != 1 {
		t.Errorf("n2 was begun %d times; plans received %+v, %+v", s.count("begin n2"), s.receivedBy("b").last, s.receivedBy("c").last)
	}
	if t.Failed() {
		s.dump()
	}
}

// TestAPlanGetsHowAMaintenanceEnded: a node that is gone is not one that failed.
func TestAPlanGetsHowAMaintenanceEnded(t *testing.T) {
	s := newSite(t)
	s.stubborn["n1"], s.stubborn["n2"] = true, true
	s.plan("a", 0, tiersOf(10), "n1", "n2").says(time.Second, api.StageDrain)
	s.at(time.Minute, func() { s.ends("n1", api.NodeGone) })
	s.at(time.Minute, func() { s.ends("n2", api.Cancelled) })
	s.continueAfter = 3
	s.run(5 * time.Minute)
	for name, phase := range map[string]api.Phase{"n1": api.NodeGone, "n2": api.Cancelled} {
		if n := s.receivedBy("a").nodes[name]; n.Phase != phase || !n.Left || n.Failed != (name == "n2") {
			t.Errorf("of %s plan a received %+v", name, n)
		}
	}
}

// TestAnIdlePlanThatHoldsNodesGetsTheirProgress: it was reset to before it went on.
func TestAnIdlePlanThatHoldsNodesGetsTheirProgress(t *testing.T) {
	s := newSite(t)
	p := s.plan("a", 0, tiersOf(10), "n1").says(time.Second, api.StageCordon)
	s.at(time.Minute, func() {
		s.mu.Lock()
		s.received["a"] = nil
		s.mu.Unlock()
		in := p.in
		in.Revision, in.Stage, in.Tiers, in.Nodes, in.Maintenance = 1, api.StageIdle, nil, nil, nil
		s.signal(api.SignalPlanIntent, in)
	})
	s.run(2 * time.Minute)
	if h := s.receivedBy("a"); h.nodes["n1"].RunID == "" || h.last.Revision != 1 || s.nodes["n1"].over {
		s.dump()
		t.Errorf("plan a received %+v", h)
	}
}

// TestTheTargetsOfANodeAreBounded: more than its maintenance takes would never be answered.
func TestTheTargetsOfANodeAreBounded(t *testing.T) {
	b := &inventory{}
	var err error
	for i := 0; i < maxPlans && err == nil; i++ {
		in := api.PlanIntent{
			Name: fmt.Sprint("p", i), RunID: runOf(fmt.Sprint(i)), CreatedAt: time.Now(), Revision: 1, Stage: api.StageDrain, Nodes: []string{"n1"},
		}
		for j := range 90 {
			in.Tiers = append(in.Tiers, drainplan.Entry{PodType: drainplan.Default, PodPriority: 1, PodSelector: fmt.Sprintf("app=x%dx%d", i, j)})
		}
		tiers, invalid := in.Validate(time.Now())
		if invalid != nil {
			t.Fatal(invalid)
		}
		if err = b.check(in, tiers); err == nil {
			b.accept(in, tiers)
			b.regroup()
		}
		var all []drainplan.Entry
		for _, p := range b.plans {
			all, _ = drainplan.Union(all, p.tiers.Targets(p.tiers.Len()-1))
		}
		said := api.NodeProgress{Node: "n1", RunID: runOf("n1"), Targets: all}
		if err := said.Validate(); err != nil {
			t.Fatalf("with %d plans: %v", len(b.plans), err)
		}
		target := api.NodeTarget{Revision: 1, Targets: all}
		if err := target.Validate(); err != nil {
			t.Fatalf("with %d plans: %v", len(b.plans), err)
		}
	}
	if err == nil || !strings.Contains(err.Error(), "tiers: node n1 would come to") || len(b.plans) < 5 {
		t.Errorf("with %d plans: %v", len(b.plans), err)
	}
}

// TestAMaintenanceThatNoListHasIsGivenBack: the list of those that run lags, and no plan wants its node any more.
func TestAMaintenanceThatNoListHasIsGivenBack(t *testing.T) {
	s := newSite(t)
	s.unlisted = map[string]bool{"n9": true}
	s.nodes["n9"] = &shared{node: "n9", run: runOf("n9"), phase: api.Ready, drained: true, target: api.NodeTarget{Revision: 7, Targets: tiersOf(20)}}
	s.plan("a", 0, tiersOf(10), "n1").says(time.Second, api.StageDrain).says(5*time.Minute, api.StageComplete)
	s.at(time.Minute, func() { s.report(s.nodes["n9"]) })
	// One that somebody made up.
	s.at(time.Minute, func() {
		s.signal(api.SignalNodeProgress, api.NodeProgress{Node: "n8", RunID: runOf("n8"), Phase: api.Ready, Revision: 1})
	})
	s.run(10 * time.Minute)
	if !s.nodes["n9"].over || !s.ended {
		s.dump()
		t.Error("n9 is held for ever")
	}
}

// TestACancellationLeavesMaintenancesAsTheyAre: a lockstep that is begun after it finds them, and gives them back.
func TestACancellationLeavesMaintenancesAsTheyAre(t *testing.T) {
	s := newSite(t)
	p := s.plan("a", 0, tiersOf(10, 20), "n1", "n2").says(time.Second, api.StageDrain)
	s.run(time.Minute)
	if err := s.env.GetWorkflowError(); !temporal.IsCanceledError(err) || s.count("end") > 0 || s.nodes["n1"].over || s.nodes["n2"].over {
		t.Fatalf("%v", err)
	}
	p.says(2*time.Minute, api.StageComplete)
	s.run(10 * time.Minute)
	if !s.nodes["n1"].over || !s.nodes["n2"].over || !s.receivedBy("a").complete || !s.ended || s.count("begin") != 2 {
		s.dump()
		t.Error("they are held for ever")
	}
}
