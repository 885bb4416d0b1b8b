package profile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/state"
)

// Facts are what checks look at besides nodes.
type Facts struct {
	// Marked are nodes with pods for which check.Marked holds, and Unread says why of the nodes whose pods could not be read.
	Marked  map[string]bool
	Unread  map[string]string
	Samples map[check.Query]check.Sample
	Leases  map[check.LeaseName]check.Lease
	// Ahead is how far the API server's clock is ahead of this machine's.
	Ahead time.Duration
}

// Decide evaluates all nodes of a cluster, one after the other, so that each sees what was granted to those before: that is how
// a limit holds. All nodes have to be there, and with them all transitions that are under way. Those that wait longest come
// first; the results are in the order of the names.
func (c *Config) Decide(nodes []Node, facts Facts, now time.Time) []Evaluation {
	view := viewOf(nodes, facts)
	order := c.attach(nodes, view, now)
	slices.SortFunc(order, byWaiting)
	var all []Evaluation
	for _, e := range order {
		if e.member.Unreadable {
			all = append(all, unreadable(e.node.Object))
			continue
		}
		evaluation := e.run()
		evaluation.Changed = evaluation.Changes(e.node.Object)
		all = append(all, evaluation)
	}
	slices.SortFunc(all, func(a, b Evaluation) int { return strings.Compare(a.Node, b.Node) })
	return all
}

func viewOf(nodes []Node, facts Facts) *check.View {
	var objects []*corev1.Node
	entering := map[string][]string{}
	for _, n := range nodes {
		objects = append(objects, n.Object)
		entering[n.Object.Name] = append(entering[n.Object.Name], n.entering()...)
	}
	view := check.NewView(objects, entering)
	view.Marked, view.Unread, view.Samples = facts.Marked, facts.Unread, facts.Samples
	view.Ahead = facts.Ahead
	view.Leases = map[check.LeaseName]check.Lease{}
	for name, lease := range facts.Leases {
		view.Leases[name] = lease
	}
	return view
}

// entering are the profiles with a transition to in-maintenance under way, in order; also those that the label no longer names.
func (n Node) entering() []string {
	var names []string
	for name, busy := range n.Busy {
		if busy.To == state.Maintenance && !busy.Enter && busy.Until.IsZero() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// attach brings the data of each node to its label, before anything is decided: checks look at all nodes.
func (c *Config) attach(nodes []Node, view *check.View, now time.Time) []*evaluator {
	var all []*evaluator
	seen := map[string]bool{}
	for _, n := range nodes {
		if seen[n.Object.Name] {
			continue
		}
		seen[n.Object.Name] = true
		m := view.Member(n.Object.Name)
		if !m.Unreadable {
			m.Data = m.Data.Attach(m.Profiles, c.Known, now)
		}
		all = append(all, &evaluator{config: c, node: n, member: m, view: view, now: now, before: m.Data, data: m.Data.Clone()})
	}
	return all
}

// byWaiting orders nodes by since when they wait for maintenance, and those that do not wait after them.
func byWaiting(a, b *evaluator) int {
	x, y := a.waiting(), b.waiting()
	switch {
	case x.IsZero() != y.IsZero() && x.IsZero():
		return 1
	case x.IsZero() != y.IsZero():
		return -1
	}
	return cmp.Or(x.Compare(y), strings.Compare(a.member.Name, b.member.Name))
}

// waiting is since when the node waits for maintenance, zero if it does not.
func (e *evaluator) waiting() time.Time {
	var since time.Time
	for _, name := range e.member.In(state.Required) {
		if at := e.member.Data.Profiles[name].Transition; since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return since
}

func unreadable(node *corev1.Node) Evaluation {
	_, err := state.Read(node.Annotations[state.DataAnnotation])
	return Evaluation{Node: node.Name, Problem: err.Error()}
}

// Changes reports whether the annotation or the label is to be written.
func (e Evaluation) Changes(node *corev1.Node) bool {
	text, there := node.Annotations[state.DataAnnotation]
	written, err := state.Read(text)
	return err != nil || !there || text == "" || !written.Equal(e.Data) || node.Labels[state.StateLabel] != string(e.Label)
}
