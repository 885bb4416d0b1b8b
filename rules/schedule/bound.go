package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// maxNamed is how many nodes or freezes a reason names before it counts the rest.
const maxNamed = 3

// bound is one limit during one round: how much it allows and how much of that is used.
type bound struct {
	// name is the limit as reasons call it, such as "group gpu maxParallel".
	name   string
	code   Code
	amount Amount
	// nodes is what a percentage is of, limit the amount resolved, both in nodes.
	nodes, limit int
	// used counts nodes; held are those among them that a maintenance holds.
	used int
	held []string
	// standing are those of used that no end of a maintenance makes available. Reserved is what a gang needs besides.
	standing, reserved int
	// others are counted in used too, as far as their names are known.
	others []UnavailableNode
	// text and kept cache the reasons until the next add: thousands that one limit refuses have the same.
	text, kept string
}

func newBound(name string, code Code, amount Amount, nodes int) *bound {
	return &bound{name: name, code: code, amount: amount, nodes: nodes, limit: amount.Of(nodes)}
}

// full reports whether no other node fits beside those that are used, and beside what is reserved if that counts.
func (b *bound) full(reserved bool) bool { return !b.fits(1, reserved) }

func (b *bound) fits(nodes int, reserved bool) bool {
	if reserved {
		nodes += b.reserved
	}
	return b.used+nodes <= b.limit
}

// hold counts a node that a maintenance holds; cost is 0 where the node is counted in used already.
func (b *bound) hold(node string, cost int) {
	b.used += cost
	if cost == 0 {
		b.standing--
	}
	b.held = append(b.held, node)
	b.text, b.kept = "", ""
}

// giveBack takes out a node that was counted in used and is available again.
func (b *bound) giveBack() {
	b.used--
	b.standing--
}

// refusal is why there is no room for this many nodes: they are used, or reserved for a gang.
func (b *bound) refusal(nodes int, gang string) (Code, string) {
	if !b.fits(nodes, false) {
		return b.code, b.reason()
	}
	if b.kept == "" {
		b.kept = goesFirst(gang, b.reserved, b.describe(), b.used)
	}
	return Reserved, b.kept
}

// reason is why the bound is full.
func (b *bound) reason() string {
	if b.text == "" {
		b.text = b.describe() + ": " + b.usage()
	}
	return b.text
}

// describe names the limit and its value, as in maxUnavailable 20% (= 2 of 10 nodes).
func (b *bound) describe() string {
	text := b.name + " " + b.amount.String()
	if b.amount.kind == percent {
		noun := "nodes"
		if b.nodes == 1 {
			noun = "node"
		}
		text += fmt.Sprintf(" (= %d of %d %s)", b.limit, b.nodes, noun)
	}
	return text
}

func (b *bound) usage() string {
	if b.code == MaxUnavailable || b.code == GroupMaxUnavailable {
		return b.unavailable()
	}
	switch {
	case b.used == 0:
		return "there is no slot"
	case b.used == 1 && b.limit == 1:
		return "the slot is taken (" + list(b.held) + ")"
	case b.used == b.limit:
		return fmt.Sprintf("all %d slots are taken (%s)", b.used, list(b.held))
	default: // the limit was lowered since, or nodes went
		return fmt.Sprintf("%d of %d slots are taken (%s)", b.used, b.limit, list(b.held))
	}
}

func (b *bound) unavailable() string {
	if b.limit == 0 {
		return "no further node may become unavailable"
	}
	text := "1 is unavailable"
	if b.used != 1 {
		text = fmt.Sprintf("%d are unavailable", b.used)
	}
	var which []string
	if len(b.held) > 0 {
		which = append(which, fmt.Sprintf("%d in maintenance: %s", len(b.held), list(b.held)))
	}
	if len(b.others) > 0 {
		names := make([]string, len(b.others))
		for i, other := range b.others {
			names[i] = other.Node + " " + other.Why
		}
		which = append(which, list(names))
	}
	if len(which) > 0 {
		text += " (" + strings.Join(which, "; ") + ")"
	}
	return text
}

// list names the first few and counts the rest.
func list(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// gauge is the pair of bounds of the cluster or of one group key.
type gauge struct {
	parallel, unavailable *bound
}

// newGauge starts the counts of the cluster, or of a group whose name is the prefix, from what was observed.
func newGauge(prefix string, maxParallel, maxUnavailable Amount, seen GroupCount, unseen unseen) gauge {
	g := gauge{
		parallel:    newBound("maxParallel", MaxParallel, maxParallel, seen.Nodes),
		unavailable: newBound("maxUnavailable", MaxUnavailable, maxUnavailable, seen.Nodes),
	}
	if prefix != "" {
		g.parallel.name, g.parallel.code = prefix+"maxParallel", GroupMaxParallel
		g.unavailable.name, g.unavailable.code = prefix+"maxUnavailable", GroupMaxUnavailable
	}
	g.unavailable.used, g.unavailable.standing = seen.Unavailable, seen.Unavailable
	g.holdUnseen(unseen)
	return g
}

// binding returns the bound that keeps a candidate out, nil if none does. A node that is unavailable already uses
// up no unavailability, so that it may go even where the limit is passed. What is reserved for a gang may not count.
func (g gauge) binding(alreadyUnavailable, reserved bool) *bound {
	switch {
	case g.parallel.full(reserved):
		return g.parallel
	case !alreadyUnavailable && g.unavailable.full(reserved):
		return g.unavailable
	}
	return nil
}

// unseen are granted nodes of which nothing is known, and those of them that are not held for a remediation.
type unseen struct{ all, planned []string }

// holdUnseen begins the counts with them, as if each became unavailable. The gauges share the slices, hence the clip.
func (g gauge) holdUnseen(nodes unseen) {
	g.parallel.used += len(nodes.planned)
	g.parallel.held = slices.Clip(nodes.planned)
	g.unavailable.used += len(nodes.all)
	g.unavailable.held = slices.Clip(nodes.all)
}
