package api

import (
	"testing"
	"time"

	"drydock.dev/drydock/rules/plan"
)

// TestThePageSaysHowManyNodesItLeavesOut, whether or not nodes are on it that come back later.
func TestThePageSaysHowManyNodesItLeavesOut(t *testing.T) {
	failed := PlanNode{Node: "failed", State: plan.Failed.Word()}
	back := PlanNode{Node: "back", State: plan.Waiting.Word(), NotBefore: time.Now()}
	for name, c := range map[string]struct {
		nodes  []PlanNode
		counts plan.Counts
		more   int
	}{
		"all are there":         {[]PlanNode{failed}, plan.Counts{Failed: 1, Waiting: 7}, 0},
		"others are skipped":    {[]PlanNode{failed}, plan.Counts{Failed: 1, Skipped: 5}, 5},
		"nodes come back":       {[]PlanNode{failed, back, back}, plan.Counts{Failed: 1, Waiting: 2, Skipped: 5}, 5},
		"a page of those alone": {[]PlanNode{back, back}, plan.Counts{Waiting: 2, Skipped: 1}, 1},
	} {
		p := PlanOf(PlanStatus{Nodes: c.nodes, Counts: c.counts, NextOffset: len(c.nodes)})
		if len(p.Nodes) != len(c.nodes) || p.MoreNodes != c.more {
			t.Errorf("%s: %d nodes and %d more, want %d and %d", name, len(p.Nodes), p.MoreNodes, len(c.nodes), c.more)
		}
	}
}
