package lockstep

import (
	"slices"

	"drydock.dev/drydock/rules/schedule"
)

// gangs are those with which nodes ask for their slots.
type gangs struct {
	// sizes are those of the gangs of which no node has its slot yet.
	sizes map[string]int
	// begun are the gangs of the nodes that have their slots, by the plans that want these.
	begun map[*planEntry][]string
}

func (v *inventory) gangs() gangs {
	type ask struct {
		group *group
		gang  string
	}
	all, known := gangs{sizes: map[string]int{}, begun: map[*planEntry][]string{}}, map[ask]bool{}
	var over []string
	for _, n := range v.nodes {
		granted := n.isGranted()
		if n.gang != "" && n.Stand != ending && n.isWanted() {
			if all.sizes[n.gang]++; granted {
				over = append(over, n.gang)
			}
		}
		if !granted || n.target.Gang == nil || known[ask{n.group, n.target.Gang.Name}] {
			continue
		}
		known[ask{n.group, n.target.Gang.Name}] = true
		for _, p := range n.group.plans {
			if !slices.Contains(all.begun[p], n.target.Gang.Name) {
				all.begun[p] = append(all.begun[p], n.target.Gang.Name)
			}
		}
	}
	for _, name := range over {
		delete(all.sizes, name)
	}
	return all
}

// of is the gang with which a node asks for its slot. One of a plan other nodes of which have theirs names the gang of those, whether
// that is the plan's or that of one which it meets: what is kept free for a third would wait for them, and they for this node.
func (g gangs) of(n *node) *schedule.Gang {
	var begun []string
	for _, p := range n.group.plans {
		begun = append(begun, g.begun[p]...)
	}
	switch size := g.sizes[n.gang]; {
	case n.target.Gang != nil && slices.Contains(begun, n.target.Gang.Name):
		return n.target.Gang
	case len(begun) > 0:
		return &schedule.Gang{Name: begun[0], Size: 1}
	case size > 0:
		return &schedule.Gang{Name: n.gang, Size: size}
	default:
		return nil
	}
}
