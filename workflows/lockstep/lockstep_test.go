package lockstep

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
)

// TestPlansThatShareNodesGoTogether is KEP-4212's lockstep from end to end: none of two plans goes on alone, and the nodes come
// back when both are complete.
func TestPlansThatShareNodesGoTogether(t *testing.T) {
	s := newSite(t)
	s.takes["n3"] = time.Minute
	a := s.plan("a", 0, tiersOf(10, 20), "n1", "n2").says(time.Second, api.StageCordon).says(10*time.Second, api.StageDrain)
	b := s.plan("b", time.Second, tiersOf(10, 20), "n2", "n3").says(20*time.Second, api.StageDrain)
	s.at(9*time.Second, func() {
		if n := s.receivedBy("a").nodes["n1"]; n.Phase != api.Cordoning || len(n.Targets) != 0 {
			t.Errorf("at stage Cordon: %+v", n)
		}
		if w := s.nodes["n1"].target.Waits; w != "plan a, which is at stage Cordon" {
			t.Errorf("its maintenance waits for %q", w)
		}
	})
	s.at(70*time.Second, func() {
		for _, name := range []string{"n1", "n2"} {
			if n := s.receivedBy("a").nodes[name]; !n.Drained || !strings.Contains(n.Message, "Waiting") || !strings.Contains(n.Message, "n3") {
				t.Errorf("while n3 is drained: %+v", n)
			}
		}
		if got := s.receivedBy("b").nodes["n3"]; got.Drained || got.Message != "Evacuating" || got.Phase != api.Draining {
			t.Errorf("n3: %+v", got)
		}
	})
	s.at(5*time.Minute, func() {
		for _, plan := range []string{"a", "b"} {
			if h := s.receivedBy(plan); h.last.Tier != 2 {
				t.Errorf("plan %s is at tier %d", plan, h.last.Tier)
			}
		}
		for _, m := range s.nodes {
			if !m.target.Last || !m.drained || len(m.history) != 2 {
				t.Errorf("%s: %+v", m.node, m.target)
			}
		}
	})
	a.says(6*time.Minute, api.StageComplete)
	s.at(7*time.Minute, func() {
		if h := s.receivedBy("a"); !h.complete || !s.nodes["n1"].over || s.nodes["n2"].over || !h.nodes["n2"].Left {
			t.Errorf("plan a: %+v", h)
		}
	})
	b.says(8*time.Minute, api.StageComplete)
	s.run(time.Hour)
	if !s.receivedBy("b").complete || !s.nodes["n2"].over || !s.nodes["n3"].over || !s.ended {
		t.Errorf("plan b: %+v, ended %v", s.receivedBy("b"), s.ended)
	}
	if s.count("n1 up to Default<=20") != 1 || s.count("begin") != 3 {
		s.dump()
		t.Error("a node was begun or raised more than once")
	}
	if t.Failed() {
		s.dump()
	}
}

func TestALaterPlanIsFastForwarded(t *testing.T) {
	s := newSite(t)
	s.plan("a", 0, tiersOf(10, 20, 30), "n1").says(time.Second, api.StageDrain)
	s.plan("b", time.Minute, tiersOf(5, 10, 40), "n1", "n2").says(2*time.Minute, api.StageDrain)
	s.run(10 * time.Minute)
	if h := s.receivedBy("b"); h.last.Forwarded != "fast-forwarded on node n1 by a" || h.last.Tier != 3 {
		t.Errorf("plan b received %+v", h.last)
	}
	if h := s.receivedBy("a"); h.last.Forwarded != "" || h.last.Tier != 3 {
		t.Errorf("plan a received %+v", h.last)
	}
}

func TestAGangAsksTogetherAndLaterNodesSingly(t *testing.T) {
	s := newSite(t)
	p := s.plan("a", 0, tiersOf(10), "n1", "n2", "n3", "n4")
	s.waitForSlots()
	s.foreign["n4"] = true
	p.says(time.Second, api.StageDrain)
	p.says(time.Minute, api.StageDrain, func(in *api.PlanIntent) { in.Nodes = []string{"n1", "n2", "n5"} })
	s.run(2 * time.Minute)
	if got := s.nodes["n5"].gangs; !slices.Equal(got, []string{"-"}) {
		t.Errorf("a node that came later asks with %v", got)
	}
	if got := s.nodes["n1"].gangs; !slices.Equal(got, []string{"3", "2"}) {
		t.Errorf("the gang went %v", got)
	}
	if got := s.receivedBy("a").nodes["n4"]; !got.Left || !got.Failed || got.Message != "it is somebody else's" {
		t.Errorf("n4: %+v", got)
	}
	if t.Failed() {
		s.dump()
	}
}

// TestANodeThatComesLaterNamesTheGangThatHasItsSlots: what is reserved for another gang is not kept from it.
func TestANodeThatComesLaterNamesTheGangThatHasItsSlots(t *testing.T) {
	for _, first := range [][]string{{"n1", "n2"}, {"n1"}} {
		s := newSite(t)
		p := s.plan("a", 0, tiersOf(10), first...)
		p.says(time.Second, api.StageDrain)
		p.says(time.Minute, api.StageDrain, func(in *api.PlanIntent) { in.Nodes = append(in.Nodes, "n5") })
		s.run(2 * time.Minute)
		late, early := s.nodes["n5"].target.Gang, s.nodes["n1"].target.Gang
		if late == nil || early == nil || late.Name != early.Name || late.Size != 1 || early.Size != len(first) {
			t.Errorf("after %v the later node asks with %+v, the others with %+v", first, late, early)
		}
	}
}

// TestWhoSharesANodeThatHasItsSlotNamesItsGang: plans that meet wait for each other, and so would what is reserved for a third.
func TestWhoSharesANodeThatHasItsSlotNamesItsGang(t *testing.T) {
	s := newSite(t)
	s.plan("a", 0, tiersOf(10), "n1", "n2").says(time.Second, api.StageDrain)
	s.plan("b", time.Second, tiersOf(10), "n2", "n3", "n4").says(time.Minute, api.StageDrain)
	s.plan("c", time.Second, tiersOf(10), "n7", "n8").says(time.Minute, api.StageDrain)
	s.run(2 * time.Minute)
	first := s.nodes["n1"].target.Gang
	for _, name := range []string{"n3", "n4"} {
		if g := s.nodes[name].target.Gang; g == nil || g.Name != first.Name || g.Size != 1 {
			t.Errorf("%s asks with %+v, want gang %s", name, g, first.Name)
		}
	}
	if g := s.nodes["n8"].target.Gang; g == nil || g.Name == first.Name || g.Size != 2 {
		t.Errorf("n8 asks with %+v", g)
	}
}

func TestAGangThatWaitsFollowsItsMembership(t *testing.T) {
	s := newSite(t)
	p := s.plan("a", 0, tiersOf(10), "n1", "n2", "n3")
	s.waitForSlots()
	p.says(time.Second, api.StageDrain)
	p.says(time.Minute, api.StageDrain, func(in *api.PlanIntent) { in.Nodes = []string{"n1", "n2"} })
	p.says(2*time.Minute, api.StageDrain, func(in *api.PlanIntent) { in.Nodes = []string{"n1"} })
	s.run(3 * time.Minute)
	if got := s.nodes["n1"].gangs; !slices.Equal(got, []string{"3", "2", "1"}) || !s.nodes["n3"].over {
		t.Errorf("the gang went %v", got)
	}
}

func TestIntentsThatDoNotCount(t *testing.T) {
	s := newSite(t)
	good := s.plan("a", 0, tiersOf(10, 20), "n1", "n2")
	good.in.Maintenance = []byte(`{"drain":{"force":true},"reason":"x"}`)
	good.says(time.Second, api.StageDrain)
	send := func(when time.Duration, change func(*api.PlanIntent)) {
		s.at(when, func() {
			in := s.intents["a"]
			in.Nodes = slices.Clone(in.Nodes)
			change(&in)
			s.signal(api.SignalPlanIntent, in)
		})
	}
	send(10*time.Second, func(in *api.PlanIntent) { in.RunID, in.Revision, in.Stage = runOf("forged"), 9, api.StageComplete })
	send(11*time.Second, func(in *api.PlanIntent) { in.Revision, in.Tiers = 7, tiersOf(10) })
	send(12*time.Second, func(in *api.PlanIntent) { in.Revision, in.Stage = 8, api.StageCordon })
	send(13*time.Second, func(in *api.PlanIntent) { in.Revision, in.Nodes = 9, []string{"N!"} })
	send(14*time.Second, func(in *api.PlanIntent) { in.Revision, in.Stage = 0, api.StageComplete })
	other := s.plan("b", time.Second, tiersOf(10), "n2", "n3")
	other.in.Maintenance = []byte(`{"reason":"y"}`)
	other.says(20*time.Second, api.StageDrain)
	s.run(time.Minute)
	if s.count("end") > 0 || s.count("begin") != 2 {
		t.Error("what does not count had an effect")
	}
	refused := strings.Join(s.receivedBy("a").refused, "\n")
	if !strings.Contains(refused, "tiers: the drain plan of a plan that has begun does not change") || !strings.Contains(refused, "does not go back to Cordon") {
		t.Errorf("plan a received %s", refused)
	}
	want := `node n2 is shared with plan a, and they differ in what is done to it: maintenance.drain is absent in plan b and {"force":true} in plan a`
	if got := s.receivedBy("b").refused; !slices.Equal(got, []string{want}) {
		t.Errorf("plan b received %q", got)
	}
	if t.Failed() {
		s.dump()
	}
}

func TestAPlanThatIsTerminatedGivesItsNodesBack(t *testing.T) {
	s := newSite(t)
	s.plan("a", 0, tiersOf(10), "n1", "n2").says(time.Second, api.StageDrain)
	s.plan("b", time.Second, tiersOf(10), "n2").says(2*time.Second, api.StageDrain)
	s.lost = []time.Duration{time.Minute}
	s.at(time.Minute, func() { s.mu.Lock(); defer s.mu.Unlock(); delete(s.plans, "a") })
	s.run(2 * time.Minute)
	if !s.nodes["n1"].over || s.nodes["n2"].over {
		s.dump()
		t.Error("n1 is to be given back, and n2 to stay")
	}
}

func TestANewRunOfAPlanFollowsTheOneThatEnded(t *testing.T) {
	s := newSite(t)
	s.plan("a", 0, tiersOf(10), "n1", "n2").says(time.Second, api.StageDrain)
	again := s.plan("a", time.Minute, tiersOf(20), "n2")
	again.in.RunID = runOf("again")
	again.says(time.Minute, api.StageDrain)
	s.run(3 * time.Minute)
	if !s.nodes["n1"].over || s.nodes["n2"].over || s.nodes["n2"].target.Targets[0].PodPriority != 20 {
		s.dump()
		t.Errorf("n2: %+v", s.nodes["n2"])
	}
}

func TestANodeWhoseMaintenanceEndsHoldsNobodyUp(t *testing.T) {
	s := newSite(t)
	s.stubborn["n2"] = true
	p := s.plan("a", 0, tiersOf(10, 20), "n1", "n2", "n3").says(time.Second, api.StageDrain)
	s.stubborn["n3"] = true
	s.at(time.Minute, func() { s.ends("n2", api.Failed) })
	s.lost = []time.Duration{2 * time.Minute}
	s.at(2*time.Minute, func() { s.mu.Lock(); defer s.mu.Unlock(); s.nodes["n3"].over = true })
	s.at(4*time.Minute, func() {
		h := s.receivedBy("a")
		if h.last.Tier != 2 || !h.nodes["n2"].Left || !h.nodes["n2"].Failed || h.nodes["n3"].Message != "its workflow was terminated" {
			t.Errorf("plan a received %+v", h)
		}
	})
	s.at(4*time.Minute, func() { s.stubborn["n2"] = false })
	p.says(5*time.Minute, api.StageDrain) // the same nodes: they stay out
	p.says(6*time.Minute, api.StageDrain, func(in *api.PlanIntent) { in.Nodes = []string{"n1"} })
	p.says(7*time.Minute, api.StageDrain, func(in *api.PlanIntent) { in.Nodes = []string{"n1", "n2"} })
	s.run(10 * time.Minute)
	if s.count("begin n2") != 2 || s.count("begin n3") != 1 || s.receivedBy("a").last.Tier != 2 || s.receivedBy("a").nodes["n2"].Left {
		s.dump()
		t.Errorf("plan a received %+v", s.receivedBy("a"))
	}
}

// TestCompleteAtAnyMoment: whatever is under way for a node, it is given back.
func TestCompleteAtAnyMoment(t *testing.T) {
	for _, after := range []time.Duration{0, 10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 100 * time.Millisecond, 1010 * time.Millisecond, 1030 * time.Millisecond, 3 * time.Second, 20 * time.Second} {
		s := newSite(t)
		s.plan("a", 0, tiersOf(10, 20), "n1", "n2").says(time.Second, api.StageDrain).says(time.Second+after, api.StageComplete)
		s.run(5 * time.Minute)
		for _, m := range s.nodes {
			if !m.over {
				t.Errorf("after %s %s is held", after, m.node)
			}
		}
		if !s.receivedBy("a").complete || !s.ended {
			s.dump()
			t.Errorf("after %s the plan is not complete", after)
		}
	}
}

// TestAPlanThatIsCompleteKnowsThatItsNodesAreGivenBack: also where they are within the second in which nothing is decided, after
// what they said last. The plan ends with the signal that says so.
func TestAPlanThatIsCompleteKnowsThatItsNodesAreGivenBack(t *testing.T) {
	for _, before := range []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 900 * time.Millisecond, 1500 * time.Millisecond} {
		s := newSite(t)
		names := []string{"n1", "n2", "n3"}
		s.plan("a", 0, tiersOf(10), names...).says(time.Second, api.StageDrain).says(time.Minute, api.StageComplete)
		for _, name := range names {
			// Their end is sent at about a minute, and they end 2 s later.
			s.at(62*time.Second-before, func() {
				s.mu.Lock()
				s.nodes[name].phase = api.Releasing
				s.mu.Unlock()
				s.report(s.nodes[name])
			})
		}
		s.run(5 * time.Minute)
		h := s.receivedBy("a")
		for _, name := range names {
			if !h.complete || !h.nodes[name].Left {
				t.Errorf("%s before the end: complete %t, and of %s it received %+v", before, h.complete, name, h.nodes[name])
			}
		}
	}
}

func TestWhoIsTerminatedFindsEverythingAgain(t *testing.T) {
	s := newSite(t)
	s.takes["n2"] = time.Hour
	// What an earlier lockstep had sent them.
	for _, name := range []string{"n1", "n2", "n9"} {
		s.nodes[name] = &shared{node: name, run: runOf(name), phase: api.Draining, target: api.NodeTarget{Revision: 7, Targets: tiersOf(20), Plans: []string{"a"}}}
	}
	s.nodes["n1"].drained, s.nodes["n1"].phase = true, api.Ready
	s.nodes["n9"].drained, s.nodes["n9"].phase = true, api.Ready
	old := s.plan("old", -time.Hour, tiersOf(10, 20, 30), "n1", "n2").in
	old.Revision, old.Stage = 4, api.StageDrain
	s.plans["old"], s.intents["old"] = old.RunID, old
	s.plan("new", 0, tiersOf(30), "n1").says(time.Second, api.StageDrain)
	s.run(20 * time.Minute)
	if s.receivedBy("old").repeats != 1 || s.receivedBy("old").last.Revision != 4 {
		t.Errorf("the old plan was asked %d times, and received %+v", s.receivedBy("old").repeats, s.receivedBy("old").last)
	}
	if got := s.nodes["n1"].target; got.Revision <= 7 || text(got.Targets) != "Default<=20" {
		t.Errorf("n1 is at %+v although n2 is not drained", got)
	}
	if !s.nodes["n9"].over {
		t.Error("a node that no plan wants is to be given back")
	}
	if s.count("begin") > 0 {
		t.Error("what runs was begun")
	}
	if t.Failed() {
		s.dump()
	}
}

func TestWhatASilentPlanMayWantIsNotGivenBack(t *testing.T) {
	s := newSite(t)
	s.nodes["n9"] = &shared{node: "n9", run: runOf("n9"), phase: api.Ready, drained: true, target: api.NodeTarget{Revision: 7, Targets: tiersOf(20)}}
	s.plans["mute"], s.silent["mute"] = runOf("mute"), true
	s.plan("a", 0, tiersOf(10), "n1").says(time.Second, api.StageDrain)
	s.at(10*time.Minute, func() {
		if st := s.state(api.LockstepRequest{}); st.Unwanted != 1 || st.NodesAll != 2 {
			t.Errorf("state %+v", st)
		}
	})
	s.run(20 * time.Minute)
	if s.nodes["n9"].over || s.receivedBy("a").last.Tier != 1 {
		s.dump()
		t.Error("n9 may be wanted, and plan a goes on")
	}
}

func TestAResetFindsEverythingOutAnew(t *testing.T) {
	s := newSite(t)
	s.reset(30 * time.Second)
	s.reset(90 * time.Second)
	s.takes["n1"] = 20 * time.Second
	s.plan("a", 0, tiersOf(10, 20, 30, 40), "n1", "n2").says(time.Second, api.StageDrain).says(4*time.Minute, api.StageComplete)
	s.run(10 * time.Minute)
	if !s.receivedBy("a").complete || s.count("find") != 3 || s.count("n1 up to") != 4 {
		s.dump()
		t.Error("it did not go on after the reset")
	}
}

// Nothing costs anything where nothing is asked for.
func TestItRestsForAYearAndEnds(t *testing.T) {
	s := newSite(t)
	p := s.plan("a", 0, tiersOf(10), "n1").says(time.Second, api.StageCordon)
	s.at(time.Hour, func() {
		s.env.SetOnTimerScheduledListener(func(_ string, d time.Duration) { t.Errorf("a timer of %s", d) })
	})
	const year = 365 * 24 * time.Hour
	s.at(year, func() { s.env.SetOnTimerScheduledListener(func(string, time.Duration) {}) })
	p.says(year+time.Hour, api.StageComplete)
	s.run(year + 2*time.Hour)
	if !s.ended || !s.receivedBy("a").complete {
		t.Error("it goes on")
	}
}

func (s *site) waitForSlots() {
	for i := range 20 {
		s.at(time.Second+time.Duration(i)*5*time.Millisecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, m := range s.nodes {
				m.slotless = true
			}
		})
	}
}
