package lockstep

import (
	"encoding/json"

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

// gangs are the sizes of the gangs that no node of has a slot yet.
func (b *book) gangs() map[string]*schedule.Gang {
	all, over := map[string]*schedule.Gang{}, map[string]bool{}
	for _, n := range b.nodes {
		switch {
		case n.gang == "" || n.stand == ending || len(n.holders) == 0:
		case n.isGranted():
			over[n.gang] = true
		case all[n.gang] == nil:
			all[n.gang] = &schedule.Gang{Name: n.gang, Size: 1}
		default:
			all[n.gang].Size++
		}
	}
	for _, name := range sortedKeys(over) {
		all[name] = nil
	}
	return all
}
