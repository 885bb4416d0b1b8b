package lockstep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/drainplan"
	"drydock/rules/rollout"
)

// maxLeap is how far a revision that a maintenance tells may be ahead of the one it was sent: the next one is still one that the
// maintenance takes, so that whoever forges one shuts out none that is sent.
const maxLeap = 1<<42 - 1

// report takes what a maintenance says of itself, and tells why it does not where it does not.
func (b *book) report(said api.NodeProgress) error {
	n := b.byName[said.Node]
	switch {
	case n == nil || n.stand == wanted || n.stand == beginning:
		return fmt.Errorf("node %s has no maintenance of the lockstep's", said.Node)
	case n.run != "" && n.run != said.RunID:
		return fmt.Errorf("node %s: it is of run %s, and the maintenance is run %s", said.Node, said.RunID, n.run)
	case said.Revision-n.sent.Revision > maxLeap:
		return fmt.Errorf("node %s: revision %d is too far ahead of %d", said.Node, said.Revision, n.sent.Revision)
	}
	n.run = said.RunID
	before := n.drained
	said.Waiting, said.Failure = bounds.Cut(said.Waiting, maxSaid), bounds.Cut(said.Failure, maxSaid)
	if said.Ended {
		b.end(n, said.Phase, said.Failure)
		return nil
	}
	n.listens(said)
	switch {
	case n.stand == asked:
		n.takeOver(said)
	case said.Revision > n.sent.Revision, said.Revision == n.sent.Revision && !n.stale && !slices.Equal(said.Targets, n.sent.Targets):
		// Another has told it to go further than is known here: a lockstep before this one, under a revision that may be the same.
		all, _ := drainplan.Union(said.Targets, n.sent.Targets)
		n.sent.Revision, n.sent.Targets, n.at, n.by, n.stale = said.Revision, all, nil, nil, true
		n.raised, n.drained = said.Revision, said.Drained && slices.Equal(all, said.Targets)
	case said.Revision >= n.raised && slices.Equal(said.Targets, n.sent.Targets):
		n.drained = said.Drained
	default:
		return nil // it was said before it heard of its present targets
	}
	said.Targets, said.Plans, said.Gang = nil, nil, nil // they are those of n.sent, or out of date
	n.said = said
	if n.drained && !before {
		b.emptied(n)
	}
	return nil
}

// meet takes up a maintenance that says of itself and that nobody here has heard of: it was begun before a reset, or a termination,
// and the list of those that run lags. It is asked how far it is, as one that was found; one that somebody made up is found to be none.
func meet(b *book, said api.NodeProgress) bool {
	if b.byName[said.Node] != nil || said.Ended || len(b.nodes) >= rollout.MaxNodes {
		return false
	}
	b.add(said.Node).stand = asked
	return true
}

// listens notes whether a maintenance knows by now what it was told. One that does not may have been reset, or have been about
// to end when it heard it: it is told again where it goes on so.
func (n *node) listens(said api.NodeProgress) {
	switch {
	case n.stand == held && said.Revision >= n.sent.Revision:
		n.deaf, n.unheard = false, 0
	case n.stand == held, n.stand == ending && n.ended && said.Phase != api.Releasing && said.Phase != api.Validating:
		n.deaf = true
	}
}

// takeOver goes on where a maintenance is.
func (n *node) takeOver(said api.NodeProgress) {
	n.stand, n.tries, n.notBefore = held, 0, 0
	targets, _ := drainplan.Union(said.Targets, n.sent.Targets)
	n.sent = api.NodeTarget{Revision: max(said.Revision, n.sent.Revision), Targets: targets, Gang: said.Gang, Plans: said.Plans}
	n.raised, n.at, n.by = said.Revision, nil, nil
	n.drained = said.Drained && slices.Equal(targets, said.Targets)
	if n.stale = !slices.Equal(targets, said.Targets); n.stale {
		n.raised = n.sent.Revision + 1
	}
	if n.gang = ""; said.Gang != nil {
		n.gang = said.Gang.Name
	}
}

// end takes the end of a maintenance. Plans that still want the node go on without it.
func (b *book) end(n *node, phase api.Phase, failure string) {
	b.nodes = slices.DeleteFunc(b.nodes, func(other *node) bool { return other == n })
	delete(b.byName, n.name)
	if n.stand == ending {
		return // it is begun anew where it is wanted by now
	}
	gone := departure{Phase: phase, Why: failure, Failed: phase != api.Completed && phase != api.NodeGone}
	switch {
	case phase == api.NodeGone:
		gone.Why = "the node is gone"
	case failure == "":
		gone.Why = "its maintenance was ended from outside: " + strings.ToLower(string(cmp.Or(phase, api.Cancelled)))
	}
	for _, p := range n.holders {
		p.left[n.name] = gone
	}
}

// runs tells that a maintenance of the node is taken for running.
func (n *node) runs() bool { return n.stand >= asked }

// emptied notes that a node is drained to its targets. The last one that a plan waited for makes it ripe.
func (b *book) emptied(n *node) {
	for _, p := range n.holders {
		if p.undrained--; p.undrained == 0 && p.Stage == api.StageDrain {
			b.ripe = true
		}
	}
}

// countUndrained counts anew the nodes that plans wait for.
func (b *book) countUndrained() {
	for _, p := range b.plans {
		p.undrained = 0
	}
	for _, n := range b.nodes {
		for _, p := range n.holders {
			if !n.drained {
				p.undrained++
			}
		}
	}
}
