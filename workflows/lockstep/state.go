package lockstep

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/plan"
	"drydock/rules/schedule"
)

// packed is the inventory as it goes to the next run. Plans name their nodes by bits, and what many nodes have in common is written once:
// 15,000 nodes of 50 plans have to fit.
type packed struct {
	// Names are those of all nodes that are known or named.
	Names     []string          `json:"names,omitempty"`
	Plans     []packedPlan      `json:"plans,omitempty"`
	Waiting   []packedPlan      `json:"waiting,omitempty"`
	Nodes     []packedNode      `json:"nodes,omitempty"`
	Shapes    []shape           `json:"shapes,omitempty"`
	Lists     []json.RawMessage `json:"lists,omitempty"`
	Silent    map[string]string `json:"silent,omitempty"`
	Completed []completed       `json:"completed,omitempty"`
}

// packedPlan is a plan without nodes: those are the bits of Of, in the order of names. Pending are the bits of those of which it has still to
// be told.
type packedPlan struct {
	planState
	Of      []byte `json:"of"`
	Pending []byte `json:"pending,omitempty"`
}

type packedNode struct {
	Name  int `json:"n"`
	Shape int `json:"s,omitempty"`
	nodeState
	Revision   int `json:"v,omitempty"`
	Pending    int `json:"p,omitempty"`
	Evacuating int `json:"e,omitempty"`
}

// shape is what many nodes have in common. Lists are at their places from 1 on; 0 is none.
type shape struct {
	Targets int             `json:"targets,omitempty"`
	At      drainplan.Entry `json:"at,omitzero"`
	By      int             `json:"by,omitempty"`
	Gang    string          `json:"gang,omitempty"`
	Made    string          `json:"made,omitempty"`
	Of      int             `json:"of,omitempty"`
	Sent    schedule.Gang   `json:"sent,omitzero"`
	Plans   int             `json:"plans,omitempty"`
	Waits   string          `json:"waits,omitempty"`
	Waiting string          `json:"waiting,omitempty"`
	Last    bool            `json:"last,omitempty"`
	Further bool            `json:"further,omitempty"`
	Phase   api.Phase       `json:"phase,omitempty"`
}

// lists are lists that are written once. Most of those that are equal are the same list, so that few are compared.
type lists struct {
	all   []json.RawMessage
	same  map[span]int
	texts map[string]int
}

// span is a list by the pointer to its first entry.
type span struct {
	first  any
	length int
}

func placeOf[T any](l *lists, list []T) int {
	if len(list) == 0 {
		return 0
	}
	key := span{&list[0], len(list)}
	place, known := l.same[key]
	if !known {
		text, _ := json.Marshal(list) // of texts and numbers
		if place, known = l.texts[string(text)]; !known {
			l.all = append(l.all, text)
			place = len(l.all)
			l.texts[string(text)] = place
		}
		l.same[key] = place
	}
	return place
}

// Opaque implements handover.Opaque.
func (inventory) Opaque() {}

// MarshalJSON implements json.Marshaler.
func (v *inventory) MarshalJSON() ([]byte, error) {
	p := packed{Names: v.names(), Silent: v.silent, Completed: v.completed}
	inputs := 0
	for _, one := range v.plans {
		inputs += len(one.Maintenance)
	}
	var waiting []string
	for _, in := range v.waiting { // plans repeat those that are too many
		names := v.names(append(slices.Clone(waiting), in.Nodes...)...)
		if inputs += len(in.Maintenance); inputs <= maxInputs && len(names) <= plan.MaxNodes {
			p.Names, waiting = names, append(waiting, in.Nodes...)
			p.Waiting = append(p.Waiting, packedPlan{planState: planState{PlanIntent: in}})
		}
	}
	if len(v.plans) > 0 {
		defer func(before situation) { v.now = before }(v.now)
		v.now = v.present()
		v.sumNodes()
	}
	for _, one := range v.plans {
		packed := packedPlan{planState: one.planState}
		if !one.All {
			changed, words := one.differences(v.sums(one))
			packed.Pending = bits(append(changed, words...), len(one.Nodes))
		}
		p.Plans = append(p.Plans, packed)
	}
	for _, all := range [][]packedPlan{p.Plans, p.Waiting} {
		for i := range all {
			all[i].Of, all[i].Nodes = bitsOf(all[i].Nodes, p.Names), nil
		}
	}
	l, shapes := &lists{same: map[span]int{}, texts: map[string]int{}}, map[shape]int{}
	for _, n := range v.nodes {
		if n.gone {
			continue
		}
		s := n.shape(l)
		if _, known := shapes[s]; !known {
			shapes[s] = len(p.Shapes)
			p.Shapes = append(p.Shapes, s)
		}
		name, _ := slices.BinarySearch(p.Names, n.name)
		p.Nodes = append(p.Nodes, packedNode{
			Name: name, Shape: shapes[s], nodeState: n.nodeState, Revision: n.target.Revision, Pending: n.progress.Pending, Evacuating: n.progress.Evacuating,
		})
	}
	p.Lists = l.all
	return json.Marshal(p)
}

// names are those of all nodes that are known or named, in their order, and more.
func (v *inventory) names(more ...string) []string {
	for _, n := range v.nodes {
		more = append(more, n.name)
	}
	for _, p := range v.plans {
		for i, name := range p.Nodes {
			// Its members may be those of its intent before, or be none of the nodes any more.
			if len(p.members) != len(p.Nodes) || p.member(i) == nil || p.member(i).name != name {
				more = append(more, name)
			}
		}
	}
	slices.Sort(more)
	return slices.Compact(more)
}

// bits are those of some places of a list; nil are none.
func bits(places []int, length int) []byte {
	if len(places) == 0 {
		return nil
	}
	all := make([]byte, (length+7)/8)
	for _, i := range places {
		all[i/8] |= 1 << (i % 8)
	}
	return all
}

// bitsOf are the bits of some of the names. Both are in order.
func bitsOf(some, names []string) []byte {
	places, at := make([]int, 0, len(some)), 0
	for _, name := range some {
		for names[at] != name {
			at++
		}
		places = append(places, at)
	}
	return bits(places, len(names))
}

func isSet(bits []byte, i int) bool { return i/8 < len(bits) && bits[i/8]&(1<<(i%8)) != 0 }

func (n *node) shape(l *lists) shape {
	s := shape{
		Targets: placeOf(l, n.target.Targets), By: placeOf(l, n.by), Of: placeOf(l, n.of), Plans: placeOf(l, n.target.Plans), Gang: n.gang, Made: n.made,
		Waits: n.target.Waits, Waiting: n.progress.Waiting, Last: n.target.Last, Further: n.target.Further, Phase: n.progress.Phase,
	}
	if n.at != nil {
		s.At = *n.at
	}
	if n.target.Gang != nil {
		s.Sent = *n.target.Gang
	}
	return s
}

// node is a node that has the shape.
func (s shape) node(all []json.RawMessage) (n node, err error) {
	read := func(place int, into any) {
		if place > 0 {
			err = errors.Join(err, json.Unmarshal(all[place-1], into))
		}
	}
	n = node{gang: s.Gang, made: s.Made, group: &group{}}
	n.target = api.NodeTarget{Waits: s.Waits, Last: s.Last, Further: s.Further}
	n.progress = api.NodeProgress{Phase: s.Phase, Waiting: s.Waiting}
	read(s.Targets, &n.target.Targets)
	read(s.Plans, &n.target.Plans)
	read(s.By, &n.by)
	read(s.Of, &n.of)
	if s.At != (drainplan.Entry{}) {
		n.at = &s.At
	}
	if s.Sent != (schedule.Gang{}) {
		n.target.Gang = &s.Sent
	}
	return n, err
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *inventory) UnmarshalJSON(data []byte) error {
	var p packed
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*v = inventory{silent: p.Silent, completed: p.Completed}
	for _, all := range [][]packedPlan{p.Plans, p.Waiting} {
		for i := range all {
			for j, name := range p.Names {
				if isSet(all[i].Of, j) {
					all[i].Nodes = append(all[i].Nodes, name)
				}
			}
		}
	}
	for _, one := range p.Waiting {
		v.waiting = append(v.waiting, one.PlanIntent)
	}
	for _, one := range p.Plans {
		tiers, err := drainplan.New(one.Tiers, nil)
		if err != nil {
			return fmt.Errorf("plan %s: %w", one.Name, err)
		}
		p := &planEntry{planState: one.planState, tiers: tiers, settings: plan.Settings(one.Maintenance)}
		for i := range p.Nodes {
			if isSet(one.Pending, i) {
				p.pending = append(p.pending, i)
			}
		}
		v.plans = append(v.plans, p)
	}
	like := make([]node, len(p.Shapes))
	for i, s := range p.Shapes {
		var err error
		if like[i], err = s.node(p.Lists); err != nil {
			return err
		}
	}
	for _, one := range p.Nodes {
		n := v.add(p.Names[one.Name])
		name := n.name
		*n = like[one.Shape]
		n.name, n.nodeState, n.target.Run, n.target.Revision = name, one.nodeState, one.Run, one.Revision
		n.progress.Node, n.progress.RunID, n.progress.Pending, n.progress.Evacuating = name, one.Run, one.Pending, one.Evacuating
	}
	v.changed, v.ungrouped = true, true
	v.regroup()
	v.assumeSent()
	return nil
}
