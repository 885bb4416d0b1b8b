package lockstep

import (
	"encoding/json"
	"slices"

	"drydock/api"
	"drydock/rules/schedule"
)

// input is that of a node's maintenance, but for the node: the oldest plan's.
func (n *node) input() json.RawMessage {
	fields := map[string]any{}
	first := n.holders[0]
	if len(first.Maintenance) > 0 {
		var given map[string]json.RawMessage
		if json.Unmarshal(first.Maintenance, &given) == nil {
			for _, name := range sortedKeys(given) {
				fields[name] = given[name]
			}
		}
	}
	if fields["reason"] == nil {
		fields["reason"] = "maintenance plan " + first.Name
	}
	fields["requestor"], fields["lockstep"] = api.PlansRequestor, true
	text, _ := json.Marshal(fields) // they were read from JSON
	return text
}

// isGranted tells that a node has its slot.
func (n *node) isGranted() bool {
	return n.stand >= held && n.said.Phase != "" && n.said.Phase != api.AwaitingApproval && n.said.Phase != api.Pending
}

// gangs are those with which nodes ask for their slots.
type gangs struct {
	// sizes are those of the gangs of which no node has its slot yet.
	sizes map[string]int
	// begun are the gangs of the nodes that have their slots, by the runs of the plans that want these.
	begun map[string][]string
}

// gangs are the gangs as they are now.
func (b *book) gangs() gangs {
	all := gangs{sizes: map[string]int{}, begun: map[string][]string{}}
	var over []string
	for _, n := range b.nodes {
		granted := n.isGranted()
		if n.gang != "" && n.stand != ending && len(n.holders) > 0 {
			if all.sizes[n.gang]++; granted {
				over = append(over, n.gang)
			}
		}
		if !granted || n.sent.Gang == nil {
			continue
		}
		for _, p := range n.holders {
			if !slices.Contains(all.begun[p.RunID], n.sent.Gang.Name) {
				all.begun[p.RunID] = append(all.begun[p.RunID], n.sent.Gang.Name)
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
	for _, p := range n.holders {
		begun = append(begun, g.begun[p.RunID]...)
	}
	switch size := g.sizes[n.gang]; {
	case n.sent.Gang != nil && slices.Contains(begun, n.sent.Gang.Name):
		return n.sent.Gang
	case len(begun) > 0:
		return &schedule.Gang{Name: begun[0], Size: 1}
	case size > 0:
		return &schedule.Gang{Name: n.gang, Size: size}
	default:
		return nil
	}
}
