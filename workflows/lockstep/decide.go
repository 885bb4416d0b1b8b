package lockstep

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/drainplan"
	"drydock/rules/schedule"
)

// situation is who drains what at one moment: a copy, for what is said of it later.
type situation struct {
	parties  []drainplan.Party
	nodes    []drainplan.Shared
	messages drainplan.Messages
	// held are the nodes of which something was decided.
	held []bool
	// party and node are the places of plans, by their runs, and of nodes. They are only looked up in.
	party, node map[string]int
}

// survey is how it stands, with nothing decided and without messages.
func (b *book) survey() (s situation, draining []*plan) {
	s = situation{party: map[string]int{}, node: make(map[string]int, len(b.nodes))}
	for _, p := range b.plans {
		if p.Stage != api.StageDrain {
			continue
		}
		names := p.Nodes
		if len(p.left) > 0 {
			names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, left := p.left[name]; return left })
		}
		s.party[p.RunID] = len(draining)
		draining = append(draining, p)
		s.parties = append(s.parties, drainplan.Party{Name: p.Name, Tiers: p.tiers, Tier: p.tier, Nodes: names})
	}
	for i, n := range b.nodes {
		s.node[n.name] = i
		shared := drainplan.Shared{Name: n.name}
		if b.decides(n) {
			n.find()
			shared = drainplan.Shared{Name: n.name, Targets: n.sent.Targets, At: n.at, By: n.by, Drained: n.drained}
		}
		s.nodes, s.held = append(s.nodes, shared), append(s.held, b.decides(n))
	}
	return s, draining
}

// present is how it stands, with nothing decided.
func (b *book) present() situation {
	s, _ := b.survey()
	s.messages = drainplan.NewMessages(s.parties, s.nodes)
	return s
}

// resolve brings every node as far as its plans have come together. It tells what it came to.
func (b *book) resolve() situation {
	s, draining := b.survey()
	b.forward(draining, s)
	r := drainplan.Resolve(s.parties, s.nodes)
	for i, p := range draining {
		p.tier, s.parties[i].Tier = r.Tiers[i], r.Tiers[i]
	}
	for i, n := range b.nodes {
		if !b.decides(n) {
			r.Nodes[i] = s.nodes[i] // nothing is decided for it yet
			continue
		}
		n.sent.Targets, n.at, n.by, n.drained = r.Nodes[i].Targets, r.Nodes[i].At, r.Nodes[i].By, r.Nodes[i].Drained
	}
	for _, i := range r.Raised {
		if n := b.nodes[i]; b.decides(n) {
			n.stale, n.raised = true, n.sent.Revision+1
		}
	}
	b.ripe = false
	b.countUndrained()
	s.nodes = r.Nodes
	s.messages = drainplan.NewMessages(s.parties, s.nodes)
	return s
}

// find finds out how far a node is of which that is not known.
func (n *node) find() {
	if n.at != nil || len(n.sent.Targets) == 0 {
		return
	}
	var plans []drainplan.Plan
	for _, p := range n.holders {
		if p.Stage == api.StageDrain {
			plans = append(plans, p.tiers)
		}
	}
	n.at = drainplan.Reached(plans, n.sent.Targets)
}

// forward notes, of plans that begin to drain, where others have gone further than they are.
func (b *book) forward(draining []*plan, s situation) {
	if !slices.ContainsFunc(draining, func(p *plan) bool { return !p.begun }) {
		return
	}
	s.messages = drainplan.NewMessages(s.parties, s.nodes)
	for i, p := range draining {
		if p.begun {
			continue
		}
		p.begun = true
		count, first := 0, ""
		for _, name := range s.parties[i].Nodes {
			n := b.byName[name]
			if n == nil || !b.decides(n) {
				continue
			}
			if by := s.messages.Forwarders(i, s.node[name]); by != "" {
				if count++; count == 1 {
					first = fmt.Sprintf("node %s by %s", name, by)
				}
			}
		}
		if count > 0 {
			p.forwarded = "fast-forwarded on " + first
			if count > 1 {
				p.forwarded += fmt.Sprintf(" and on %d more", count-1)
			}
		}
	}
}

// aim is the target of a node as of now, and whether it has to hear of it. What it waits for in other words only is no
// reason to tell it.
func (b *book) aim(i int, s situation, asking gangs, now time.Time) (api.NodeTarget, bool) {
	n := b.nodes[i]
	t := api.NodeTarget{Run: n.run, Targets: n.sent.Targets, Gang: n.sent.Gang, Last: len(n.holders) > 0}
	if !n.isGranted() {
		t.Gang = asking.of(n)
	}
	for _, p := range n.holders {
		t.Plans = append(t.Plans, p.Name)
		if p.Stage != api.StageDrain || p.tier < p.tiers.Len() {
			t.Last = false
		}
		t.Further = t.Further || p.Stage == api.StageDrain && p.tier < p.tiers.Len() && p.tiers.HasAfter(n.at)
	}
	t.Waits = b.waits(n, i, s)
	changed := n.stale || n.sent.Revision == 0 || t.Last != n.sent.Last || t.Further != n.sent.Further ||
		!slices.Equal(t.Plans, n.sent.Plans) || !equalGangs(t.Gang, n.sent.Gang) || n.wordsDue(kindOf(t.Waits) != kindOf(n.sent.Waits), now)
	t.Revision = n.sent.Revision + 1
	return t, changed
}

// wordsDue tells that a maintenance is to hear other words than it knows: once they have lasted, since those of a node in the
// middle of its tiers change twice for each.
func (n *node) wordsDue(differ bool, now time.Time) bool {
	if !differ {
		n.wordsSince = time.Time{}
		return false
	}
	if n.wordsSince.IsZero() {
		n.wordsSince = now
	}
	return now.Sub(n.wordsSince) >= wordsAfter
}

// waits says what comes next for a node that is drained to its targets: what the first of its plans waits for that does.
func (b *book) waits(n *node, i int, s situation) string {
	for _, p := range n.holders {
		place, drains := s.party[p.RunID]
		if !drains {
			return fmt.Sprintf("plan %s is at stage %s", p.Name, p.Stage)
		}
		if !n.drained || p.tier >= p.tiers.Len() {
			continue
		}
		return bounds.Cut(p.Name+": "+s.messages.Of(place, i), maxSaid)
	}
	return ""
}

func equalGangs(a, b *schedule.Gang) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// kindOf is what a message says, without the names of those who are waited for: they change with every node.
func kindOf(message string) string {
	kind, _, _ := strings.Cut(message, "Waiting for ")
	return kind
}

// stateOf tells a plan of one of its nodes.
func (b *book) stateOf(p *plan, name string, s situation) api.SharedProgress {
	one := api.SharedProgress{Node: name}
	if gone, left := p.left[name]; left {
		one.Left, one.Phase, one.Message, one.Failed = true, gone.Phase, gone.Why, gone.Failed
		return one
	}
	if !b.holds(p, name) {
		one.Left = true
		return one
	}
	n := b.byName[name]
	if n == nil {
		one.Message = wanted.String()
		return one
	}
	one.RunID, one.Phase, one.Targets = n.run, n.said.Phase, n.sent.Targets
	one.Pending, one.Evacuating, one.Drained = n.said.Pending, n.said.Evacuating, n.drained && len(n.sent.Targets) > 0
	place, drains := s.party[p.RunID]
	i, known := s.node[name]
	switch {
	case n.stand != held:
		one.Message = n.stand.String()
		if n.said.Waiting != "" {
			one.Message += ": " + n.said.Waiting
		}
	case n.differs():
		one.Message = "Waiting for its maintenance to end, which another plan began with other settings."
	case n.awaited(b.silent) != "":
		one.Message = fmt.Sprintf("Waiting for plan %s to say what it intends.", n.awaited(b.silent))
	case !n.isGranted() || !drains || !known:
		one.Message = n.said.Waiting
	default:
		one.Message = bounds.Cut(s.messages.Of(place, i), bounds.Text)
	}
	return one
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
