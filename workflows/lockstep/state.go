package lockstep

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
)

// packed is the inventory as it goes to the next run. Plans name their nodes by bits, and lists that many nodes have in common are written
// once: 15,000 nodes of 50 plans have to fit.
type packed struct {
	// Names are those of all nodes that are known or named.
	Names     []string       `json:"names,omitempty"`
	Plans     []packedPlan   `json:"plans,omitempty"`
	Waiting   []packedPlan   `json:"waiting,omitempty"`
	Nodes     []packedNode   `json:"nodes,omitempty"`
	Shapes    []shape        `json:"shapes,omitempty"`
	Lists     []lists        `json:"lists,omitempty"`
	Silent    []api.HeldPlan `json:"silent,omitempty"`
	Completed []completed    `json:"completed,omitempty"`
}

// packedPlan is a plan whose nodes are the bits of Of, in the order of names. Pending are the bits of those of which it has still to be
// sent something.
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

// shape is what many nodes have in common beside the numbers of a packedNode. Lists is a place.
type shape struct {
	Lists    int              `json:"lists,omitempty"`
	Gang     string           `json:"gang,omitempty"`
	Made     string           `json:"made,omitempty"`
	Target   api.NodeTarget   `json:"target"`
	Progress api.NodeProgress `json:"progress"`
}

// lists are those of a node, which thousands may have in common.
type lists struct {
	At      *drainplan.Entry  `json:"at,omitempty"`
	Targets []drainplan.Entry `json:"targets,omitempty"`
	Plans   []string          `json:"plans,omitempty"`
	By      []string          `json:"by,omitempty"`
	Of      []string          `json:"of,omitempty"`
}

// table has each value once, at a place. Values are equal that are the same in JSON.
type table[T any] struct {
	all    []T
	places map[string]int
}

func (t *table[T]) place(value T) int {
	text, _ := json.Marshal(value) // of texts and numbers
	place, known := t.places[string(text)]
	if !known {
		place = len(t.all)
		t.all, t.places[string(text)] = append(t.all, value), place
	}
	return place
}

func (inventory) Opaque() {}

func (v *inventory) MarshalJSON() ([]byte, error) {
	v.regroup() // as the next run does
	p := packed{Names: v.names(nil), Silent: v.silent, Completed: v.completed}
	inputs := 0
	for _, one := range v.plans {
		inputs += len(one.Maintenance)
	}
	for _, in := range v.waiting { // plans repeat those that are too many
		names := v.names(append(slices.Clone(p.Names), in.Nodes...))
		if inputs += len(in.Maintenance); inputs <= maxInputs && len(names) <= plan.MaxNodes {
			p.Names = names
			p.Waiting = append(p.Waiting, packedPlan{planState: planState{PlanIntent: in}})
		}
	}
	if len(v.plans) > 0 {
		defer func(before situation) { v.now = before }(v.now)
		v.look()
	}
	for _, one := range v.plans {
		packed := packedPlan{planState: one.planState}
		if !one.All {
			packed.Pending = bits(one.differences(v.sums(one)), len(one.Nodes))
		}
		p.Plans = append(p.Plans, packed)
	}
	for _, all := range [][]packedPlan{p.Plans, p.Waiting} {
		for i := range all {
			all[i].Of, all[i].Nodes = bitsOf(all[i].Nodes, p.Names), nil
		}
	}
	shared, shapes := table[lists]{places: map[string]int{}}, table[shape]{places: map[string]int{}}
	var last lists // most nodes that follow each other have the same
	place := -1
	for _, n := range v.nodes {
		l := lists{At: n.at, Targets: n.target.Targets, Plans: n.target.Plans, By: n.by, Of: n.of}
		if place < 0 || !reflect.DeepEqual(l, last) {
			last, place = l, shared.place(l)
		}
		name, _ := slices.BinarySearch(p.Names, n.name)
		one := packedNode{Name: name, nodeState: n.nodeState, Revision: n.target.Revision, Pending: n.progress.Pending, Evacuating: n.progress.Evacuating}
		s := shape{Lists: place, Gang: n.gang, Made: n.made, Target: n.target, Progress: n.progress}
		s.Target.Targets, s.Target.Plans, s.Target.Revision = nil, nil, 0
		s.Progress.Node, s.Progress.RunID, s.Progress.Revision, s.Progress.Pending, s.Progress.Evacuating = "", "", 0, 0, 0
		one.Shape = shapes.place(s)
		p.Nodes = append(p.Nodes, one)
	}
	p.Lists, p.Shapes = shared.all, shapes.all
	return json.Marshal(p)
}

// names are those of all nodes that are known or named, in their order, and more.
func (v *inventory) names(more []string) []string {
	for _, n := range v.nodes {
		more = append(more, n.name)
	}
	for _, p := range v.plans {
		for i, name := range p.Nodes {
			if p.member(i) == nil {
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
	for _, one := range p.Nodes {
		n, s := v.add(p.Names[one.Name]), p.Shapes[one.Shape]
		l := p.Lists[s.Lists]
		n.nodeState, n.gang, n.made, n.at, n.by, n.of, n.target, n.progress = one.nodeState, s.Gang, s.Made, l.At, l.By, l.Of, s.Target, s.Progress
		n.target.Targets, n.target.Plans, n.target.Revision = l.Targets, l.Plans, one.Revision
		n.progress.Node, n.progress.RunID, n.progress.Pending, n.progress.Evacuating = n.name, n.Run, one.Pending, one.Evacuating
	}
	v.changed, v.ungrouped = true, true
	v.regroup()
	v.assumeSent()
	return nil
}
