package drainplan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tiersOf makes a plan of entries that have no standard ones added.
func tiersOf(t *testing.T, entries ...Entry) Plan {
	t.Helper()
	p, err := New(entries, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func upToPriority(priority int32) Entry { return Entry{PodType: Default, PodPriority: priority} }

func daemonSets(priority int32) Entry { return Entry{PodType: DaemonSet, PodPriority: priority} }

// cluster is what a test tells of nodes and plans as time passes.
type cluster struct {
	t       *testing.T
	parties []Party
	nodes   []Shared
}

func (c *cluster) resolve() {
	r := Resolve(c.parties, c.nodes)
	for i := range c.parties {
		c.parties[i].Tier = r.Tiers[i]
	}
	c.nodes = r.Nodes
}

func (c *cluster) node(name string) int {
	i := slices.IndexFunc(c.nodes, func(n Shared) bool { return n.Name == name })
	if i < 0 {
		c.t.Fatalf("no node %s", name)
	}
	return i
}

func (c *cluster) drained(names ...string) {
	for _, name := range names {
		c.nodes[c.node(name)].Drained = true
	}
	c.resolve()
}

// status is what a plan tells of one of its nodes.
type status struct {
	Plan, Node, Message string
	Targets             []Entry
}

func (c *cluster) statuses() (all []status) {
	m := NewMessages(c.parties, c.nodes)
	for p, party := range c.parties {
		for _, name := range party.Nodes {
			n := c.node(name)
			all = append(all, status{party.Name, name, m.Of(p, n), c.nodes[n].Targets})
		}
	}
	return all
}

func (c *cluster) expect(when string, want ...status) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.statuses()); diff != "" {
		c.t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// The example of KEP-4212, "Pod Selection and DrainTargets Example", with every status that it prints, and to its end.
func TestTheExampleOfTheKEP(t *testing.T) {
	c := &cluster{
		t: t,
		parties: []Party{
			{Name: "maintenance-a", Tiers: tiersOf(t, upToPriority(5000), upToPriority(15000), daemonSets(3000)), Nodes: []string{"one", "two"}},
			{Name: "maintenance-b", Tiers: tiersOf(t, upToPriority(10000), upToPriority(15000), daemonSets(4000)), Nodes: []string{"one", "three"}},
		},
		nodes: []Shared{{Name: "one"}, {Name: "two"}, {Name: "three"}},
	}
	to := func(priority int32) []Entry { return []Entry{upToPriority(priority)} }

	c.resolve()
	c.expect("both begin",
		status{"maintenance-a", "one", "Evacuating", to(5000)},
		status{"maintenance-a", "two", "Evacuating", to(5000)},
		status{"maintenance-b", "one", "Evacuating (limited by maintenance-a)", to(5000)},
		status{"maintenance-b", "three", "Evacuating", to(10000)},
	)
	c.drained("three")
	c.expect("three is drained",
		status{"maintenance-a", "one", "Evacuating", to(5000)},
		status{"maintenance-a", "two", "Evacuating", to(5000)},
		status{"maintenance-b", "one", "Evacuating (limited by maintenance-a)", to(5000)},
		status{"maintenance-b", "three", "Waiting for node one.", to(10000)},
	)
	c.drained("one")
	c.expect("one is drained",
		status{"maintenance-a", "one", "Waiting for node two.", to(5000)},
		status{"maintenance-a", "two", "Evacuating", to(5000)},
		status{"maintenance-b", "one", "Waiting for node two (maintenance-a).", to(5000)},
		status{"maintenance-b", "three", "Waiting for node two (maintenance-a).", to(10000)},
	)
	c.drained("two")
	c.expect("two is drained",
		status{"maintenance-a", "one", "Evacuating (limited by maintenance-b)", to(10000)},
		status{"maintenance-a", "two", "Evacuating", to(15000)},
		status{"maintenance-b", "one", "Evacuating", to(10000)},
		status{"maintenance-b", "three", "Waiting for node one.", to(10000)},
	)
	c.parties = append(c.parties, Party{
		Name: "maintenance-c", Tiers: tiersOf(t, upToPriority(2000), upToPriority(15000)), Nodes: []string{"one", "four"},
	})
	c.nodes = append(c.nodes, Shared{Name: "four"})
	c.resolve()
	c.expect("maintenance-c begins",
		status{"maintenance-a", "one", "Evacuating (limited by maintenance-c)", to(10000)},
		status{"maintenance-a", "two", "Evacuating", to(15000)},
		status{"maintenance-b", "one", "Evacuating", to(10000)},
		status{"maintenance-b", "three", "Waiting for node one.", to(10000)},
		status{"maintenance-c", "one", "Evacuating (fast-forwarded by older maintenance-b)", to(10000)},
		status{"maintenance-c", "four", "Evacuating", to(2000)},
	)
	c.drained("one", "two", "four")
	c.expect("all are drained: b and c go on to 15000, where a waits for one",
		status{"maintenance-a", "one", "Evacuating", to(15000)},
		status{"maintenance-a", "two", "Waiting for node one.", to(15000)},
		status{"maintenance-b", "one", "Evacuating", to(15000)},
		status{"maintenance-b", "three", "Evacuating", to(15000)},
		status{"maintenance-c", "one", "Evacuating", to(15000)},
		status{"maintenance-c", "four", "Evacuating", to(15000)},
	)
	c.drained("one", "three", "four")
	last := func(priority int32) []Entry { return []Entry{upToPriority(15000), daemonSets(priority)} }
	c.expect("a and b come to their DaemonSets, c is done",
		status{"maintenance-a", "one", "Evacuating", last(3000)},
		status{"maintenance-a", "two", "Evacuating", last(3000)},
		status{"maintenance-b", "one", "Evacuating (limited by maintenance-a)", last(3000)},
		status{"maintenance-b", "three", "Evacuating", last(4000)},
		status{"maintenance-c", "one", "Evacuating", last(3000)},
		status{"maintenance-c", "four", "Drained", to(15000)},
	)
	c.drained("one", "two", "three")
	c.drained("one")
	c.expect("the end",
		status{"maintenance-a", "one", "Drained", last(4000)},
		status{"maintenance-a", "two", "Drained", last(3000)},
		status{"maintenance-b", "one", "Drained", last(4000)},
		status{"maintenance-b", "three", "Drained", last(4000)},
		status{"maintenance-c", "one", "Drained", last(4000)},
		status{"maintenance-c", "four", "Drained", to(15000)},
	)
}

// "PodTypes and Label Selectors Progression".
func TestTheProgressionOfTheKEP(t *testing.T) {
	postgres := func(priority int32) Entry {
		return Entry{PodType: Default, PodPriority: priority, PodSelector: "app=postgres"}
	}
	const highest = 2147483647
	c := &cluster{
		t: t,
		parties: []Party{{
			Name: "five", Nodes: []string{"five"},
			Tiers: tiersOf(t, upToPriority(1000), postgres(2000), upToPriority(highest), daemonSets(1000), daemonSets(highest),
				Entry{PodType: Static, PodPriority: highest}),
		}},
		nodes: []Shared{{Name: "five"}},
	}
	c.resolve()
	all := []Entry{upToPriority(highest), postgres(highest)}
	for i, want := range [][]Entry{
		{upToPriority(1000), postgres(1000)},
		{upToPriority(1000), postgres(2000)},
		all,
		append(slices.Clone(all), daemonSets(1000)),
		append(slices.Clone(all), daemonSets(highest)),
		append(slices.Clone(all), daemonSets(highest), Entry{PodType: Static, PodPriority: highest}),
	} {
		if diff := cmp.Diff(want, c.nodes[0].Targets); diff != "" {
			t.Errorf("targets %d (-want +got):\n%s", i, diff)
		}
		c.drained("five")
	}
	if p := c.parties[0]; p.Tier != p.Tiers.Len() {
		t.Errorf("the plan is at tier %d of %d", p.Tier, p.Tiers.Len())
	}
}

func TestANodeThatComesLaterIsDrainedTierByTier(t *testing.T) {
	c := &cluster{
		t: t,
		parties: []Party{{
			Name: "p", Nodes: []string{"one"}, Tiers: tiersOf(t, upToPriority(1), upToPriority(2), upToPriority(3)),
		}},
		nodes: []Shared{{Name: "one"}},
	}
	c.resolve()
	c.drained("one")
	c.drained("one")
	c.parties[0].Nodes, c.nodes = []string{"one", "late"}, append(c.nodes, Shared{Name: "late"})
	c.resolve()
	for priority := int32(1); priority <= 3; priority++ {
		want := []status{
			{"p", "one", "Evacuating", []Entry{upToPriority(3)}}, {"p", "late", "Evacuating", []Entry{upToPriority(priority)}},
		}
		if diff := cmp.Diff(want, c.statuses()); diff != "" {
			t.Errorf("priority %d (-want +got):\n%s", priority, diff)
		}
		c.drained("late")
	}
	c.drained("one")
	if c.parties[0].Tier != 3 {
		t.Errorf("the plan is at tier %d", c.parties[0].Tier)
	}
}
