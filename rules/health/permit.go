package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Contender is a check among others.
type Contender struct {
	Name      string    `json:"name"`
	RunID     string    `json:"runId"`
	CreatedAt time.Time `json:"createdAt"`
	// WantPermit are control-plane nodes that it would remediate, oldest illness first, and HoldPermit those that it does.
	WantPermit []string `json:"wantPermit,omitempty"`
	HoldPermit []string `json:"holdPermit,omitempty"`
	Revision   int      `json:"revision"`
	// Etcd: its control-plane nodes are remediated only while etcd can lose the node's member.
	Etcd bool `json:"etcd,omitempty"`
}

// Permitted is the one permit that is out: check Check may remediate Node. Revision is that of the intent which it answers.
type Permitted struct {
	Check    string `json:"check,omitempty"`
	RunID    string `json:"runId,omitempty"`
	Node     string `json:"node,omitempty"`
	Revision int    `json:"revision,omitempty"`
	// Held: the check has said that it remediates the node.
	Held bool `json:"held,omitempty"`
}

// EtcdState is what etcd's disruption budget says of a control-plane node.
type EtcdState struct {
	Node string `json:"node"`
	// Budgets is how many budgets were found; other than one is an answer by itself.
	Budgets            int `json:"budgets"`
	DisruptionsAllowed int `json:"disruptionsAllowed"`
	// Guard is the status of the condition Ready of the node's pod that the budget covers, "Missing" where the pod has no such
	// condition, and empty where there is no such pod.
	Guard string `json:"guard,omitempty"`
}

// Membership names the checks that select a node.
type Membership struct {
	Node   string   `json:"node"`
	Checks []string `json:"checks"`
}

// Refusal is a check that may not run beside another.
type Refusal struct {
	Check string `json:"check"`
	With  string `json:"with"`
	// Node is the first, by name, that both select.
	Node string `json:"node"`
	Why  string `json:"why"`
}

// Overlap finds the checks that may not run: of two that select one node the younger one, unless it is refused already for
// another's sake. nodes are those that more than one check selects; their order says nothing.
func Overlap(checks []Contender, nodes []Membership) []Refusal {
	older := slices.Clone(checks)
	slices.SortFunc(older, func(a, b Contender) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
	})
	shared := sharedNodes(nodes)
	var refused []Refusal
	var running []string
	for _, check := range older {
		with := ""
		for _, other := range running {
			if _, overlaps := shared[pairOf(check.Name, other)]; overlaps {
				with = other
				break
			}
		}
		if with == "" {
			running = append(running, check.Name)
			continue
		}
		node := shared[pairOf(check.Name, with)]
		refused = append(refused, Refusal{Check: check.Name, With: with, Node: node,
			Why: fmt.Sprintf("health checks %s and %s both select node %s: change the selector of one of them", with, check.Name, node)})
	}
	return refused
}

// pairOf is a key for two checks, whichever is named first.
func pairOf(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// sharedNodes are the first nodes, by name, that two checks select.
func sharedNodes(nodes []Membership) map[[2]string]string {
	first := map[[2]string]string{}
	for _, n := range nodes {
		for i, a := range n.Checks {
			for _, b := range n.Checks[i+1:] {
				if a == b {
					continue
				}
				if known, found := first[pairOf(a, b)]; !found || n.Node < known {
					first[pairOf(a, b)] = n.Node
				}
			}
		}
	}
	return first
}

// Permit decides which control-plane node may be remediated: out is the permit that was given last, and etcd says of nodes
// whether etcd can lose them. The first result is the permit that is out from now on, and the second says why none of those
// wanted got it, or why the others wait.
//
// A permit stays out until the check that has it says, at a later revision, that it neither wants nor holds it. A check whose
// workflow is gone stays among the contenders while remediations of it run.
func Permit(checks []Contender, out Permitted, etcd []EtcdState) (Permitted, string) {
	ordered := slices.Clone(checks)
	slices.SortFunc(ordered, func(a, b Contender) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
	})
	if kept, stays := stays(ordered, out); stays {
		return kept, turnOf(kept)
	}
	for _, c := range ordered {
		if len(c.HoldPermit) > 0 {
			held := Permitted{Check: c.Name, RunID: c.RunID, Node: c.HoldPermit[0], Revision: c.Revision, Held: true}
			return held, turnOf(held)
		}
	}
	why := ""
	for i := range maxWants {
		for _, c := range ordered {
			if i >= len(c.WantPermit) {
				continue
			}
			node := c.WantPermit[i]
			allowed, reason := true, ""
			if c.Etcd {
				allowed, reason = etcdOf(node, etcd)
			}
			if allowed {
				given := Permitted{Check: c.Name, RunID: c.RunID, Node: node, Revision: c.Revision}
				return given, turnOf(given)
			}
			why = cmp.Or(why, reason)
		}
	}
	return Permitted{}, why
}

func turnOf(p Permitted) string {
	return fmt.Sprintf("one control-plane node is remediated at a time, now %s by health check %s", p.Node, p.Check)
}

// stays tells whether the permit is still out, and how.
func stays(checks []Contender, out Permitted) (Permitted, bool) {
	if out.Node == "" {
		return out, false
	}
	for _, c := range checks {
		if c.Name != out.Check {
			continue
		}
		switch held := slices.Contains(c.HoldPermit, out.Node); {
		case held:
			return Permitted{Check: c.Name, RunID: c.RunID, Node: out.Node, Revision: c.Revision, Held: true}, true
		case slices.Contains(c.WantPermit, out.Node) && !out.Held && c.RunID == out.RunID:
			out.Revision = c.Revision
			return out, true
		}
	}
	return Permitted{}, false
}

// etcdOf is what etcd's budget says of a node.
func etcdOf(node string, etcd []EtcdState) (bool, string) {
	for _, state := range etcd {
		if state.Node == node {
			return EtcdAllows(state)
		}
	}
	return false, fmt.Sprintf("etcd's disruption budget has not been looked at yet for %s", node)
}

// EtcdAllows tells whether etcd can lose a node's member, and why not: its budget has to allow a disruption, unless the
// member is disrupted already, or there is none on the node.
func EtcdAllows(e EtcdState) (bool, string) {
	switch {
	case e.Budgets != 1:
		return false, fmt.Sprintf("etcd has %d disruption budgets: want one", e.Budgets)
	case e.DisruptionsAllowed >= 1:
		return true, ""
	case e.Guard == "True" || e.Guard == "Unknown":
		return false, fmt.Sprintf("etcd's disruption budget allows no disruption, and the member on %s may be in order", e.Node)
	default:
		return true, ""
	}
}
