package profile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/profile/state"
)

// only is what is decided for the first profile of the only node.
func only(t *testing.T, all []Evaluation) Evaluated {
	t.Helper()
	if len(all) != 1 || all[0].Problem != "" || len(all[0].Profiles) == 0 {
		t.Fatalf("%+v", all)
	}
	return all[0].Profiles[0]
}

func TestANodeWithoutAnything(t *testing.T) {
	c := &cluster{config: load(t, machine("")), now: now, nodes: []Node{newNode("n", "")}}
	c.nodes[0].Object.Labels, c.nodes[0].Object.Annotations = nil, nil
	e := c.decide()[0]
	if !e.Changed || e.Label != state.Operational {
		t.Fatalf("%+v", e)
	}
	text, err := e.Data.Write()
	want := `{"Profiles":{"default":{"Transition":"2026-01-05T12:00:00Z","Current":"operational","Previous":"operational"}},"Notifications":{}}`
	if err != nil || text != want {
		t.Error(text, err)
	}
}

func TestProfilesOfTheLabel(t *testing.T) {
	const twoSteps = "{transitions: [{check: a, next: maintenance-required}]}"
	file := machine("- {name: block, operational: " + twoSteps + "}\n" +
		"- {name: multi, operational: " + twoSteps + ", maintenance-required: {transitions: [{check: a, next: in-maintenance}]}}\n" +
		"- {name: to-maintenance, operational: {transitions: [{check: a, next: in-maintenance}]}}\n" +
		"- {name: test, operational: " + twoSteps + "}\n")
	for _, c := range []struct {
		label  string
		states string
		node   state.State
		data   int
	}{
		{"block--multi", "block:maintenance-required multi:in-maintenance", state.Maintenance, 2},
		{"does-not-exist--test", "does-not-exist: test:maintenance-required", state.Required, 1},
		{"multi--otherprofile1--otherprofile2", "multi:in-maintenance otherprofile1: otherprofile2:", state.Maintenance, 1},
		{"multi--to-maintenance", "multi:maintenance-required to-maintenance:in-maintenance", state.Maintenance, 2},
		{"unknown", "unknown:", state.Operational, 0},
		{"test--", "test:maintenance-required", state.Required, 1},
		{"test--test", "test:maintenance-required", state.Required, 1},
		{"", "default:operational", state.Operational, 1},
	} {
		t.Run(c.label, func(t *testing.T) {
			for _, details := range []string{"", "true"} {
				all := &cluster{config: load(t, file), now: now, nodes: []Node{newNode("n", c.label, "a")}}
				all.nodes[0].Object.Labels[state.LogDetailsLabel] = details
				for range 5 {
					all.step()
				}
				var states []string
				e := all.decide()[0]
				for _, p := range e.Profiles {
					states = append(states, p.Profile+":"+string(p.State))
				}
				if got := strings.Join(states, " "); got != c.states || e.Label != c.node || len(e.Data.Profiles) != c.data || e.LogDetails != (details != "") {
					t.Errorf("%s, %s, %+v", got, e.Label, e.Data)
				}
			}
		})
	}
}

func TestTwoProfilesInTheSameEvaluationNeverBoth(t *testing.T) {
	const enters = "operational: {transitions: [{check: a, next: in-maintenance}]}}\n"
	c := &cluster{config: load(t, machine("- {name: p, "+enters+"- {name: q, "+enters)), now: now, nodes: []Node{newNode("n", "q--p", "a")}}
	e := c.decide()[0]
	if e.Profiles[0].Move == nil || e.Profiles[1].Move != nil {
		t.Fatalf("%+v", e.Profiles)
	}
	considered := e.Profiles[1].Transitions[0]
	if !considered.Holds || considered.Refused != "profile q takes the node into maintenance" || considered.Chosen {
		t.Errorf("%+v", considered)
	}
	// Nor while the first is on its way, nor when it is there.
	c.write(e)
	c.nodes[0].Busy["q"] = Busy{To: state.Maintenance}
	if e := c.decide()[0]; e.Profiles[0].Busy == nil || e.Profiles[0].Transitions != nil || e.Profiles[1].Move != nil {
		t.Errorf("%+v", e.Profiles)
	}
	c.finish("n", e.Profiles[0])
	if e := c.decide()[0]; e.Profiles[1].Move != nil || e.Profiles[1].Transitions[0].Refused != "profile q has the node in maintenance" {
		t.Errorf("%+v", e.Profiles)
	}
	// Nor when the configuration no longer has it.
	c.config = load(t, machine("- {name: p, "+enters))
	if e := c.decide()[0]; !e.Profiles[0].Unknown || e.Profiles[1].Move != nil || e.Label != state.Operational {
		t.Errorf("%+v", e)
	}
	// But when the label no longer has it: its state is forgotten, and nothing is triggered.
	c.nodes[0].Object.Labels[state.ProfileLabel] = "p"
	if e := c.decide()[0]; len(e.Data.Profiles) != 1 || e.Profiles[0].Move == nil {
		t.Errorf("%+v", e)
	}
}

func TestEntering(t *testing.T) {
	c := &cluster{config: load(t, machine("- {name: p, operational: {notify: say && once, transitions: [{check: a, trigger: t, next: in-maintenance}]}, in-maintenance: {enter: t && u && t, notify: say, transitions: [{check: a, next: operational}]}}")),
		now: now, nodes: []Node{newNode("n", "p", "a")}}
	// A profile that is new is not entered, and no notification of a change is due.
	p := only(t, c.decide())
	if p.Enter != nil || p.Notify != nil || p.Move == nil {
		t.Fatalf("%+v", p)
	}
	c.write(c.decide()[0])
	c.finish("n", p)
	c.now = c.now.Add(time.Minute)
	e := c.decide()[0]
	p = only(t, []Evaluation{e})
	if !slices.Equal(p.Enter, []string{"t", "u", "t"}) || p.Transitions != nil || p.Move != nil {
		t.Fatalf("%+v", p)
	}
	if len(p.Notify) != 1 || p.Notify[0].Instance != "say" || p.Notify[0].Why != "the state has changed" {
		t.Errorf("%+v", p.Notify)
	}
	c.write(e)
	c.now = c.now.Add(time.Minute)
	// It is returned again until it is done; a notification that was sent is not.
	if p := only(t, c.decide()); p.Enter == nil || p.Notify != nil {
		t.Errorf("%+v", p)
	}
	c.nodes[0].Busy["p"] = Busy{To: state.Maintenance, Enter: true}
	if p := only(t, c.decide()); p.Enter != nil || p.Busy == nil || p.Notify != nil {
		t.Errorf("%+v", p)
	}
	c.finish("n", e.Profiles[0])
	if p := only(t, c.decide()); p.Enter != nil || p.Move == nil || p.Move.To != state.Operational || p.Notify != nil {
		t.Errorf("%+v", p)
	}
}

func TestTheStateChangeOfAStateWithoutEnter(t *testing.T) {
	c := &cluster{config: load(t, machine("- {name: p, operational: {notify: say, transitions: [{check: a, next: maintenance-required}]}, maintenance-required: {transitions: [{check: '!a', next: operational}]}}")),
		now: now, nodes: []Node{newNode("n", "p", "a")}}
	c.step()
	if p := only(t, c.step()); p.State != state.Required || p.Notify != nil {
		t.Fatalf("%+v", p)
	}
	delete(c.nodes[0].Object.Annotations, "a")
	c.step()
	// The notification of a change comes from the chain of the new state, once.
	if p := only(t, c.step()); p.State != state.Operational || len(p.Notify) != 1 {
		t.Fatalf("%+v", p)
	}
	c.now = c.now.Add(48 * time.Hour)
	if p := only(t, c.step()); p.Notify != nil {
		t.Fatalf("%+v", p)
	}
}

func TestWhichTransitionWins(t *testing.T) {
	for _, c := range []struct {
		name, transitions string
		annotations       []string
		to                state.State
		triggers, errors  string
	}{
		{"none", "[]", []string{"a"}, "", "", ""},
		{"none holds", "[{check: a, next: in-maintenance}]", nil, "", "", ""},
		{"the first that holds", "[{check: a, next: in-maintenance}, {check: b, next: maintenance-required}]", []string{"a", "b"}, state.Maintenance, "", ""},
		{"the second", "[{check: a, next: in-maintenance}, {check: b, next: maintenance-required}]", []string{"b"}, state.Required, "", ""},
		{"the triggers of the one that holds", "[{check: a, trigger: t, next: in-maintenance}, {check: b, trigger: u && u, next: in-maintenance}]", []string{"b"}, state.Maintenance, "u u", ""},
		{"a target equal to current wins, and nothing is done", "[{check: a, trigger: t, next: operational}, {check: b, next: in-maintenance}]", []string{"a", "b"}, "", "", ""},
		{"an error stops its own transition", "[{check: err, next: in-maintenance}, {check: a, next: maintenance-required}]", []string{"a"}, state.Required, "", "err"},
		{"an error stops ok || failing", "[{check: a || err, next: in-maintenance}]", []string{"a"}, "", "", "err"},
		{"an error stops !failing", "[{check: '!err', next: in-maintenance}]", []string{"a"}, "", "", "err"},
		{"an error in another transition stops nothing", "[{check: a, next: maintenance-required}, {check: err && b, next: in-maintenance}]", []string{"a"}, state.Required, "", "err"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := load(t, machine("- {name: p, operational: {transitions: "+c.transitions+"}}"))
			p := only(t, config.Decide([]Node{newNode("n", "p", c.annotations...)}, Facts{}, now))
			var errs []string
			for _, considered := range p.Transitions {
				if considered.Error != "" {
					errs = append(errs, strings.TrimPrefix(considered.Error, "failed check instances: "))
				}
			}
			if got := strings.Join(errs, " "); got != c.errors {
				t.Errorf("errors of %s", got)
			}
			switch {
			case c.to == "" && p.Move != nil, c.to != "" && (p.Move == nil || p.Move.To != c.to):
				t.Errorf("%+v", p.Move)
			case p.Move != nil && strings.Join(p.Move.Triggers, " ") != c.triggers:
				t.Error(p.Move.Triggers)
			}
		})
	}
}

func TestAllChecksAreAsked(t *testing.T) {
	config := load(t, machine("- {name: p, operational: {transitions: [{check: a && err && (b || c) && a, next: in-maintenance}, {check: c, next: maintenance-required}]}}"))
	p := only(t, config.Decide([]Node{newNode("n", "p", "b")}, Facts{}, now))
	var asked []string
	for _, considered := range p.Transitions {
		for _, o := range considered.Checks {
			asked = append(asked, fmt.Sprintf("%s:%t:%t", o.Instance, o.Holds, o.Error != ""))
		}
	}
	if got := strings.Join(asked, " "); got != "a:false:false err:false:true b:true:false c:false:false c:false:false" {
		t.Error(got)
	}
}

func TestAStaggerIsTakenOnlyByATransition(t *testing.T) {
	config := load(t, machine("- {name: p, operational: {transitions: [{check: a && stagger, next: maintenance-required}]}}"))
	c := &cluster{config: config, now: now, nodes: []Node{newNode("m", "p", "a"), newNode("l", "p"), newNode("o", "p", "a")}}
	var moved, claimed []string
	for _, e := range c.step() {
		for _, p := range e.Profiles {
			if p.Move != nil {
				moved = append(moved, e.Node)
			}
			for _, claim := range p.Claims {
				claimed = append(claimed, claim.Holder)
			}
		}
	}
	if !slices.Equal(moved, []string{"m"}) || !slices.Equal(claimed, []string{"m"}) {
		t.Errorf("%v went, and %v have Leases", moved, claimed)
	}
	c.now = c.now.Add(time.Hour)
	c.step()
	if got := c.state("o", "p"); got != state.Required {
		t.Error(got)
	}
}

func TestNotificationsSharedByProfiles(t *testing.T) {
	config := load(t, machine("- {name: p, operational: {notify: once}}\n- {name: q, operational: {notify: once}}"))
	c := &cluster{config: config, now: now, nodes: []Node{newNode("n", "p--q")}}
	c.step()
	c.now = c.now.Add(time.Hour)
	e := c.step()[0]
	if len(e.Profiles[0].Notify) != 1 || e.Profiles[1].Notify != nil {
		t.Errorf("%+v", e.Profiles)
	}
	if c.step()[0].Changed {
		t.Error("it is not once")
	}
}

func TestEachNotificationThatIsDueIsReturnedOnce(t *testing.T) {
	file := strings.Replace(machine("- {name: p, operational: {transitions: [{check: a, next: in-maintenance}]}, in-maintenance: {notify: say && more && most && say}}"), "  notify:\n",
		"  notify:\n  - {type: slack, name: more, config: {hook: h, channel: c, message: m}, schedule: {type: periodic, config: {}}}\n"+
			"  - {type: slack, name: most, config: {hook: h, channel: c, message: m}, schedule: {type: periodic, config: {}}}\n", 1)
	c := &cluster{config: load(t, file), now: now, nodes: []Node{newNode("n", "p", "a")}}
	c.step()
	var due []string
	for range 3 {
		for _, d := range only(t, c.step()).Notify {
			due = append(due, d.Instance)
		}
	}
	if !slices.Equal(due, []string{"say", "more", "most"}) {
		t.Error(due)
	}
}

func TestABrokenAnnotationStopsItsNodeOnly(t *testing.T) {
	config := load(t, machine("- {name: p, operational: {transitions: [{check: a, next: in-maintenance}]}}"))
	c := &cluster{config: config, now: now, nodes: []Node{newNode("good", "p", "a"), newNode("bad", "p", "a")}}
	c.nodes[1].Object.Annotations[state.DataAnnotation] = `{"Profiles":`
	all := c.decide()
	if all[0].Node != "bad" || !strings.Contains(all[0].Problem, "cannot be read") || all[0].Profiles != nil || all[0].Changed {
		t.Errorf("%+v", all[0])
	}
	if all[1].Profiles[0].Move == nil {
		t.Errorf("%+v", all[1])
	}
}

func TestAProfileThatComesBackGoesOn(t *testing.T) {
	file := machine("- {name: p, operational: {transitions: [{check: a, next: maintenance-required}]}}\n- {name: q}")
	c := &cluster{config: load(t, file), now: now, nodes: []Node{newNode("n", "p--q", "a")}}
	c.step()
	before := c.data("n").Profiles["p"]
	c.config = load(t, machine("- {name: q}"))
	e := c.step()[0]
	if !e.Profiles[0].Unknown || e.Profiles[0].State != state.Required || e.Label != state.Operational {
		t.Errorf("%+v", e)
	}
	if got := c.data("n").Profiles["p"]; got != before {
		t.Errorf("%+v and not %+v", got, before)
	}
	c.config = load(t, file)
	if e := c.decide()[0]; e.Profiles[0].State != state.Required || e.Label != state.Required {
		t.Errorf("%+v", e)
	}
}

func TestThoseThatWaitLongestComeFirst(t *testing.T) {
	config := load(t, machine("- {name: p, maintenance-required: {transitions: [{check: one, next: in-maintenance}]}}"))
	c := &cluster{config: config, now: now, nodes: []Node{newNode("a", "p"), newNode("b", "p"), newNode("c", "p")}}
	for i, name := range []string{"c", "b", "a"} {
		c.write(Evaluation{Node: name, Label: state.Required, Data: state.Data{Profiles: map[string]state.Profile{
			"p": {Transition: now.Add(time.Duration(i) * time.Second), Current: state.Required, Previous: state.Required},
		}}})
	}
	var moved []string
	for _, e := range c.decide() {
		if e.Profiles[0].Move != nil {
			moved = append(moved, e.Node)
		}
	}
	if !slices.Equal(moved, []string{"c"}) {
		t.Error(moved)
	}
}

func TestExplain(t *testing.T) {
	config := load(t, machine("- {name: p, operational: {notify: once, transitions: [{check: a && !b, next: in-maintenance}, {check: err, next: maintenance-required}, {check: a, next: operational}]}}"))
	c := &cluster{config: config, now: now, nodes: []Node{newNode("n", "p--gone", "a", "b")}}
	e := c.decide()[0]
	c.write(e)
	h := History{}.After(e, now)
	c.now = now.Add(90 * time.Minute)
	e = c.decide()[0]
	got := strings.Join(e.Explain(h.After(e, c.now), c.now), "\n")
	want := `n is operational
  profile p: operational since 12:00:00 UTC (1h30m)
    sends once: 1m0s in the state
    to in-maintenance: a && !b: does not hold
      yes a (hasAnnotation), since 12:00:00 UTC
      yes b (hasAnnotation), since 12:00:00 UTC
    to maintenance-required: err: is not known: failed check instances: err
      ?   err (clusterSemver): label nowhere not present, since 12:00:00 UTC
    to operational: a: holds, and leads to the same state: nothing is done
      yes a (hasAnnotation), since 12:00:00 UTC
  profile gone: the configuration does not have it`
	if got != want {
		t.Errorf("%s", got)
	}
	delete(c.nodes[0].Object.Annotations, "b")
	e = c.decide()[0]
	got = strings.Join(e.Explain(h.After(e, c.now), c.now), "\n")
	for _, line := range []string{
		"    to in-maintenance: a && !b: holds, and is done", "      no  b (hasAnnotation): annotation b not present, since 13:30:00 UTC",
		"    to operational: a: holds, and one before it is done",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	broken := Evaluation{Node: "n", Problem: "why"}
	if got := broken.Explain(nil, now); !slices.Equal(got, []string{"n: why"}) {
		t.Error(got)
	}
}

func TestLogDetails(t *testing.T) {
	n := newNode("n", "")
	n.Object.Labels[state.LogDetailsLabel] = "true"
	if e := load(t, machine("")).Decide([]Node{n}, Facts{}, now)[0]; !e.LogDetails {
		t.Errorf("%+v", e)
	}
}
