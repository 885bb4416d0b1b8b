package lockstep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

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
	// ripe: a plan may go on, so that a decision is not put off.
	ripe bool
	// silent are the first runs of plans that run and have not said yet what they intend, by their names.
	silent map[string]string
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
	// undrained counts the nodes that were not drained to their targets when it was last decided, and are not since.
	undrained int
	// settings stand for those of its maintenances that others have to share.
	settings string
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
	Phase  api.Phase `json:"phase,omitempty"`
	Why    string    `json:"why"`
	Failed bool      `json:"failed,omitempty"`
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
	// made are the settings of its maintenance, empty where they are not known, and of the runs of the plans that it is for.
	made string
	of   []string
	// sent is the latest target, raised the revision since which its Targets are these.
	sent   api.NodeTarget
	raised int
	at     *drainplan.Entry
	by     []string
	// drained: none of the pods of its targets is left.
	drained bool
	said    api.NodeProgress
	gang    string
	// wordsSince is since when it waits for something else than its maintenance knows, zero where it does not.
	wordsSince time.Time
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
	// deaf: it says that it knows less than it was told, which is told again at again, in seconds since 1970, zero where that is
	// not known yet. unheard counts how often it was in a row.
	deaf    bool
	again   int64
	unheard int
}

func newBook() *book { return &book{byName: map[string]*node{}, silent: map[string]string{}} }

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

// awaited is a plan that has not said what it intends and of which the maintenance of a node tells that it holds the node, empty
// where there is none: whatever others intend, it may not be as far.
func (n *node) awaited(silent map[string]string) string {
	if len(silent) == 0 {
		return ""
	}
	for _, name := range n.sent.Plans {
		if _, is := silent[name]; is {
			return name
		}
	}
	return ""
}

// decides tells whether it is decided how far a node goes.
func (b *book) decides(n *node) bool {
	return n.stand == held && !n.differs() && n.awaited(b.silent) == ""
}

// follow notes for whom a maintenance goes on, who were found to want the same. Others come where all of those are complete and
// the node was not given back yet.
func (n *node) follow() {
	same := func(run string, p *plan) bool { return run == p.RunID }
	goesOn := slices.ContainsFunc(n.holders, func(p *plan) bool { return slices.Contains(n.of, p.RunID) })
	switch {
	case len(n.holders) == 0, goesOn && slices.EqualFunc(n.of, n.holders, same):
	case goesOn, n.stand == wanted, n.made == "", n.made == n.holders[0].settings:
		n.made, n.of = n.holders[0].settings, nil
		for _, p := range n.holders {
			n.of = append(n.of, p.RunID)
		}
	}
}

// differs tells that the plans that want a node want other settings than those of its maintenance, which was another's.
func (n *node) differs() bool {
	return len(n.holders) > 0 && n.made != n.holders[0].settings && !slices.Contains(n.of, n.holders[0].RunID)
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
	return cmp.Or(b.checkRoom(in, before), b.checkShared(in), b.checkTargets(in, tiers))
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

// checkTargets keeps the targets that a node may come to within what its maintenance takes, and tells of again.
func (b *book) checkTargets(in api.PlanIntent, tiers drainplan.Plan) error {
	looked := map[string]bool{}
	for _, name := range in.Nodes {
		n := b.byName[name]
		if n == nil {
			continue
		}
		text, _ := json.Marshal(n.sent.Targets) // of texts and numbers
		key, plans := string(text), []string{in.Name}
		for _, p := range n.holders {
			key += p.RunID
		}
		if looked[key] {
			continue // thousands of nodes may have the same plans
		}
		looked[key] = true
		all, _ := drainplan.Union(n.sent.Targets, tiers.Targets(tiers.Len()-1))
		for _, p := range n.holders {
			if p.RunID != in.RunID {
				all, _ = drainplan.Union(all, p.tiers.Targets(p.tiers.Len()-1))
				plans = append(plans, p.Name)
			}
		}
		if text, _ := json.Marshal(all); len(all) > api.MaxTargets || len(text) > api.MaxTargetsText {
			return fmt.Errorf("tiers: node %s would come to %d drain targets (%d bytes) with plans %s: at most %d (%d bytes) are taken",
				name, len(all), len(text), bounds.Cut(strings.Join(plans, ", "), maxSaid), api.MaxTargets, api.MaxTargetsText)
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
	p.PlanIntent, p.tiers, p.left, p.settings = in, tiers, left, rollout.Settings(in.Maintenance)
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
	for _, n := range b.nodes {
		n.follow()
	}
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
