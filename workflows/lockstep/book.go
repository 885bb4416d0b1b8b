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

const (
	// maxPlans bounds the plans of a cluster, maxInputs what their maintenances take together, in bytes: all of it is carried
	// from run to run.
	maxPlans  = 100
	maxInputs = 512 << 10
	// maxSaid bounds what is kept of what a maintenance says, in bytes: there may be thousands.
	maxSaid = 200
)

// book is all that is known of plans and nodes. What it does depends on nothing but what it is told.
type book struct {
	// plans come in the order of their age.
	plans []*plan
	// nodes come in the order of their names once they are held anew; byName is only looked up in.
	nodes  []*node
	byName map[string]*node
	// completed are the latest plans that were, with their last revision: what they said before is out of date.
	completed []completed
}

// completed is a plan on whose behalf nothing is held any more.
type completed struct {
	RunID    string `json:"runId"`
	Revision int    `json:"revision"`
}

// maxCompleted bounds those that are remembered.
const maxCompleted = 100

// plan is an intent that counts.
type plan struct {
	api.PlanIntent
	tiers drainplan.Plan
	tier  int
	// left are the nodes whose maintenance has ended by itself, and how.
	left map[string]departure
	// begun: it has begun to drain, forwarded says where older plans had gone further by then.
	begun     bool
	forwarded string
	// fresh: its nodes are taken at the same time, as a gang.
	fresh bool
	telling
}

// departure is how a maintenance ended that a plan still wanted.
type departure struct {
	Why    string `json:"why"`
	Failed bool   `json:"failed,omitempty"`
}

// stand is what is done with a node.
type stand int

const (
	// wanted: its maintenance is to be begun, beginning: it is being begun.
	wanted stand = iota
	beginning
	// asked: it runs, and has to say how far it is before anything is decided for it.
	asked
	held
	// ending: it was told to end.
	ending
)

func (s stand) String() string {
	return [...]string{"to be begun", "being begun", "asked how far it is", "held", "being given back"}[s]
}

// node is a node with the maintenance that its plans share.
type node struct {
	name string
	// run is the first run of its maintenance's chain, empty where that is not known.
	run   string
	stand stand
	// sent is the latest target, raised the revision since which its Targets are these.
	sent   api.NodeTarget
	raised int
	at     *drainplan.Entry
	by     []string
	// drained: none of the pods of its targets is left.
	drained bool
	said    api.NodeProgress
	gang    string
	// holders are the plans that want it, oldest first.
	holders []*plan
	errand
}

// errand is what is under way for a node.
type errand struct {
	// busy: it is in an activity. stale: it has to hear of its targets anew, unsent: its target was not delivered yet. ended: it
	// was told to end.
	busy, stale, unsent, ended bool
	// tries count what failed for it in a row, or the questions that it did not answer; it is left alone before notBefore.
	tries     int
	notBefore int64
}

func newBook() *book { return &book{byName: map[string]*node{}} }

func (b *book) planOf(run string) *plan {
	i := slices.IndexFunc(b.plans, func(p *plan) bool { return p.RunID == run })
	if i < 0 {
		return nil
	}
	return b.plans[i]
}

func (b *book) add(name string) *node {
	n := &node{name: name}
	b.nodes, b.byName[name] = append(b.nodes, n), n
	return n
}

// isActive tells whether a plan holds its nodes.
func (p *plan) isActive() bool { return p.Stage == api.StageCordon || p.Stage == api.StageDrain }

// check tells why an intent cannot be taken, beside the plans there are.
func (b *book) check(in api.PlanIntent, tiers drainplan.Plan) error {
	before := b.planOf(in.RunID)
	if before != nil {
		switch {
		case slices.Index(rollout.Stages, in.Stage) < slices.Index(rollout.Stages, before.Stage):
			return fmt.Errorf("stage: the plan is at %s already, and does not go back to %s", before.Stage, in.Stage)
		case !slices.Equal(tiers.Entries(), before.tiers.Entries()):
			return fmt.Errorf("tiers: the drain plan of a plan that has begun does not change")
		}
	}
	if in.Stage == api.StageComplete {
		return nil
	}
	return cmp.Or(b.checkRoom(in, before), b.checkShared(in))
}

// checkRoom keeps all plans together within what can be carried.
func (b *book) checkRoom(in api.PlanIntent, before *plan) error {
	inputs := len(in.Maintenance)
	all := make(map[string]bool, len(b.nodes)+len(in.Nodes))
	for _, n := range b.nodes {
		all[n.name] = true
	}
	for _, p := range b.plans {
		if p != before {
			inputs += len(p.Maintenance)
		}
	}
	for _, name := range in.Nodes {
		all[name] = true
	}
	switch {
	case before == nil && len(b.plans) >= maxPlans:
		return fmt.Errorf("%d plans are under way: complete one first", len(b.plans))
	case inputs > maxInputs:
		return fmt.Errorf("maintenance: those of all plans have %d bytes: at most %d are taken", inputs, maxInputs)
	case len(all) > rollout.MaxNodes:
		return fmt.Errorf("nodes: all plans have %d: at most %d are taken: complete a plan first", len(all), rollout.MaxNodes)
	}
	return nil
}

// checkShared refuses a plan whose maintenances could not be those of another with which it shares a node.
func (b *book) checkShared(in api.PlanIntent) error {
	names := make(map[string]bool, len(in.Nodes))
	for _, name := range in.Nodes {
		names[name] = true
	}
	for _, p := range b.plans {
		if p.RunID == in.RunID || p.Name == in.Name || !p.isActive() {
			continue
		}
		i := slices.IndexFunc(p.Nodes, func(name string) bool { _, left := p.left[name]; return names[name] && !left })
		if i < 0 {
			continue
		}
		if why := rollout.Unshareable(in.Name, in.Maintenance, p.Name, p.Maintenance); why != "" {
			return fmt.Errorf("node %s is shared with plan %s, and they differ in what is done to it: %s", p.Nodes[i], p.Name, why)
		}
	}
	return nil
}

// accept has an intent count that was checked, in place of an earlier one of the plan, and of an earlier plan of its name.
func (b *book) accept(in api.PlanIntent, tiers drainplan.Plan) *plan {
	b.plans = slices.DeleteFunc(b.plans, func(p *plan) bool { return p.Name == in.Name && p.RunID != in.RunID })
	slices.Sort(in.Nodes)
	p := b.planOf(in.RunID)
	if p == nil {
		p = &plan{fresh: true, left: map[string]departure{}}
		b.plans = append(b.plans, p)
	}
	came := slices.ContainsFunc(in.Nodes, func(name string) bool { _, had := slices.BinarySearch(p.Nodes, name); return !had })
	if came && p.tier > 0 && p.tier >= tiers.Len() {
		p.tier = tiers.Len() - 1 // there is something to drain again
	}
	left := map[string]departure{}
	for _, name := range in.Nodes {
		if gone, ok := p.left[name]; ok {
			left[name] = gone
		}
	}
	if in.Stage == api.StageComplete && len(in.Nodes) == 0 {
		in.Nodes, left = p.Nodes, p.left
	}
	p.PlanIntent, p.tiers, p.left = in, tiers, left
	p.tellAll()
	slices.SortStableFunc(b.plans, func(a, b *plan) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
	})
	return p
}

// drop forgets a plan: nothing is held on its behalf any more.
func (b *book) drop(run string) bool {
	p := b.planOf(run)
	if p == nil {
		return false
	}
	b.plans = slices.DeleteFunc(b.plans, func(other *plan) bool { return other == p })
	b.completed = append(b.completed, completed{RunID: run, Revision: p.Revision})
	b.completed = b.completed[max(len(b.completed)-maxCompleted, 0):]
	return true
}

// isOutdated tells of an intent that was said before one that counts, or did.
func (b *book) isOutdated(in api.PlanIntent) bool {
	p := b.planOf(in.RunID)
	return p != nil && in.Revision < p.Revision ||
		slices.ContainsFunc(b.completed, func(c completed) bool { return c.RunID == in.RunID && in.Revision < c.Revision })
}

// hold finds out which plans hold which nodes, and which nodes are new.
func (b *book) hold() {
	for _, n := range b.nodes {
		n.holders = nil
	}
	for _, p := range b.plans {
		if !p.isActive() {
			continue
		}
		for _, name := range p.Nodes {
			if _, left := p.left[name]; left {
				continue
			}
			n := b.byName[name]
			if n == nil {
				n = b.add(name)
				if p.fresh {
					n.gang = p.gangName()
				}
			}
			n.holders = append(n.holders, p)
		}
		p.fresh = false
	}
	b.nodes = slices.DeleteFunc(b.nodes, func(n *node) bool {
		useless := n.stand == wanted && len(n.holders) == 0
		if useless {
			delete(b.byName, n.name)
		}
		return useless
	})
	slices.SortFunc(b.nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
}

// gangName is the same whoever asks again.
func (p *plan) gangName() string { return p.Name + "/" + p.RunID }

// holds tells whether a node is held on behalf of a plan.
func (b *book) holds(p *plan, name string) bool {
	if _, left := p.left[name]; left {
		return false
	}
	n := b.byName[name]
	return p.isActive() || n != nil && n.stand != wanted && len(n.holders) == 0
}

// isComplete tells that nothing is held on behalf of a plan at its last stage.
func (b *book) isComplete(p *plan) bool {
	return p.Stage == api.StageComplete && !slices.ContainsFunc(p.Nodes, func(name string) bool { return b.holds(p, name) })
}

// report takes what a maintenance says of itself, and tells why it does not where it does not.
func (b *book) report(said api.NodeProgress) error {
	n := b.byName[said.Node]
	switch {
	case n == nil || n.stand == wanted || n.stand == beginning:
		return fmt.Errorf("node %s has no maintenance of the lockstep's", said.Node)
	case n.run != "" && n.run != said.RunID:
		return fmt.Errorf("node %s: it is of run %s, and the maintenance is run %s", said.Node, said.RunID, n.run)
	}
	n.run = said.RunID
	said.Waiting, said.Failure = bounds.Cut(said.Waiting, maxSaid), bounds.Cut(said.Failure, maxSaid)
	if said.Ended {
		b.end(n, said.Phase, said.Failure)
		return nil
	}
	switch {
	case n.stand == asked:
		n.takeOver(said)
	case said.Revision > n.sent.Revision:
		// Another has told it to go further than is known here.
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
	return nil
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
	gone := departure{Why: failure, Failed: phase != api.Completed && phase != api.NodeGone}
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
