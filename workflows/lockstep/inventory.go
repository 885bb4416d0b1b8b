package lockstep

import (
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/workflows/controller"
)

const (
	// maxPlans bounds the plans of a cluster, maxInputs what their maintenances take together, in bytes: all of it goes to the next run.
	maxPlans  = 100
	maxInputs = 512 << 10
	// maxWaiting bounds the intents whose plans are to be looked up; others are repeated by their plans.
	maxWaiting = 20
	// maxText bounds what is kept of what a maintenance says, in bytes: there may be thousands.
	maxText = 200
	// maxCompleted bounds the completed plans that are remembered.
	maxCompleted = 100
)

// inventory is the plans and nodes that are known, with the maintenances of the nodes.
type inventory struct {
	// plans come in the order of their age.
	plans []*planEntry
	// nodes come in the order of their names once they are grouped; byName is only looked up in.
	nodes  []*node
	byName map[string]*node
	// waiting are intents that count once their plans were seen to run.
	waiting []api.PlanIntent
	// silent are plans that run and have not said yet what they intend.
	silent []api.HeldPlan
	// completed are the latest plans that were: what they said before is out of date.
	completed []completed

	// changed: plans or nodes have, since it was last decided. ungrouped: which plans want which nodes has.
	changed, ungrouped bool
	// ready: a plan may go on, so that a decision is not put off.
	ready bool
	// now is how it stood when it was last decided.
	now situation
}

// completed is a plan on whose behalf nothing is held any more, with its last revision.
type completed struct {
	RunID    string `json:"runId"`
	Revision int    `json:"revision"`
}

// planEntry is an intent that counts.
type planEntry struct {
	planState
	outbox
	tiers drainplan.Plan
	// settings stand for those of its maintenances that others have to share.
	settings string
	// members are the nodes of its Nodes, nil if there is none.
	members []*node
}

// planState is what of a plan goes to the next run as it stands.
type planState struct {
	api.PlanIntent
	Tier int `json:"tier,omitempty"`
	// Begun: it has begun to drain, Forwarded says where older plans had gone further by then.
	Begun     bool   `json:"begun,omitempty"`
	Forwarded string `json:"forwarded,omitempty"`
	// Fresh: its nodes are taken at the same time, as a gang.
	Fresh bool `json:"fresh,omitempty"`
	// Missing: it could not be signalled, so that somebody has to see whether it runs.
	Missing bool `json:"missing,omitempty"`
	// Left are the nodes whose maintenance has ended by itself, and how.
	Left map[string]departure `json:"left,omitempty"`
	// Header is what it was sent last beside its nodes. All: it is to be sent everything, nodes or not, whatever is under way.
	Header api.PlanProgress `json:"header"`
	All    bool             `json:"all,omitempty"`
}

// departure is how a maintenance ended that a plan still wanted.
type departure struct {
	Phase api.Phase `json:"phase,omitempty"`
	Why   string    `json:"why"`
}

// stand is what is done with a node.
type stand int

const (
	// wanted: its maintenance is to begin.
	wanted stand = iota
	// asked: it runs, and has to say how far it is before anything is decided for it.
	asked
	held
	// ending: it is to end.
	ending
)

// node is a node with the maintenance that its plans share.
type node struct {
	name string
	nodeState
	// target is the latest, at the entry up to which its Targets were raised by plans. progress is what its maintenance said last, without what
	// is in target too.
	target   api.NodeTarget
	progress api.NodeProgress
	at       *drainplan.Entry
	by       []string
	gang     string
	// made is a digest of the maintenance's settings and of the plan runs it serves; empty if unknown.
	made string
	of   []string

	// group are the plans that want it. batch is the effect that it was put into last.
	group *group
	batch controller.Key
	// gone: it is none of the nodes any more.
	gone bool
	// sum stands for how it is, beside messages.
	sum uint64
}

// nodeState is what of a node goes to the next run as it stands. Times are in seconds since 1970.
type nodeState struct {
	// Run is the first run of its maintenance's chain, empty if that is not known.
	Run   string `json:"r,omitempty"`
	Stand stand  `json:"d,omitempty"`
	// Raised is the revision since which its targets are these. Drained: none of the pods of its targets is left.
	Raised  int  `json:"a,omitempty"`
	Drained bool `json:"x,omitempty"`
	// Unsent: its maintenance is to be sent its target, or that it ends.
	Unsent bool `json:"u,omitempty"`
	// Tries count what failed for it in a row, or the questions that it did not answer; it is left alone before RetryAt.
	Tries   int   `json:"t,omitempty"`
	RetryAt int64 `json:"w,omitempty"`
	// ResendAt is when its maintenance, which knows less than it was sent, is sent that again, zero if it knows all. Resent counts how often
	// that was in a row.
	ResendAt int64 `json:"b,omitempty"`
	Resent   int   `json:"c,omitempty"`
	// WordsAt is when its maintenance, which knows all but what it waits for, is sent that, zero if it knows that too.
	WordsAt int64 `json:"o,omitempty"`
	// Stale: its maintenance has to know its targets anew.
	Stale bool `json:"l,omitempty"`
	// DrainedAt is when Drained was reported, zero once the maintenance is past its drain.
	DrainedAt int64 `json:"m,omitempty"`
}

// readyWithin is how long a maintenance whose node is drained may take to be Ready before it is cancelled where no plan wants it any more.
const readyWithin = time.Minute

// readyBy is until when the maintenance is about to be Ready: its drain has reported the node empty, and it has not said so itself. The zero
// time is that it is not. To end it now would cancel it, and give the node back without validation.
func (n *node) readyBy() time.Time {
	if n.Stand != held || !n.Drained || !n.target.Last || n.progress.Phase != api.Draining || n.DrainedAt == 0 {
		return time.Time{}
	}
	return time.Unix(n.DrainedAt, 0).Add(readyWithin)
}

// group is plans that want the same nodes, oldest first: thousands of nodes may have the same plans.
type group struct {
	plans       []*planEntry
	names, runs []string
	// next are the groups with one more plan. They are only looked up in.
	next map[*planEntry]*group
}

func (g *group) with(p *planEntry) *group {
	if g.next[p] == nil {
		if g.next == nil {
			g.next = map[*planEntry]*group{}
		}
		g.next[p] = &group{
			plans: append(slices.Clip(g.plans), p), names: append(slices.Clip(g.names), p.Name), runs: append(slices.Clip(g.runs), p.RunID),
		}
	}
	return g.next[p]
}

func (n *node) state() string {
	if n.Stand == wanted && n.isBusy() {
		return "being begun"
	}
	return [...]string{"to be begun", "asked how far it is", "held", "being given back"}[n.Stand]
}

func (n *node) isWanted() bool { return len(n.group.plans) > 0 }

func (n *node) runs() bool { return n.Stand >= asked }

// isGranted reports whether a node has its slot.
func (n *node) isGranted() bool {
	return n.Stand >= held && n.progress.Phase != "" && n.progress.Phase != api.AwaitingApproval && n.progress.Phase != api.Pending
}

func (v *inventory) planOf(run string) *planEntry {
	for _, p := range v.plans {
		if p.RunID == run {
			return p
		}
	}
	return nil
}

func (v *inventory) add(name string) *node {
	if v.byName == nil {
		v.byName = map[string]*node{}
	}
	n := &node{name: name, group: &group{}}
	v.nodes, v.byName[name] = append(v.nodes, n), n
	v.changed, v.ungrouped = true, true
	return n
}

// remove forgets a node. It is in nodes until they are grouped.
func (v *inventory) remove(n *node) {
	n.gone = true
	delete(v.byName, n.name)
	v.changed, v.ungrouped = true, true
}

// awaited is a plan that has not said what it intends and that holds a node, as its maintenance says; empty if there is none. Whatever
// others intend, it may not be as far.
func (v *inventory) awaited(n *node) string {
	for _, p := range v.silent {
		if slices.Contains(n.target.Plans, p.Name) {
			return p.Name
		}
	}
	return ""
}

// decides reports whether it is decided how far a node goes.
func (v *inventory) decides(n *node) bool {
	return n.Stand == held && !n.differs() && v.awaited(n) == ""
}

// follow notes for whom a maintenance goes on, who were found to want the same. Others come where all of those are complete and
// the node was not given back yet.
func (n *node) follow() {
	plans := n.group.plans
	goesOn := slices.ContainsFunc(plans, func(p *planEntry) bool { return slices.Contains(n.of, p.RunID) })
	if len(plans) == 0 || goesOn && slices.Equal(n.of, n.group.runs) {
		return
	}
	if goesOn || n.Stand == wanted || n.made == "" || n.made == plans[0].settings {
		n.made, n.of = plans[0].settings, n.group.runs
	}
}

// differs reports whether the plans that want a node want other settings than those of its maintenance, which was another's.
func (n *node) differs() bool {
	return n.isWanted() && n.made != n.group.plans[0].settings && !slices.Contains(n.of, n.group.plans[0].RunID)
}

func (n *node) isToEnd() bool { return !n.isWanted() || n.differs() }

func (p *planEntry) isActive() bool { return p.Stage == api.StageCordon || p.Stage == api.StageDrain }

func (p *planEntry) hasLeft(name string) bool {
	_, left := p.Left[name]
	return left
}

// regroup finds out which plans want which nodes, and which nodes are new.
func (v *inventory) regroup() {
	if !v.ungrouped {
		return
	}
	v.nodes = slices.DeleteFunc(v.nodes, func(n *node) bool { return n.gone })
	nobody := &group{}
	for _, n := range v.nodes {
		n.group = nobody
	}
	for _, p := range v.plans {
		from, to := nobody, nobody.with(p) // most nodes that follow each other have the same plans
		p.members = make([]*node, len(p.Nodes))
		for i, name := range p.Nodes {
			n := v.byName[name]
			if p.isActive() && !p.hasLeft(name) {
				if n == nil {
					n = v.add(name)
					if n.group = nobody; p.Fresh {
						n.gang = p.Name + "/" + p.RunID // the same for every request of the run
					}
				}
				if n.group != from {
					from, to = n.group, n.group.with(p)
				}
				n.group = to
			}
			p.members[i] = n
		}
		p.Fresh = p.Fresh && !p.isActive()
	}
	for _, n := range v.nodes {
		if n.Stand == wanted && !n.isWanted() && !n.isBusy() {
			v.remove(n)
		}
		n.follow()
	}
	v.nodes = slices.DeleteFunc(v.nodes, func(n *node) bool { return n.gone })
	slices.SortFunc(v.nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	v.ungrouped = false // it is of what was added and removed here
}

// holds reports whether a node, of a place in the plan, is held on behalf of the plan.
func (p *planEntry) holds(i int) bool {
	if p.hasLeft(p.Nodes[i]) {
		return false
	}
	n := p.member(i)
	return p.isActive() || n != nil && (n.Stand != wanted || n.isBusy()) && !n.isWanted()
}

// member is the node of a place in the plan, nil if there is none. Places are those of the last regroup.
func (p *planEntry) member(i int) *node {
	if i >= len(p.members) {
		return nil
	}
	if n := p.members[i]; n != nil && !n.gone {
		return n
	}
	return nil
}

func (p *planEntry) isComplete() bool {
	return p.Stage == api.StageComplete && p.all(func(*node) bool { return false })
}

// isDrained reports whether all nodes are that are held on behalf of a plan.
func (p *planEntry) isDrained() bool {
	return p.all(func(n *node) bool { return n != nil && n.Drained })
}

// all reports whether something is so of all nodes that are held on behalf of a plan.
func (p *planEntry) all(isSo func(n *node) bool) bool {
	for i := range p.Nodes {
		if !isSo(p.member(i)) && p.holds(i) {
			return false
		}
	}
	return true
}
