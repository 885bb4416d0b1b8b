package schedule

import (
	"cmp"
	"fmt"
	"slices"
)

// maxControlPlane is how many control-plane nodes are remediated at a time. Nobody sets it: a second one may cost etcd its quorum.
const maxControlPlane = 1

// split takes the slots of control-plane remediations out of an input. They are none of the nodes' slots, so that no other limit counts
// them.
func (in Input) split() (nodes, controlPlane Input) {
	nodes, controlPlane = in, Input{Freezes: in.Freezes}
	if !slices.ContainsFunc(in.Pending, Request.isControlPlane) && !slices.ContainsFunc(in.Granted, Grant.isControlPlane) {
		return nodes, controlPlane
	}
	nodes.Pending, nodes.Granted = nil, nil
	for _, r := range in.Pending {
		if r.isControlPlane() {
			controlPlane.Pending = append(controlPlane.Pending, r)
		} else {
			nodes.Pending = append(nodes.Pending, r)
		}
	}
	for _, g := range in.Granted {
		if g.isControlPlane() {
			controlPlane.Granted = append(controlPlane.Granted, g)
		} else {
			nodes.Granted = append(nodes.Granted, g)
		}
	}
	return nodes, controlPlane
}

func (r Request) isControlPlane() bool { return r.Kind == KindControlPlane }
func (g Grant) isControlPlane() bool   { return g.Kind == KindControlPlane }

// controlPlaneNodes are those that hold a slot, by name.
func (in Input) controlPlaneNodes() (nodes []string) {
	for _, g := range in.Granted {
		if g.isControlPlane() {
			nodes = append(nodes, g.Node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// decideControlPlane grants slots to one control-plane node, also where several workflows ask for that node: the later may go on with
// what a terminated one has left. It needs no observation: that the node is there is seen where the remediation acts.
func (in Input) decideControlPlane() (d Decision) {
	pending := slices.SortedFunc(slices.Values(in.Pending), func(a, b Request) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Requestor, b.Requestor), cmp.Compare(a.ID, b.ID))
	})
	nodes := in.controlPlaneNodes()
	for _, r := range pending {
		switch {
		case len(in.Freezes) > 0:
			d.Refused = append(d.Refused, Refusal{Request: r, Code: Frozen, Reason: frozenReason(in.Freezes)})
		case slices.Contains(nodes, r.Node):
			d.Grants = append(d.Grants, r)
		case len(nodes) < maxControlPlane:
			d.Grants, nodes = append(d.Grants, r), append(nodes, r.Node)
		default:
			d.Refused = append(d.Refused, Refusal{
				Request: r, Code: ControlPlane, Reason: fmt.Sprintf("one control-plane node is remediated at a time, now %s", list(nodes)),
			})
		}
	}
	return d
}
