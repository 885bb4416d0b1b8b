package lockstep

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
)

// wordsAfter is how long it has to last that a node waits for something else before its maintenance is sent that.
const wordsAfter = 5 * time.Second

// situation is who drains what at one moment: a copy, for what is said of it later.
type situation struct {
	parties  []drainplan.Party
	nodes    []drainplan.Shared
	messages drainplan.Messages
	// party and node are the places of plans and nodes. They are only looked up in.
	party map[*planEntry]int
	node  map[*node]int
}

// survey is how it stands, with nothing decided and without messages.
func (v *inventory) survey() (s situation, draining []*planEntry) {
	s = situation{party: map[*planEntry]int{}, node: make(map[*node]int, len(v.nodes)), nodes: make([]drainplan.Shared, 0, len(v.nodes))}
	for _, p := range v.plans {
		if p.Stage != api.StageDrain {
			continue
		}
		names := p.Nodes
		if len(p.Left) > 0 {
			names = slices.DeleteFunc(slices.Clone(names), p.hasLeft)
		}
		s.party[p] = len(draining)
		draining = append(draining, p)
		s.parties = append(s.parties, drainplan.Party{Name: p.Name, Tiers: p.tiers, Tier: p.Tier, Nodes: names})
	}
	v.locate()
	for i, n := range v.nodes {
		s.node[n] = i
		shared := drainplan.Shared{Name: n.name}
		if v.decides(n) {
			shared = drainplan.Shared{Name: n.name, Targets: n.target.Targets, At: n.at, By: n.by, Drained: n.Drained}
		}
		s.nodes = append(s.nodes, shared)
	}
	return s, draining
}

// alike stands for the plans and the targets of a node. Thousands of nodes may have the same.
type alike struct {
	group   *group
	targets string
}

func (n *node) alike() alike { return alike{n.group, fmt.Sprint(n.target.Targets)} }

// locate finds out how far those nodes are of which only the targets are known.
func (v *inventory) locate() {
	reached := map[alike]*drainplan.Entry{}
	for _, n := range v.nodes {
		if n.at != nil || len(n.target.Targets) == 0 || !v.decides(n) {
			continue
		}
		key := n.alike()
		if _, known := reached[key]; !known {
			var plans []drainplan.Plan
			for _, p := range n.group.plans {
				if p.Stage == api.StageDrain {
					plans = append(plans, p.tiers)
				}
			}
			reached[key] = drainplan.Reached(plans, n.target.Targets)
		}
		n.at = reached[key]
	}
}

// look sees how it stands, with nothing decided.
func (v *inventory) look() {
	v.now, _ = v.survey()
	v.now.messages = drainplan.NewMessages(v.now.parties, v.now.nodes)
	v.sumNodes()
}

// resolve brings every node as far as its plans have come together, and decides what its maintenance is to be sent.
func (v *inventory) resolve(now time.Time) {
	s, draining := v.survey()
	v.forward(draining, s)
	r := drainplan.Resolve(s.parties, s.nodes)
	for i, p := range draining {
		p.Tier = r.Tiers[i]
	}
	for i, n := range v.nodes {
		if !v.decides(n) {
			r.Nodes[i] = s.nodes[i] // nothing is decided for it yet
			continue
		}
		n.target.Targets, n.at, n.by, n.Drained = r.Nodes[i].Targets, r.Nodes[i].At, r.Nodes[i].By, r.Nodes[i].Drained
	}
	for _, i := range r.Raised {
		if n := v.nodes[i]; v.decides(n) {
			n.Stale, n.Raised = true, n.target.Revision+1
		}
	}
	s.messages = r.Messages()
	v.now, v.ready, v.changed = s, false, false
	for _, p := range v.plans {
		p.compared = false
	}
	v.aim(now)
}

// forward notes, of plans that begin to drain, where others have gone further than they are.
func (v *inventory) forward(draining []*planEntry, s situation) {
	if !slices.ContainsFunc(draining, func(p *planEntry) bool { return !p.Begun }) {
		return
	}
	s.messages = drainplan.NewMessages(s.parties, s.nodes)
	for i, p := range draining {
		if p.Begun {
			continue
		}
		p.Begun = true
		var forwarded []string
		for _, name := range s.parties[i].Nodes {
			n := v.byName[name]
			if n == nil || !v.decides(n) {
				continue
			}
			if by := s.messages.Forwarders(i, s.node[n]); by != "" {
				forwarded = append(forwarded, fmt.Sprintf("node %s by %s", name, by))
			}
		}
		if len(forwarded) > 0 {
			p.Forwarded = "fast-forwarded on " + forwarded[0]
		}
		if more := len(forwarded) - 1; more > 0 {
			p.Forwarded += fmt.Sprintf(" and on %d more", more)
		}
	}
}

// aim decides what each maintenance is to be sent: its target as it is now, if it has to know of it. What it waits for in other words only is
// no reason to send it, before that has lasted: the words of a node in the middle of its tiers change twice for each.
func (v *inventory) aim(now time.Time) {
	gangs := v.gangs()
	for _, n := range v.nodes {
		if !n.isWanted() || !v.decides(n) {
			n.WordsAt = 0
			continue
		}
		t := v.targetOf(n, gangs)
		if kindOf(t.Waits) == kindOf(n.target.Waits) {
			n.WordsAt = 0
		} else if n.WordsAt == 0 {
			n.WordsAt = now.Add(wordsAfter).Unix()
		}
		if n.Stale || n.target.Revision == 0 || t.Last != n.target.Last || t.Further != n.target.Further || isOver(n.WordsAt, now) ||
			!slices.Equal(t.Plans, n.target.Plans) || !reflect.DeepEqual(t.Gang, n.target.Gang) {
			n.target, n.Stale, n.Unsent, n.WordsAt = t, false, true, 0
		}
	}
}

// isOver reports whether a time, in seconds since 1970, is set and has come.
func isOver(at int64, now time.Time) bool { return at > 0 && now.Unix() >= at }

// targetOf is the target of a node as it is now, with the next revision.
func (v *inventory) targetOf(n *node, asking gangs) api.NodeTarget {
	t := api.NodeTarget{Revision: n.target.Revision + 1, Targets: n.target.Targets, Gang: n.target.Gang, Last: true, Plans: n.group.names}
	if !n.isGranted() {
		t.Gang = asking.of(n)
	}
	for _, p := range n.group.plans {
		goesOn := p.Tier < p.tiers.Len()
		t.Last = t.Last && p.Stage == api.StageDrain && !goesOn
		t.Further = t.Further || p.Stage == api.StageDrain && goesOn && p.tiers.HasAfter(n.at)
	}
	t.Waits = v.waits(n)
	return t
}

// waits says what comes next for a node that is drained to its targets: what the first of its plans waits for that does.
func (v *inventory) waits(n *node) string {
	for _, p := range n.group.plans {
		place, drains := v.now.party[p]
		if !drains {
			return fmt.Sprintf("plan %s, which is at stage %s", p.Name, p.Stage)
		}
		if !n.Drained || p.Tier >= p.tiers.Len() {
			continue
		}
		return bounds.Words(p.Name+": "+v.now.messages.Of(place, v.now.node[n]), maxText)
	}
	return ""
}

// kindOf is what a message says, without the names of those who are waited for: they change with every node.
func kindOf(message string) string {
	kind, _, _ := strings.Cut(message, "Waiting for ")
	return kind
}

// progressOf is how a node, of a place in a plan, stands for the plan.
func (v *inventory) progressOf(p *planEntry, i int) api.SharedProgress {
	one := api.SharedProgress{Node: p.Nodes[i]}
	gone, left := p.Left[one.Node]
	n := p.member(i)
	switch {
	case left:
		one.Left, one.Phase, one.Message, one.Failed = true, gone.Phase, gone.Why, gone.Phase != api.Completed && gone.Phase != api.NodeGone
	case !p.holds(i):
		one.Left = true
	case n == nil:
		one.Message = (&node{}).state()
	default:
		one = n.shared()
		one.Message = v.messageOf(p, n)
	}
	return one
}

// shared is how a node stands for each of its plans, beside the message.
func (n *node) shared() api.SharedProgress {
	return api.SharedProgress{
		Node: n.name, RunID: n.Run, Phase: n.progress.Phase, Targets: n.target.Targets, Pending: n.progress.Pending, Evacuating: n.progress.Evacuating,
		Drained: n.Drained && len(n.target.Targets) > 0,
	}
}

func (v *inventory) messageOf(p *planEntry, n *node) string {
	place, drains := v.now.party[p]
	i, known := v.now.node[n]
	switch {
	case n.Stand != held && n.progress.Waiting != "":
		return n.state() + ": " + n.progress.Waiting
	case n.Stand != held:
		return n.state()
	case n.differs():
		return "Waiting for its maintenance to end, which another plan began with other settings."
	case v.awaited(n) != "":
		return fmt.Sprintf("Waiting for plan %s to say what it intends.", v.awaited(n))
	case !n.isGranted() || !drains || !known:
		return n.progress.Waiting
	default:
		return bounds.Cut(v.now.messages.Brief(place, i), bounds.Text)
	}
}
