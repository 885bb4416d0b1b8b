package lockstep

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/number"
	"drydock/rules/rollout"
	"drydock/rules/schedule"
)

// packed is all that a run hands to the next. Plans name their nodes by bits, and what many nodes have in common is written
// once: 15,000 nodes of 50 plans have to fit.
type packed struct {
	Plans []packedPlan `json:"plans"`
	// Names are those of all nodes that are known or named.
	Names []string     `json:"names"`
	Nodes []packedNode `json:"nodes"`
	// Shapes are what nodes have in common.
	Shapes []shape                `json:"shapes"`
	Notes  []api.RecordedDecision `json:"notes,omitempty"`
	// Silent are the plans that run and have not said what they intend.
	Silent        []api.HeldPlan `json:"silent,omitempty"`
	Completed     []completed    `json:"completed,omitempty"`
	Known         bool           `json:"known,omitempty"`
	Until         time.Time      `json:"until,omitzero"`
	ContinueAfter int            `json:"continueAfter,omitempty"`
}

type packedPlan struct {
	// Intent is without nodes: those are the bits of Nodes, in the order of Names.
	Intent    api.PlanIntent       `json:"intent"`
	Nodes     []byte               `json:"nodes"`
	Tier      int                  `json:"tier,omitempty"`
	Begun     bool                 `json:"begun,omitempty"`
	Fresh     bool                 `json:"fresh,omitempty"`
	Forwarded string               `json:"forwarded,omitempty"`
	Left      map[string]departure `json:"left,omitempty"`
	// Untold are the bits of the nodes of which it has still to be told, All that it is told everything.
	Untold []byte           `json:"untold,omitempty"`
	All    bool             `json:"all,omitempty"`
	Told   api.PlanProgress `json:"told"`
}

type packedNode struct {
	Name       int    `json:"n"`
	Shape      int    `json:"s,omitempty"`
	Run        string `json:"r,omitempty"`
	Stand      stand  `json:"d,omitempty"`
	Revision   int    `json:"v,omitempty"`
	Raised     int    `json:"a,omitempty"`
	Pending    int    `json:"p,omitempty"`
	Evacuating int    `json:"e,omitempty"`
	Drained    bool   `json:"x,omitempty"`
	Unsent     bool   `json:"u,omitempty"`
	Ended      bool   `json:"z,omitempty"`
}

// shape is what many nodes have in common.
type shape struct {
	Targets []drainplan.Entry `json:"targets,omitempty"`
	At      *drainplan.Entry  `json:"at,omitempty"`
	By      []string          `json:"by,omitempty"`
	Gang    string            `json:"gang,omitempty"`
	// Made are the settings of the maintenances, Of the places of the plans that they are for.
	Made    string         `json:"made,omitempty"`
	Of      []int          `json:"of,omitempty"`
	Sent    *schedule.Gang `json:"sent,omitempty"`
	Plans   []string       `json:"plans,omitempty"`
	Waits   string         `json:"waits,omitempty"`
	Waiting string         `json:"waiting,omitempty"`
	Last    bool           `json:"last,omitempty"`
	Further bool           `json:"further,omitempty"`
	Stale   bool           `json:"stale,omitempty"`
	Phase   api.Phase      `json:"phase,omitempty"`
}

// continueAsNew goes on in a new run: a history has its limits.
func (l *lockstep) continueAsNew() error {
	bytes, err := api.Pack(l.pack())
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(l.ctx, api.LockstepType, bytes)
}

func (l *lockstep) pack() packed {
	l.book.hold()
	s := l.book.present()
	p := packed{Notes: l.notes, Known: l.stock.known, Until: l.stock.until, ContinueAfter: l.continueAfter, Completed: l.book.completed}
	for _, name := range sortedKeys(l.book.silent) {
		p.Silent = append(p.Silent, api.HeldPlan{Name: name, RunID: l.book.silent[name]})
	}
	for _, n := range l.book.nodes {
		p.Names = append(p.Names, n.name)
	}
	for _, one := range l.book.plans {
		p.Names = append(p.Names, one.Nodes...)
	}
	slices.Sort(p.Names)
	p.Names = slices.Compact(p.Names)
	for _, one := range l.book.plans {
		p.Plans = append(p.Plans, packPlan(one, p.Names, l.bulletin.untold(one, s)))
	}
	shapes := map[string]int{}
	for _, n := range l.book.nodes {
		common := shapeOf(n, l.book.plans)
		key, _ := json.Marshal(common) // of texts and numbers
		place, known := shapes[string(key)]
		if !known {
			place = len(p.Shapes)
			shapes[string(key)] = place
			p.Shapes = append(p.Shapes, common)
		}
		name, _ := slices.BinarySearch(p.Names, n.name)
		p.Nodes = append(p.Nodes, packedNode{
			Name: name, Shape: place, Run: n.run, Stand: n.stand, Revision: n.sent.Revision, Raised: n.raised,
			Pending: n.said.Pending, Evacuating: n.said.Evacuating, Drained: n.drained, Unsent: n.unsent, Ended: n.ended,
		})
	}
	return p
}

func shapeOf(n *node, plans []*plan) shape {
	s := shape{
		Targets: n.sent.Targets, At: n.at, By: n.by, Gang: n.gang, Sent: n.sent.Gang, Plans: n.sent.Plans, Waits: n.sent.Waits,
		Made: n.made, Waiting: n.said.Waiting, Last: n.sent.Last, Further: n.sent.Further, Stale: n.stale, Phase: n.said.Phase,
	}
	for i, p := range plans {
		if slices.Contains(n.of, p.RunID) {
			s.Of = append(s.Of, i)
		}
	}
	return s
}

func packPlan(p *plan, names []string, untold []int) packedPlan {
	packed := packedPlan{
		Intent: p.PlanIntent, Nodes: make([]byte, (len(names)+7)/8), Tier: p.tier, Begun: p.begun, Fresh: p.fresh,
		Forwarded: p.forwarded, Left: p.left, All: p.all, Told: p.header,
	}
	packed.Intent.Nodes = nil
	for _, name := range p.Nodes {
		i, _ := slices.BinarySearch(names, name)
		packed.Nodes[i/8] |= 1 << (i % 8)
	}
	if len(untold) > 0 {
		packed.Untold = make([]byte, (len(p.Nodes)+7)/8)
	}
	for _, i := range untold {
		packed.Untold[i/8] |= 1 << (i % 8)
	}
	return packed
}

// unpack goes on where the run before ended.
func (l *lockstep) unpack(data []byte) error {
	var p packed
	if err := api.Unpack(data, &p); err != nil {
		return err
	}
	l.notes, l.continueAfter = p.Notes, p.ContinueAfter
	l.stock.known, l.stock.until, l.book.completed = p.Known, p.Until, p.Completed
	for _, one := range p.Silent {
		l.book.silent[one.Name] = one.RunID
	}
	for _, one := range p.Plans {
		tiers, err := drainplan.New(one.Intent.Tiers, nil)
		if err != nil {
			return fmt.Errorf("plan %s: %w", one.Intent.Name, err)
		}
		l.book.plans = append(l.book.plans, one.unpack(p.Names, tiers))
	}
	for _, one := range p.Nodes {
		n := l.book.add(p.Names[one.Name])
		n.take(one, p.Shapes[one.Shape], l.book.plans)
	}
	l.book.hold()
	return nil
}

func (packed packedPlan) unpack(names []string, tiers drainplan.Plan) *plan {
	p := &plan{
		PlanIntent: packed.Intent, tiers: tiers, tier: packed.Tier, settings: rollout.Settings(packed.Intent.Maintenance), begun: packed.Begun, fresh: packed.Fresh,
		forwarded: packed.Forwarded, left: packed.Left, telling: telling{all: packed.All, header: packed.Told},
	}
	if p.left == nil {
		p.left = map[string]departure{}
	}
	for i, name := range names {
		if packed.Nodes[i/8]&(1<<(i%8)) != 0 {
			p.Nodes = append(p.Nodes, name)
		}
	}
	for i := range p.Nodes {
		if i/8 < len(packed.Untold) && packed.Untold[i/8]&(1<<(i%8)) != 0 {
			p.pending = append(p.pending, i)
		}
	}
	return p
}

// take goes on with a node. What was being begun, or asked, is begun or asked again.
func (n *node) take(one packedNode, s shape, plans []*plan) {
	n.run, n.stand, n.raised, n.drained = one.Run, one.Stand, one.Raised, one.Drained
	if n.stand == beginning {
		n.stand = wanted
	}
	n.unsent, n.ended, n.stale = one.Unsent, one.Ended, s.Stale
	n.at, n.by, n.gang, n.made = s.At, s.By, s.Gang, s.Made
	for _, i := range s.Of {
		n.of = append(n.of, plans[i].RunID)
	}
	n.sent = api.NodeTarget{
		Run: one.Run, Revision: one.Revision, Targets: s.Targets, Waits: s.Waits, Last: s.Last, Further: s.Further, Gang: s.Sent, Plans: s.Plans,
	}
	n.said = api.NodeProgress{Node: n.name, RunID: one.Run, Phase: s.Phase, Waiting: s.Waiting, Pending: one.Pending, Evacuating: one.Evacuating}
}

// summary says in one line how the lockstep stands.
func (l *lockstep) summary() string {
	counts := [ending + 1]int{}
	for _, n := range l.book.nodes {
		counts[n.stand]++
	}
	var parts []string
	for s, count := range counts {
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, stand(s)))
		}
	}
	text := number.Of(len(l.book.plans), "plan") + ", " + number.Of(len(l.book.nodes), "node")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}
