package health

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOneControlPlaneNodeAtATime(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(9)...)
	for _, name := range []string{"n1", "n2", "n3"} {
		c.nodes[name].ControlPlane = true
	}
	c.ill("n1", 0)
	c.ill("n2", 0)
	c.ill("n5", 0)
	c.pass(301 * time.Second)
	c.wantBegun("n5")
	c.want("both wanted", slices.Equal(c.last.Intent.WantPermit, []string{"n1", "n2"}) && len(c.last.Intent.HoldPermit) == 0)
	give := func(node, why string) {
		c.watch(func(o *Observation) { o.Permit, o.PermitWhy = node, why })
	}
	give("", "etcd's disruption budget allows no disruption")
	c.wantBegun("n5")
	give("n1", "")
	c.wantBegun("n1", "n5")
	c.want("held", slices.Equal(c.last.Intent.HoldPermit, []string{"n1"}) && slices.Equal(c.last.Intent.WantPermit, []string{"n2"}))
	c.made("n1")
	c.wantPhase(PhaseRemediating, 6, 9)
	// A wrong answer has no second one begin.
	give("n2", "")
	c.wantBegun("n1", "n5")
	give("n1", "")
	c.nodes["n1"].Matches = nil
	give("n1", "")
	c.want("it is being removed", c.order("n1").Healthy)
	c.wantBegun("n1", "n5")
	c.end("n1")
	c.wantBegun("n5")
	c.want("given back", c.state.Seen.Permit == "" && len(c.last.Intent.HoldPermit) == 0)
	give("n2", "")
	c.wantBegun("n2", "n5")
	c.want("skipped is told of those that waited", c.told(EventRemediationSkipped) == 2)
}

func TestPermitThatWasGivenUpDoesNotCount(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(9)...)
	c.nodes["n1"].ControlPlane = true
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	asked := c.state.Revision
	c.well("n1")
	c.want("given up", c.last.Changed && c.state.Seen.PermitFrom == c.state.Revision)
	c.decide() // as after a restart
	c.nodes["n1"].Matches = []Match{{Index: 0, Since: c.now.Add(-time.Hour)}}
	c.watch(func(o *Observation) { o.Revision, o.Permit = asked, "n1" })
	c.wantBegun()
	c.watch(func(o *Observation) { o.Permit = "n1" })
	c.wantBegun("n1")
}

func TestPermitOfARemediationThatIsOverDoesNotCount(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(9)...)
	c.nodes["n1"].ControlPlane = true
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.watch(func(o *Observation) { o.Permit = "n1" })
	c.wantBegun("n1")
	c.made("n1")
	held := c.state.Revision
	c.well("n1")
	c.nodes["n1"].Matches = []Match{{Index: 0, Since: c.now.Add(-time.Hour)}}
	c.watch(func(o *Observation) { o.Permit = "n1" })
	c.end("n1")
	c.wantBegun()
	c.want("wanted anew", slices.Equal(c.last.Intent.WantPermit, []string{"n1"}))
	c.watch(func(o *Observation) { o.Revision, o.Permit = held, "n1" })
	c.wantBegun()
	c.watch(func(o *Observation) { o.Permit = "n1" })
	c.wantBegun("n1")
}

func TestDeletedControlPlaneNodeKeepsItsTurn(t *testing.T) {
	c := newCluster(t, specOf(t, oneTemplate), numbered(9)...)
	c.nodes["n1"].ControlPlane, c.nodes["n2"].ControlPlane = true, true
	c.ill("n1", 0)
	c.pass(301 * time.Second)
	c.watch(func(o *Observation) { o.Permit = "n1" })
	c.made("n1")
	*c.nodes["n1"] = Facts{Name: "n1", Left: true, Gone: true}
	c.ill("n2", 0)
	c.pass(301 * time.Second)
	c.watch(func(o *Observation) { o.Permit = "n2" })
	c.wantBegun("n1")
	c.want("held", slices.Equal(c.last.Intent.HoldPermit, []string{"n1"}))
}

func TestPermit(t *testing.T) {
	a := Contender{Name: "a", RunID: "ra", CreatedAt: start, Revision: 3}
	b := Contender{Name: "b", RunID: "rb", CreatedAt: start.Add(time.Second), Revision: 5}
	wants := func(c Contender, nodes ...string) Contender { c.WantPermit = nodes; return c }
	holds := func(c Contender, nodes ...string) Contender { c.HoldPermit = nodes; return c }
	at := func(c Contender, revision int) Contender { c.Revision = revision; return c }
	etcd := func(c Contender) Contender { c.Etcd = true; return c }
	given := Permitted{Check: "a", RunID: "ra", Node: "m1", Revision: 3}
	heldA := given
	heldA.Held = true
	for name, test := range map[string]struct {
		checks []Contender
		out    Permitted
		etcd   []EtcdState
		want   string
		why    string
	}{
		"nobody wants":                       {[]Contender{a, b}, Permitted{}, nil, "", ""},
		"the older check first":              {[]Contender{wants(b, "m2"), wants(a, "m1")}, Permitted{}, nil, "m1", "now m1 by health check a"},
		"one that is held":                   {[]Contender{wants(a, "m1"), holds(b, "m2")}, Permitted{}, nil, "m2", "now m2 by health check b"},
		"given, not answered":                {[]Contender{wants(b, "m2"), wants(a, "m1")}, given, nil, "m1", "m1"},
		"given, still wanted":                {[]Contender{wants(b, "m2"), wants(at(a, 4), "m1")}, given, nil, "m1", "m1"},
		"given, held":                        {[]Contender{wants(b, "m2"), holds(at(a, 4), "m1")}, given, nil, "m1", "m1"},
		"given up":                           {[]Contender{wants(b, "m2"), at(a, 4)}, given, nil, "m2", "m2"},
		"over":                               {[]Contender{wants(b, "m2"), at(a, 4)}, heldA, nil, "m2", "m2"},
		"over and wanted again":              {[]Contender{etcd(wants(at(a, 4), "m1"))}, heldA, []EtcdState{{Node: "m1", Budgets: 1, Guard: "True"}}, "", "may be in order"},
		"the check is gone":                  {[]Contender{wants(b, "m2")}, given, nil, "m2", "m2"},
		"begun anew and holds":               {[]Contender{{Name: "a", RunID: "other", Revision: 1, HoldPermit: []string{"m1"}}, wants(b, "m2")}, given, nil, "m1", "m1"},
		"etcd says no":                       {[]Contender{etcd(wants(a, "m1"))}, Permitted{}, []EtcdState{{Node: "m1", Budgets: 1, Guard: "True"}}, "", "allows no disruption"},
		"etcd was not asked":                 {[]Contender{etcd(wants(a, "m1"))}, Permitted{}, nil, "", "has not been looked at"},
		"etcd says no of one, yes of others": {[]Contender{etcd(wants(a, "m1", "m2"))}, Permitted{}, []EtcdState{{Node: "m1", Budgets: 1, Guard: "True"}, {Node: "m2", Budgets: 1, Guard: "False"}}, "m2", "m2"},
		"of one held etcd is not asked":      {[]Contender{etcd(holds(at(a, 4), "m1"))}, given, nil, "m1", "m1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := Permit(test.checks, test.out, test.etcd)
			if got.Node != test.want || !strings.Contains(why, test.why) {
				t.Errorf("%+v, %q", got, why)
			}
		})
	}
}

func TestEtcdAllows(t *testing.T) {
	for _, test := range []struct {
		state EtcdState
		want  bool
	}{
		{EtcdState{Budgets: 0}, false}, {EtcdState{Budgets: 2, DisruptionsAllowed: 2}, false},
		{EtcdState{Budgets: 1, DisruptionsAllowed: 1}, true}, {EtcdState{Budgets: 1, Guard: "True"}, false}, {EtcdState{Budgets: 1, Guard: "Unknown"}, false},
		{EtcdState{Budgets: 1, Guard: "False"}, true}, {EtcdState{Budgets: 1, Guard: "Missing"}, true}, {EtcdState{Budgets: 1}, true},
	} {
		if got, why := EtcdAllows(test.state); got != test.want || got == (why != "") {
			t.Errorf("%+v: %t, %q", test.state, got, why)
		}
	}
}

func TestOverlap(t *testing.T) {
	checks := []Contender{{Name: "c", CreatedAt: start.Add(2 * time.Second)}, {Name: "b", CreatedAt: start.Add(time.Second)}, {Name: "a", CreatedAt: start}, {Name: "d", CreatedAt: start}}
	refused := Overlap(checks, []Membership{{"n9", []string{"a", "b"}}, {"n2", []string{"b", "a"}}, {"n3", []string{"b", "c"}}, {"n4", []string{"d"}}})
	if len(refused) != 1 || refused[0].Check != "b" || refused[0].With != "a" || refused[0].Node != "n2" {
		t.Fatalf("%+v", refused)
	}
	for _, word := range []string{"a", "b", "n2"} {
		if !strings.Contains(refused[0].Why, word) {
			t.Errorf("%q is not in %q", word, refused[0].Why)
		}
	}
	if refused := Overlap(checks, nil); len(refused) != 0 {
		t.Errorf("%+v", refused)
	}
}
