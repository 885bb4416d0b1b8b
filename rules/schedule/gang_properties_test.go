package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// requestGang asks for several nodes at once.
func (s *simulation) requestGang(t *rapid.T) {
	gang := &Gang{Name: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "gang"), Size: rapid.IntRange(1, 5).Draw(t, "size")}
	requestor, priority := personGen.Draw(t, "requestor"), rapid.IntRange(-1, 1).Draw(t, "priority")
	for range gang.Size {
		s.requests++
		s.pending = append(s.pending, Request{
			ID: fmt.Sprint("r", s.requests), Node: nodeGen.Draw(t, "node"), Requestor: requestor, Priority: priority, Created: epoch, Gang: gang,
		})
	}
}

// checkWhole: of a gang that holds nothing all members are granted or none, but for those whose node is not there or is
// another member's; and no less than have to have asked.
func (s *simulation) checkWhole(t *rapid.T, d Decision) {
	granted, refused := map[string]int{}, map[string]int{}
	size := map[string]int{}
	member := func(r Request) bool { return r.Gang != nil && !r.Remediation }
	for _, r := range s.pending {
		if member(r) {
			size[r.Gang.Name] = max(size[r.Gang.Name], r.Gang.Size)
		}
	}
	for _, r := range d.Grants {
		if member(r) {
			granted[r.Gang.Name]++
		}
	}
	for _, r := range d.Refused {
		if member(r.Request) && r.Code != NodeMissing && r.Code != Outranked {
			refused[r.Request.Gang.Name]++
		}
	}
	for name, n := range granted {
		inPart := slices.ContainsFunc(s.granted, func(g Grant) bool { return g.Gang == name && !g.Remediation })
		if !inPart && (refused[name] > 0 || n < size[name]) {
			t.Fatalf("gang %s of %d: %d are granted, %d refused", name, size[name], n, refused[name])
		}
	}
}

// course is a cluster whose maintenances end after some rounds.
type course struct {
	*simulation
	// left are the rounds that a holder has left, by node.
	left map[string]int
	// takes is how long the maintenance of a request takes, in rounds.
	takes func(Request) int
	// beyond are the broken nodes that no maintenance repairs: nobody asks for them without end.
	beyond map[string]bool
}

// newCourse has nodes with labels, some of them broken for good, and limits.
func newCourse(t *rapid.T) *course {
	s, beyond := &simulation{limits: drawLimits(t)}, map[string]bool{}
	for i := range rapid.IntRange(4, 12).Draw(t, "nodes") {
		s.addNode(t, worker(i+1))
		beyond[worker(i+1)] = s.nodes[i].failed && rapid.Bool().Draw(t, "beyond repair")
	}
	return &course{simulation: s, beyond: beyond, left: map[string]int{}, takes: func(r Request) int { return 1 + len(r.ID)%3 + int(r.Node[len(r.Node)-1])%3 }}
}

// look observes the cluster, with facts on all nodes.
func (c *course) look() {
	grouper, err := NewGrouper(c.limits.Groups)
	if err != nil {
		panic(err)
	}
	c.snapshot = slices.Clone(c.nodes)
	o := &Observation{Groups: map[string]GroupCount{}, Facts: map[string]NodeFacts{}, Nodes: len(c.nodes)}
	for _, n := range c.nodes {
		facts := NodeFacts{Unavailable: n.failed, Groups: grouper.Keys(n.labels)}
		o.Facts[n.name] = facts
		down := 0
		if n.failed {
			down = 1
		}
		o.Unavailable += down
		for _, key := range facts.Groups {
			o.Groups[key] = GroupCount{Nodes: o.Groups[key].Nodes + 1, Unavailable: o.Groups[key].Unavailable + down}
		}
	}
	c.observed = o
}

// round lets maintenances end, and decides.
func (c *course) round() Decision {
	c.granted = slices.DeleteFunc(slices.Clone(c.granted), func(g Grant) bool {
		c.left[g.Node]--
		if c.left[g.Node] > 0 {
			return false
		}
		for i, n := range c.nodes {
			if n.name == g.Node && !c.beyond[n.name] {
				c.nodes[i].failed = false
			}
		}
		return true
	})
	c.look()
	d := Decide(c.input())
	for _, r := range d.Grants {
		c.granted = append(c.granted, grantOf(r))
		c.left[r.Node] = c.takes(r)
		c.pending = slices.DeleteFunc(slices.Clone(c.pending), func(p Request) bool { return p.ID == r.ID })
	}
	return d
}

// ask queues a request of a requestor of its own.
func (c *course) ask(id, node string, priority int, gang *Gang) {
	c.pending = append(c.pending, Request{ID: id, Node: node, Requestor: "by-" + id, Priority: priority, Created: epoch.Add(time.Duration(c.requests)), Gang: gang})
	c.requests++
}

// askGang queues a gang of some nodes.
func (c *course) askGang(t *rapid.T, name string, priority int) (size int) {
	nodes := rapid.Permutation(c.names()).Draw(t, "nodes of "+name)
	size = rapid.IntRange(2, min(5, len(nodes))).Draw(t, "size of "+name)
	for _, node := range nodes[:size] {
		c.ask(name+"-"+node, node, priority, &Gang{Name: name, Size: size})
	}
	return size
}

func (c *course) names() (all []string) {
	for _, n := range c.nodes {
		all = append(all, n.name)
	}
	return all
}

// alone reports whether some requests are granted where nothing else goes on.
func (c *course) alone(ids func(Request) bool) bool {
	c.look()
	in := c.input()
	in.Granted, in.Pending = nil, slices.DeleteFunc(slices.Clone(in.Pending), func(r Request) bool { return !ids(r) })
	return len(Decide(in).Refused) == 0
}

// outranked reports whether some requests wait for a node for which another goes first that waits for a repair.
func (c *course) outranked(waits func(Request) bool) bool {
	return slices.ContainsFunc(c.pending, func(above Request) bool {
		return above.Priority == 3 && slices.ContainsFunc(c.pending, func(r Request) bool { return waits(r) && r.Node == above.Node })
	})
}

func inGang(name string) func(Request) bool {
	return func(r Request) bool { return r.Gang != nil && r.Gang.Name == name }
}

// stream asks for a node again and again, with the lowest rank.
func (c *course) stream(t *rapid.T, round int) {
	for _, node := range c.names() {
		waits := slices.ContainsFunc(c.pending, func(r Request) bool { return r.Node == node && r.Priority < -1 })
		if !waits && !c.beyond[node] && rapid.IntRange(0, 2).Draw(t, "asks") > 0 {
			c.ask(fmt.Sprintf("stream-%d-%s", round, node), node, -2, nil)
		}
	}
}

// TestNobodyStarves: gangs that fit are granted, and so is what ranks below them, while others ask without end. A gang
// that does not fit because of broken nodes keeps nobody waiting.
func TestNobodyStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCourse(t)
		c.limits.Quotas = Quotas{}
		gangs := slices.Clone([]string{"x", "y", "z"}[:rapid.IntRange(1, 3).Draw(t, "gangs")])
		for _, name := range gangs {
			c.askGang(t, name, rapid.IntRange(0, 2).Draw(t, "priority of "+name))
		}
		for i, node := range rapid.SliceOfN(rapid.SampledFrom(c.names()), 0, 2).Draw(t, "nodes above") {
			c.ask(fmt.Sprint("above-", i), node, 3, nil)
		}
		below := rapid.SampledFrom(c.names()).Draw(t, "node below")
		c.ask("below", below, -1, nil)
		for round := range 10 {
			c.stream(t, -round) // those that are in progress when the gangs ask
		}
		waiting := append(gangs, "below")
		for round := range 150 {
			c.stream(t, round)
			for _, r := range c.round().Grants {
				waiting = slices.DeleteFunc(waiting, func(name string) bool { return name == r.ID || inGang(name)(r) })
			}
			if len(waiting) == 0 {
				return
			}
		}
		for _, name := range waiting {
			waits := func(r Request) bool { return r.ID == name || inGang(name)(r) }
			if c.alone(waits) && !c.outranked(waits) {
				t.Fatalf("%s still waits; nodes %+v; held %v\n%s", name, c.nodes, c.granted, strings.Join(lines(Decide(c.input())), "\n"))
			}
		}
	})
}

// TestNothingBelowDelaysAGang: it is granted in the same round as where nobody of lower rank asks.
func TestNothingBelowDelaysAGang(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCourse(t)
		for _, n := range c.nodes {
			c.beyond[n.name] = n.failed // to repair a node changes what the gang needs
		}
		for _, node := range c.names() {
			if rapid.IntRange(0, 2).Draw(t, "held") == 0 {
				c.granted = append(c.granted, Grant{RequestID: "held-" + node, Node: node, Requestor: "by-held"})
				c.left[node] = rapid.IntRange(1, 6).Draw(t, "left")
			}
		}
		c.askGang(t, "x", 0)
		c.look()
		if !c.model().fitsLater(c.pending) {
			t.Skip("it waits for nodes to be repaired")
		}
		undisturbed := &course{simulation: new(simulation), left: map[string]int{}, takes: c.takes, beyond: c.beyond}
		*undisturbed.simulation = *c.simulation
		undisturbed.nodes = slices.Clone(c.nodes)
		for node, left := range c.left {
			undisturbed.left[node] = left
		}
		for round := range 20 {
			c.stream(t, round)
			alone, with := undisturbed.round(), c.round()
			goes := slices.ContainsFunc(with.Grants, inGang("x"))
			if len(alone.Grants) > 0 != goes {
				t.Fatalf("round %d: granted %t, without those of lower rank %t", round, goes, !goes)
			}
			if goes {
				return
			}
		}
	})
}

// TestGangsHoldUpNobodyOfHigherRank: whatever ranks above all gangs is answered as if there were none.
func TestGangsHoldUpNobodyOfHigherRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCourse(t)
		for i, node := range rapid.SliceOfN(rapid.SampledFrom(c.names()), 1, 8).Draw(t, "above") {
			c.ask(fmt.Sprint("above-", i), node, 1, nil)
		}
		c.look()
		want := Decide(c.input())
		for _, name := range []string{"x", "y"} {
			c.askGang(t, name, 0)
		}
		got := Decide(c.input())
		above := func(r Request) bool { return r.Priority != 1 }
		if fmt.Sprint(slices.DeleteFunc(got.Grants, above)) != fmt.Sprint(want.Grants) {
			t.Fatalf("granted\n%v, without gangs\n%v", got.Grants, want.Grants)
		}
		refused := slices.DeleteFunc(got.Refused, func(r Refusal) bool { return above(r.Request) })
		if fmt.Sprint(refused) != fmt.Sprint(want.Refused) {
			t.Fatalf("refused\n%v, without gangs\n%v", refused, want.Refused)
		}
	})
}
