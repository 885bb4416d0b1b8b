package record

import (
	"fmt"
	"time"

	"drydock.dev/drydock/rules/document"
)

// Plan is what is kept of a maintenance plan; its maintenances have records of their own.
type Plan struct {
	Name string `json:"name"`
	// Total are the nodes that it matched, by what became of them.
	Total   int `json:"total"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Untouched are those that were left as they were.
	Untouched int `json:"untouched"`
	// Moves counts the pods that its maintenances had moved.
	Moves PodMoves `json:"moves,omitzero"`
	// Nodes are those with something to say, the first of them; MoreNodes counts the rest.
	Nodes     []PlanNode `json:"nodes,omitempty"`
	MoreNodes int        `json:"moreNodes,omitempty"`
}

// PlanNode is a node of a plan, and why it is in its state.
type PlanNode struct {
	Node  string    `json:"node"`
	State string    `json:"state"`
	At    time.Time `json:"at,omitzero"`
	Tries int       `json:"tries,omitempty"`
	Note  string    `json:"note,omitempty"`
}

// MaxPlanNodes bounds the nodes in the record of a plan.
const MaxPlanNodes = 200

// Subject is what the record is about, in words: a node, or a plan.
func (r Record) Subject() string {
	if r.Plan != nil {
		return "plan " + r.Plan.Name
	}
	return r.Node
}

// text counts the nodes.
func (p Plan) text() string {
	return fmt.Sprintf("%d: %d done, %d failed, %d skipped, %d untouched", p.Total, p.Done, p.Failed, p.Skipped, p.Untouched)
}

// planTable lists the nodes of a plan that have something to say.
func planTable(p *Plan, when func(time.Time) string) document.Table {
	t := document.Table{Title: "Nodes", Header: []string{"Node", "State", "At", "Tries", "Note"}}
	if p == nil {
		return t
	}
	for _, n := range p.Nodes {
		t.Add(n.Node, n.State, when(n.At), count(n.Tries), n.Note)
	}
	if p.MoreNodes > 0 {
		t.Add(fmt.Sprintf("and %d more", p.MoreNodes), "", "", "", "")
	}
	return t
}
