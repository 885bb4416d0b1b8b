package health

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestGroupsHaveThresholdsOfTheirOwn(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"groups":{"by":["zone"],"minHealthy":"60%"}`), numbered(9)...)
	for i, name := range numbered(9) {
		c.nodes[name].Group = string("abc"[i%3])
	}
	c.ill("n1", 0) // a
	c.ill("n4", 0) // a: one of three is left
	c.ill("n2", 0) // b
	c.pass(301 * time.Second)
	c.wantBegun("n2")
	c.want("announced of both", c.announced(EventRemediationSkipped) == 2)
	groups := c.status().Groups
	c.want("shown", len(groups) == 2 && groups[0].Blocked && groups[0].Healthy == 1 && groups[0].MinHealthy == 2 && !groups[1].Blocked)
	c.well("n4")
	c.wantBegun("n1", "n2")
}

func TestWhatHasNotBegunIsWithdrawnByAPause(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(7)...)
	for _, name := range numbered(3) {
		c.ill(name, 0)
	}
	c.pass(301 * time.Second)
	c.wantBegun("n1", "n2", "n3")
	c.made("n1")
	c.waiting = []string{"n2", "n3"}
	c.want("nothing is withdrawn", c.last.Withdrawn == nil)
	c.state.Pauses = []Pause{{By: "jane", At: c.now}}
	c.pass(time.Second)
	c.want("those that wait are withdrawn", slices.Equal(c.last.Withdrawn, c.waiting))
	c.waiting = nil
	for _, name := range []string{"n2", "n3"} {
		n, _ := c.state.Node(name)
		c.want(name+" is not being remediated", n.Remediation == nil)
		delete(c.running, name)
	}
	n, _ := c.state.Node("n1")
	c.want("what has begun goes on", n.Remediation != nil)
	c.state.Pauses = nil
	c.pass(time.Second)
	c.wantBegun("n1", "n2", "n3")
}

// What a remediation cannot do is said of its node, whole: the command that helps is at its end.
func TestWhatARemediationCannotDoIsShown(t *testing.T) {
	trouble := "remove what remediates n1: " + strings.Repeat("long ", 80) + "(grant it with a ClusterRole)"
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.well("n1")
	c.obey("n1")
	c.remediation("n1").Trouble = trouble
	c.report("n1")
	shown := func(want string) {
		t.Helper()
		explained := Explain(Input{Spec: c.spec, State: c.state, Now: c.now}, "n1")
		c.want("it is explained", len(explained.Blocks) > 0 && strings.Contains(explained.Blocks[0], want))
		c.want("the status shows it", strings.Contains(c.status().UnhealthyNodes[0].Blocked, want))
	}
	shown(trouble)
	c.remediation("n1").Trouble = ""
	c.end("n1")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.end("n1", func(p *Progress) { p.Failure, p.Trouble = "forbidden", trouble })
	shown(trouble + "; the next try is in ")
	c.well("n1")
	n, _ := c.state.Node("n1")
	c.want("that is forgotten of a node that is healthy", n.Past == nil || n.Past.Trouble == "")
}

// A control-plane node waits for its slot in its remediation: a pause must end that, or a step would begin in the pause.
func TestARemediationThatWaitsForItsSlotIsEndedByAPause(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(7)...)
	for _, name := range numbered(3) {
		c.ill(name, 0)
	}
	c.pass(301 * time.Second)
	c.made("n1")
	c.remediation("n2").Waiting, c.remediation("n2").WaitsForSlot = "its slot", true
	c.report("n2")
	c.remediation("n3").Waiting = "an earlier object to be gone"
	c.report("n3")
	c.want("it goes on", !c.order("n2").Healthy)
	c.want("it is shown", slices.ContainsFunc(c.status().UnhealthyNodes, func(n UnhealthyNode) bool { return n.Next == "step 1 begins, which waits for its slot" }))
	c.state.Pauses = []Pause{{By: "jane", At: c.now}}
	c.pass(time.Second)
	c.want("what waits for a slot ends", c.order("n2").Healthy && strings.Contains(c.order("n2").Why, "jane"))
	c.want("nothing else does", !c.order("n1").Healthy && !c.order("n3").Healthy)
	c.obey("n2")
	c.end("n2")
	c.want("it is not remediated", c.announced(EventRemediationFailed) == 0 && c.running["n2"] == nil)
	c.state.Pauses = nil
	c.pass(time.Second)
	c.wantBegun("n1", "n2", "n3")
}

func TestGroupThatIsNotCountedIsBlocked(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"groups":{"by":["zone"],"minHealthy":0}`), numbered(3)...)
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.wantBegun()
}

func TestFlappingGoesOnWithTheNextStep(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m", "1m"), `"flapping":{"within":"1h"}`), "n1", "n2", "n3")
	fall := func() {
		c.ill("n1", 0)
		c.pass(301 * time.Second)
		c.made("n1")
	}
	recover := func() {
		c.well("n1")
		c.end("n1")
	}
	for _, step := range []int{0, 1, 2, 2} {
		fall()
		c.want("the step", c.order("n1").Step == step)
		recover()
		c.pass(time.Hour - time.Second)
	}
	c.pass(2 * time.Second)
	fall()
	c.want("from the beginning", c.order("n1").Step == 0)
}

func TestFlappingIsForgotten(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m"), `"flapping":{"within":"1h"}`), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.well("n1")
	c.end("n1")
	c.want("remembered", len(c.state.Nodes) == 1)
	c.pass(time.Hour + time.Second)
	c.want("forgotten", len(c.state.Nodes) == 0)
}

func TestRelapseDuringRemovalBeginsAnew(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m")), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.well("n1")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.want("the removal goes on", c.order("n1").Healthy && c.order("n1").Step == 0 && c.runs == 1)
	c.end("n1")
	c.want("then another one", c.runs == 2)
	c.wantBegun("n1")
}

func TestFailuresAreTriedAgainMoreAndMoreSlowly(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	for _, wait := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		c.end("n1", func(p *Progress) { p.Failure = "refused" })
		c.want("the time", c.last.Wake.Equal(c.now.Add(wait*time.Minute)))
		c.pass(wait * time.Minute)
		c.wantBegun("n1")
	}
	c.end("n1", func(p *Progress) { p.Failure = "refused" })
	c.well("n1")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.wantBegun("n1")
}

func TestRemediationRemovedBySomebodyElseBeginsWithItsStep(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m", "1m")), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.pass(61 * time.Second)
	c.obey("n1")
	c.end("n1")
	c.want("announced", c.announced(EventRemediationFailed) == 1)
	c.wantBegun()
	c.pass(time.Minute)
	c.want("the step that was at work", c.order("n1").Step == 1)
}

func TestWhatARemediationSaysLateDoesNotCount(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	late := *c.running["n1"]
	late.Ended = true
	c.well("n1")
	c.end("n1")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.wantBegun("n1")
	c.want("ignored", !c.state.Report(late))
	c.made("n1")
	c.want("ignored", !c.state.Report(late))
}

func TestOrdersGoOnWhereTheRemediationIs(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.running["n1"].Revision = 7 // it ran already when the check thought that it began
	c.made("n1")
	c.well("n1")
	c.want("a later order", c.order("n1").Healthy && c.order("n1").Revision > 7)
}

func TestCheckBegunAnewTakesUpItsRemediations(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("1m", "1m")), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.state, c.events = State{}, nil
	c.want("taken up", c.state.Report(*c.running["n1"]))
	c.decide()
	c.want("nothing is done before the nodes are seen", len(c.last.Orders)+len(c.last.Begin) == 0)
	c.want("its facts are wanted", slices.Equal(IntentOf(c.spec, c.state).Unseen, []string{"n1"}))
	c.pass(time.Hour)
	c.watch()
	c.want("they were seen", len(IntentOf(c.spec, c.state).Unseen) == 0)
	c.want("the next step, and nothing begun twice", c.order("n1").Step == 1 && len(c.last.Begin) == 0)
	c.want("not announced again", c.announced(EventDetectedUnhealthy) == 0)
}

func TestDurationIsNotBegunAnewByARestart(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	c.ill("n1", 0)
	c.pass(299 * time.Second)
	c.state = State{}
	c.decide()
	c.watch()
	c.want("the same instant", c.last.Wake.Equal(start.Add(300*time.Second+tick)))
	c.pass(2 * time.Second)
	c.wantBegun("n1")
}

func TestParts(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(5)...)
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	facts := func(name string) Facts { return Facts{Name: name, Matches: []Match{{0, start}}} }
	part := func(full, more bool, nodes ...Facts) {
		t.Helper()
		c.state.Observe(Observation{Full: full, More: more, At: c.now, Groups: []GroupCount{{Nodes: 5, Matching: 2}}, Nodes: nodes})
		c.decide()
	}
	part(true, true, facts("n2"))
	c.wantBegun("n1")
	c.want("not yet known", !c.order("n1").Healthy)
	part(false, true)
	part(false, false, facts("n1"))
	c.wantBegun("n1", "n2")
	c.want("still ill", !c.order("n1").Healthy)
	part(true, false, facts("n2"))
	c.want("not named: from before it was remediated", !c.order("n1").Healthy)
	part(false, false, Facts{Name: "n1"})
	c.want("named: healthy", c.order("n1").Healthy)
}

func TestMoreNodesThanAreRemembered(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"minHealthy":0`, `"pauseRequests":["a storm"]`), numbered(MaxNodes+500)...)
	for _, f := range c.nodes {
		f.Matches = []Match{{Index: 0, Since: c.now}}
	}
	c.nodes["n4321"].Matches[0].Since = c.now.Add(-time.Second)
	c.watch()
	c.want("bounded, the counts are right", len(c.state.Nodes) == MaxNodes && c.status().HealthyNodes == 0 && c.state.Seen.Dropped)
	_, found := c.state.Node("n4321")
	c.want("the one that was ill first is among them", found)
	for i, n := range c.state.Nodes {
		if i < 1000 {
			c.nodes[n.Name].Matches = nil
		}
	}
	o := Observation{At: c.now, Groups: []GroupCount{{Nodes: MaxNodes + 500, Matching: MaxNodes - 500}}}
	for _, f := range c.nodes {
		if len(f.Matches) == 0 {
			o.Nodes = append(o.Nodes, *f)
		}
	}
	c.state.Observe(o)
	c.decide()
	c.want("asks for the rest", c.last.Anew)
	c.watch()
	c.want("all of them", len(c.state.Nodes) == MaxNodes-500)
}

func TestEventsAreBounded(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"minHealthy":0`), numbered(200)...)
	for _, f := range c.nodes {
		f.Matches = []Match{{Index: 0, Since: c.now.Add(-time.Hour)}}
	}
	c.watch()
	c.want("all begin, and are announced shortly", len(c.begun()) == 200 && len(c.last.Events) == maxEvents+1)
	c.want("how many more", strings.Contains(c.last.Events[maxEvents].Text, "180"))
}

// TestSizeOfTheState holds what goes from run to run to a size.
func TestSizeOfTheState(t *testing.T) {
	for _, test := range []struct{ nodes, most int }{{1000, 256 << 10}, {MaxNodes, 1 << 20}} {
		c := newCluster(t, specOf(t, escalating("5m", "5m"), `"minHealthy":0`, `"groups":{"by":["zone"],"minHealthy":0}`, `"flapping":{"within":"1h"}`))
		c.restart = false
		for i := range test.nodes {
			name := fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i%7, i%251, i)
			c.nodes[name] = &Facts{Name: name, UID: fmt.Sprintf("%08x-58cc-4372-a567-%012x", i*7919, i*104729), Group: fmt.Sprintf("eu-central-1%c", "abc"[i%3]),
				CreatedAt: start.Add(-time.Duration(i) * time.Hour), Matches: []Match{{0, c.now.Add(-time.Duration(i) * time.Second)}, {1, c.now}}}
		}
		c.watch()
		c.pass(400 * time.Second)
		for name := range c.running {
			p := c.running[name]
			for step := range 2 {
				p.Steps = append(p.Steps, StepState{Index: step, StartedAt: c.now, Resource: &Resource{APIVersion: "self-node-remediation.medik8s.io/v1alpha1",
					Kind: "SelfNodeRemediation", Namespace: "openshift-workload-availability", Name: name, UID: fmt.Sprintf("%08x-1111-4372-a567-%012x", len(name)*c.runs, c.runs)}})
			}
			c.state.Report(*p)
		}
		c.decide()
		text, err := json.Marshal(c.state)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal([]Node(c.state.Nodes))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d nodes, all under remediation with two objects each: %d KB, plain %d KB", test.nodes, len(text)>>10, len(plain)>>10)
		if len(c.begun()) != test.nodes || len(text) > test.most {
			t.Errorf("%d nodes under remediation take %d bytes: more than %d", len(c.begun()), len(text), test.most)
		}
	}
}

func TestExplain(t *testing.T) {
	c := newCluster(t, specOf(t, escalating("5m", "5m"), `"healthyDelay":"1h"`), "n1", "n2", "n3")
	explain := func(state string, words ...string) Explanation {
		t.Helper()
		e := Explain(Input{Spec: c.spec, State: c.state, Now: c.now}, "n1")
		text := fmt.Sprintf("%+v", e)
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%q is not in %s", word, text)
			}
		}
		if e.State != state {
			t.Errorf("%s is not %s", text, state)
		}
		return e
	}
	explain(NodeHealthy, "no unhealthy condition")
	c.ill("n1", 1)
	e := explain(NodeSoon, "Ready is Unknown since 2026-03-01T12:00:00Z", "5m allowed")
	c.want("when", e.At.Equal(start.Add(5*time.Minute+tick)))
	c.ill("n2", 0)
	c.pass(301 * time.Second)
	explain(NodeUnhealthy, "1 of 3 nodes are healthy, and 2 have to be (minHealthy 51%)", "begins with step 1 once nothing stands in the way")
	c.well("n2")
	explain(NodeRemediating, "step 1 begins", "about to begin")
	c.made("n1")
	e = explain(NodeRemediating, "Step 1 of 2 is at work", "step 2 begins, if the node is not healthy by then", "at work since")
	c.want("when", e.At.Equal(c.now.Add(5*time.Minute+tick)) && e.Steps[1].State == "not begun")
	c.pass(5*time.Minute + tick)
	c.obey("n1")
	explain(NodeRemediating, "timed out", "the last step has had its time")
	c.well("n1")
	e = explain(NodeRecovered, "is removed, if the node stays healthy")
	c.want("when", e.At.Equal(c.now.Add(time.Hour)))
	c.pass(time.Hour)
	explain(NodeRemoving, "is being removed")
	c.end("n1")
	explain(NodeHealthy)
}

func TestStatusPages(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate, `"pauseRequests":["a"]`), numbered(250)...)
	for _, f := range c.nodes {
		f.Matches = []Match{{Index: 0, Since: c.now.Add(-time.Hour)}}
	}
	c.watch()
	seen := map[string]bool{}
	for offset, pages := 0, 0; pages == 0 || offset > 0; pages++ {
		s := Look(Input{Spec: c.spec, State: c.state, Now: c.now}, offset, 0)
		for _, n := range s.UnhealthyNodes {
			seen[n.Name] = true
		}
		offset = s.NextOffset
	}
	if len(seen) != 250 {
		t.Errorf("the pages have %d nodes", len(seen))
	}
}

func TestSignedDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{`"-1s"`: -time.Second, `"0s"`: 0, `"-1h30m"`: -90 * time.Minute, `"1d"`: 24 * time.Hour} {
		var d SignedDuration
		if err := json.Unmarshal([]byte(text), &d); err != nil || d.Std() != want {
			t.Errorf("%s: %s, %v", text, d, err)
		}
	}
	for _, text := range []string{`"--1s"`, `"-"`, `1`, `""`} {
		var d SignedDuration
		if json.Unmarshal([]byte(text), &d) == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestOneControlPlaneNodeAtATime(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(9)...)
	for _, name := range []string{"n1", "n2", "n3"} {
		c.nodes[name].ControlPlane = true
	}
	c.ill("n2", 0)
	c.ill("n5", 0)
	c.pass(time.Second)
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.wantBegun("n2", "n5")
	c.made("n2")
	c.wantPhase(PhaseRemediating, 6, 9)
	explained := Explain(Input{Spec: c.spec, State: c.state, Now: c.now}, "n1")
	c.want("whose turn it is", slices.Equal(explained.Blocks, []string{"one control-plane node is remediated at a time, now n2"}))
	c.want("announced once", c.announced(EventRemediationSkipped) == 1)
	c.well("n2")
	c.want("it is being removed", c.order("n2").Healthy)
	c.wantBegun("n2", "n5")
	c.end("n2")
	c.wantBegun("n1", "n5")
}

// The control plane may be able to do without another node than the one that has been ill longest: one whose member is down already.
func TestAControlPlaneNodeThatIsIndispensableMakesRoomForTheNext(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(9)...)
	c.nodes["n1"].ControlPlane, c.nodes["n2"].ControlPlane = true, true
	c.ill("n1", 0)
	c.ill("n2", 0)
	c.pass(301 * time.Second)
	c.wantBegun("n1")
	c.end("n1", func(p *Progress) { p.Indispensable = "etcd's budget allows no disruption" })
	c.wantBegun("n2")
	c.made("n2")
	explained := Explain(Input{Spec: c.spec, State: c.state, Now: c.now}, "n1")
	c.want("why", len(explained.Blocks) == 2 && strings.HasPrefix(explained.Blocks[0], "etcd's budget allows no disruption; the next try is in"))
	c.pass(2 * time.Minute)
	c.wantBegun("n2")
	c.well("n2")
	c.end("n2")
	c.wantBegun("n1")
	c.want("neither has failed, and each is announced of once", c.announced(EventRemediationFailed) == 0 && c.announced(EventRemediationSkipped) == 2)
}

func TestDeletedControlPlaneNodeKeepsItsTurn(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(9)...)
	c.nodes["n1"].ControlPlane, c.nodes["n2"].ControlPlane = true, true
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.made("n1")
	c.running["n1"].PermanentNodeDeletionExpected = true
	c.report("n1")
	*c.nodes["n1"] = Facts{Name: "n1", Left: true, Gone: true}
	c.ill("n2", 0)
	c.pass(301 * time.Second)
	c.wantBegun("n1")
}

func TestAnOlderCheckWithTheSameNodesIsNamedAndStopsNothing(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), "n1", "n2", "n3")
	elder := func(node string) func(*Observation) {
		return func(o *Observation) { o.Overlap = Overlap{Check: "elder", Node: node} }
	}
	c.nodes["n1"].Matches = []Match{{Since: c.now.Add(-time.Hour)}}
	c.watch(elder("n1"))
	c.wantBegun("n1")
	for _, word := range []string{"elder", "n1"} {
		c.want("named", strings.Contains(c.status().Overlap, word))
	}
	c.watch(elder("n2")) // another node of the same check is nothing new
	c.want("announced once", c.announced(EventOverlap) == 1 && c.announced(EventDisabled) == 0)
	c.end("n1", func(p *Progress) { p.LeaseHeldBy = "NodeHealthCheck-elder" })
	c.wantBegun()
	c.want("who has it is named", strings.Contains(c.status().UnhealthyNodes[0].Blocked, "held by NodeHealthCheck-elder"))
	c.watch()
	c.want("over", c.status().Overlap == "")
	c.watch(elder("n2"))
	c.want("announced again", c.announced(EventOverlap) == 2)
}
