package drainplan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// partyGen has few nodes and entries, so that parties meet.
func partyGen(name string, nodes []Shared) *rapid.Generator[Party] {
	return rapid.Custom(func(t *rapid.T) Party {
		p := Party{Name: name}
		for _, n := range nodes {
			if rapid.Bool().Draw(t, name+" has "+n.Name) {
				p.Nodes = append(p.Nodes, n.Name)
			}
		}
		var err error
		if p.Tiers, err = New(rapid.SliceOfNDistinct(entryGen, 1, 5, canonical).Draw(t, name), nil); err != nil {
			t.Fatal(err)
		}
		return p
	})
}

func drawCluster(t *rapid.T) *cluster {
	c := &cluster{}
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		c.nodes = append(c.nodes, Shared{Name: fmt.Sprint("n", i)})
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "parties") {
		c.parties = append(c.parties, partyGen(fmt.Sprint("p", i), c.nodes).Draw(t, "party"))
	}
	return c
}

func (c *cluster) copy() cluster {
	return cluster{parties: slices.Clone(c.parties), nodes: slices.Clone(c.nodes)}
}

// within reports whether all that a selects is selected by b.
func within(a, b []Entry) bool {
	return !slices.ContainsFunc(a, func(e Entry) bool {
		return !slices.ContainsFunc(b, func(o Entry) bool {
			return o.PodType == e.PodType && o.PodSelector == e.PodSelector && o.PodPriority >= e.PodPriority
		})
	})
}

// shares reports whether two parties have a node in common.
func shares(a, b Party) bool {
	return slices.ContainsFunc(a.Nodes, func(n string) bool { return slices.Contains(b.Nodes, n) })
}

// ready reports whether a party may go on: it and those that it meets are drained to their targets.
func (c *cluster) ready(p Party) bool {
	for _, q := range c.parties {
		for _, n := range c.nodes {
			if shares(p, q) && slices.Contains(q.Nodes, n.Name) && !n.Drained {
				return false
			}
		}
	}
	return true
}

// judge looks at a resolution beside what was before it.
func judge(t *rapid.T, before, after cluster) {
	for i, n := range after.nodes {
		was := before.nodes[i]
		if !within(was.Targets, n.Targets) {
			t.Fatalf("%s went back from %v to %v", n.Name, was.Targets, n.Targets)
		}
		if !was.Drained && !cmp.Equal(was.At, n.At) && was.At != nil {
			t.Fatalf("%s went on from %v to %v before it was drained", n.Name, *was.At, *n.At)
		}
		if n.Drained && !cmp.Equal(was.Targets, n.Targets) {
			t.Fatalf("%s counts as drained to targets that are new", n.Name)
		}
		for _, p := range after.parties {
			if !slices.Contains(p.Nodes, n.Name) || n.At == nil || p.Tier == p.Tiers.Len() {
				continue
			}
			if present := p.Tiers.Entry(p.Tier); compareEntries(*n.At, present) > 0 && !cmp.Equal(was.At, n.At) {
				t.Fatalf("%s went on to %v, and %s is at %v", n.Name, *n.At, p.Name, present)
			}
		}
	}
	for i, p := range after.parties {
		if p.Tier > before.parties[i].Tier && !before.ready(p) {
			t.Fatalf("%s went on to tier %d before the nodes were drained", p.Name, p.Tier)
		}
	}
}

func (c *cluster) judged(t *rapid.T) {
	before := c.copy()
	c.resolve()
	judge(t, before, c.copy())
}

// undrained are the nodes that some party has.
func (c *cluster) undrained() (all []int) {
	for i, n := range c.nodes {
		if !n.Drained && slices.ContainsFunc(c.parties, func(p Party) bool { return slices.Contains(p.Nodes, n.Name) }) {
			all = append(all, i)
		}
	}
	return all
}

// In whatever order nodes become empty, and while plans come and go, every plan ends.
func TestPlansInLockstepEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		c.judged(t)
		came := 0
		for steps := 0; ; steps++ {
			left := c.undrained()
			if len(left) == 0 {
				break
			}
			if steps > 1000 {
				t.Fatalf("no end: %v", c.parties)
			}
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what == 0 && came < 5:
				came++
				c.parties = append(c.parties, partyGen(fmt.Sprint("late", came), c.nodes).Draw(t, "late"))
			case what == 1 && len(c.parties) > 1:
				gone := rapid.IntRange(0, len(c.parties)-1).Draw(t, "gone")
				c.parties = slices.Delete(slices.Clone(c.parties), gone, gone+1)
			default:
				some := rapid.SliceOfDistinct(rapid.SampledFrom(left), rapid.ID[int]).Draw(t, "drained")
				if len(some) == 0 {
					some = left[:1]
				}
				for _, n := range some {
					c.nodes[n].Drained = true
				}
			}
			c.judged(t)
		}
		for _, p := range c.parties {
			if len(p.Nodes) > 0 && p.Tier < p.Tiers.Len() {
				t.Fatalf("%s has stopped at tier %d of %d with all nodes drained", p.Name, p.Tier, p.Tiers.Len())
			}
		}
	})
}

// Two plans whose tiers are in opposite orders never wait for each other for ever, also over many nodes: each round in which
// some nodes become empty brings them on, and in the end every node has been drained to all tiers of both.
func TestPlansOfOppositeTiersEnd(t *testing.T) {
	const nodes = 50
	apps := []string{"x", "y", "z"}
	entries := func(order []string) (all []Entry) {
		for i, app := range order {
			all = append(all, Entry{PodType: Default, PodPriority: int32(1000 * (i + 1)), PodSelector: "app=" + app})
		}
		return all
	}
	there, back := entries(apps), entries([]string{"z", "y", "x"})
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{}
		var names []string
		for i := range nodes {
			names = append(names, fmt.Sprint("n", i))
			c.nodes = append(c.nodes, Shared{Name: names[i]})
		}
		for i, all := range [][]Entry{there, back} {
			tiers, err := New(all, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.parties = append(c.parties, Party{Name: fmt.Sprint("p", i), Tiers: tiers, Nodes: names})
		}
		c.judged(t)
		for rounds := 0; len(c.undrained()) > 0; rounds++ {
			// A node is drained once to each entry of the plans, and a round drains one node at least.
			if rounds > nodes*2*len(apps) {
				t.Fatalf("no end: %v", c.parties)
			}
			left := c.undrained()
			for _, n := range left[:rapid.IntRange(1, len(left)).Draw(t, "drained")] {
				c.nodes[n].Drained = true
			}
			c.judged(t)
		}
		for _, p := range c.parties {
			if p.Tier != p.Tiers.Len() {
				t.Fatalf("%s has stopped at tier %d", p.Name, p.Tier)
			}
		}
		for _, n := range c.nodes {
			if !within(there, n.Targets) || !within(back, n.Targets) {
				t.Fatalf("%s was drained to %v only", n.Name, n.Targets)
			}
		}
	})
}

// What follows does not depend on the order in which nodes are named, nor on asking again.
func TestAResolutionIsOneOfTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		c.resolve()
		for range rapid.IntRange(0, 5).Draw(t, "rounds") {
			for _, n := range c.undrained() {
				c.nodes[n].Drained = rapid.Bool().Draw(t, "drained")
			}
			c.resolve()
		}
		again := c.copy()
		again.resolve()
		if diff := cmp.Diff(c.nodes, again.nodes); diff != "" {
			t.Fatalf("asked again:\n%s", diff)
		}
		for _, n := range c.undrained() {
			c.nodes[n].Drained = rapid.Bool().Draw(t, "drained at last")
		}
		other := c.copy()
		other.nodes = rapid.Permutation(c.nodes).Draw(t, "nodes")
		c.resolve()
		other.resolve()
		for i, p := range c.parties {
			if other.parties[i].Tier != p.Tier {
				t.Fatalf("%s is at tier %d, or at %d", p.Name, p.Tier, other.parties[i].Tier)
			}
		}
		for _, n := range other.nodes {
			want := c.nodes[slices.IndexFunc(c.nodes, func(o Shared) bool { return o.Name == n.Name })]
			if diff := cmp.Diff(want, n); diff != "" {
				t.Fatalf("another order of nodes:\n%s", diff)
			}
		}
	})
}

func TestMessagesOfAResolutionAreThoseOfItsNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		for range rapid.IntRange(0, 5).Draw(t, "rounds") {
			r := Resolve(c.parties, c.nodes)
			c.nodes = r.Nodes
			for i := range c.parties {
				c.parties[i].Tier = r.Tiers[i]
			}
			got, want := r.Messages(), NewMessages(c.parties, c.nodes)
			for p, party := range c.parties {
				for n, node := range c.nodes {
					if slices.Contains(party.Nodes, node.Name) && got.Of(p, n) != want.Of(p, n) {
						t.Fatalf("%s of %s: %q, or %q", party.Name, node.Name, got.Of(p, n), want.Of(p, n))
					}
				}
			}
			for _, n := range c.undrained() {
				c.nodes[n].Drained = rapid.Bool().Draw(t, "drained")
			}
		}
	})
}
