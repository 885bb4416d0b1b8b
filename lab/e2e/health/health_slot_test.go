package health

import (
	"fmt"
	"testing"

	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/schedule"
)

// TestTwoChecksRemediateOneControlPlaneNodeAtATime: a node of each falls ill, and the scheduler says which one goes first.
func TestTwoChecksRemediateOneControlPlaneNodeAtATime(t *testing.T) {
	c := newClinic(t, 6, "")
	c.StartWorker()
	fields := `"minHealthy":1,"remediationTemplate":` + c.template(fence, "fence", nil)
	checks := []*group{c.take("even", 3), c.take("odd", 3)}
	for _, g := range checks {
		for _, node := range g.nodes {
			g.PatchNode(node, `{"metadata":{"labels":{"`+site.ControlPlaneLabel+`":""}}}`)
		}
		g.start(fields)
	}
	ill := []string{checks[0].nodes[0], checks[1].nodes[0]}
	for _, node := range ill {
		c.breaks(node)
	}
	holds := func() (node string) {
		t.Helper()
		c.Eventually("one of them has the slot", func() error {
			var nodes []string
			for _, h := range c.State().Holders {
				if h.Kind == schedule.KindControlPlane {
					nodes = append(nodes, h.Node)
				}
			}
			if len(nodes) != 1 || len(c.objectsFor(fence, nodes[0])) == 0 {
				return fmt.Errorf("the slot is held for %q", nodes)
			}
			node = nodes[0]
			return nil
		})
		return node
	}
	first := holds()
	second, later := ill[1], checks[1]
	if first == second {
		second, later = ill[0], checks[0]
	}
	c.finalizer(fence, first, "example.com/hold")
	later.explains(second, "one control-plane node is remediated at a time")
	c.Exits(c.Drydock("limits"), 0, "Control-plane nodes that are remediated", first)
	c.mends(first)
	c.Exits(c.Drydock("doctor"), 0, "Nothing is inconsistent")
	if made := c.creations(second); made != 0 {
		t.Errorf("%d objects were made of the second while something of the first was left", made)
	}
	c.finalizer(fence, first, "")
	c.released(fence, first)
	if now := holds(); now != second {
		t.Errorf("the slot is held for %s, and %s waits", now, second)
	}
	c.mends(second)
	c.released(fence, second)
	c.Eventually("the slot is given back", func() error {
		if left := c.State().Holders; len(left) > 0 {
			return fmt.Errorf("it is held: %+v", left)
		}
		return nil
	})
	for _, g := range checks {
		g.well()
	}
}
