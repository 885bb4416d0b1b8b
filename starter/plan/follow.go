package plan

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/terminal"
)

// followed are the states whose nodes are looked at again and again: those that are over are many.
var followed = []string{
	plan.Held.Word(), plan.Running.Word(), plan.Failed.Word(), plan.Skipped.Word(), plan.Waiting.Word(),
}

// followedNodes bounds a look.
const followedNodes = 1000

// follow shows how a plan comes along, a line whenever something has changed, until it has ended.
func follow(ctx context.Context, c *invocation.Connection, p *client.Plan, display *terminal.Display) (client.PlanView, error) {
	f := follower{display: display, clock: c.Clock, known: map[string]string{}}
	var last client.PlanView
	err := p.Watch(ctx, api.PlanStatusRequest{Limit: followedNodes, States: followed}, func(v client.PlanView, err error) bool {
		if f.answered(c, err); err != nil {
			return false
		}
		last = v
		f.see(v)
		return !v.Running()
	})
	display.Settle(p.Name)
	return last, err
}

// follower says what has changed since the last look at a plan.
type follower struct {
	display *terminal.Display
	clock   func() time.Time
	lost    bool
	silent  bool
	// known are the states of the nodes that were seen.
	known map[string]string
}

// answered says when the server stops answering, and when it answers again.
func (f *follower) answered(c *invocation.Connection, err error) {
	switch {
	case err != nil && !f.lost:
		f.display.Note("the Temporal server at %s does not answer (%v); trying again until it does", c.Address, err)
	case err == nil && f.lost:
		f.display.Note("the Temporal server at %s answers again", c.Address)
	}
	f.lost = err != nil
}

func (f *follower) see(v client.PlanView) {
	now := f.clock()
	if v.Unanswered != nil && v.Running() {
		if !f.silent {
			f.display.Note("%s", v.Unanswered)
		}
		f.silent = true
		return
	}
	f.silent = false
	if v.Status != nil {
		for _, n := range v.Status.Nodes {
			f.node(n, now)
		}
		if allThere(v.Status) {
			f.gone(v.Status)
		}
	}
	f.display.Update(v.Name, show.PlanLine(v.Summary(), now))
}

// node says that a node came into another state. Whose turn has not come has nothing to say.
func (f *follower) node(n api.PlanNode, now time.Time) {
	state := n.State
	if state == plan.Waiting.Word() && n.NotBefore.IsZero() {
		if _, begun := f.known[n.Node]; !begun {
			return
		}
	}
	if f.known[n.Node] == state {
		return
	}
	f.known[n.Node] = state
	text := state
	note := terminal.OneLine(terminal.Words(n.Note, now))
	if strings.HasPrefix(note, state+" ") { // the note says the state itself, and by whom
		text, note = note, ""
	}
	if !n.NotBefore.IsZero() {
		text += ", back at " + terminal.Clock(n.NotBefore, now)
	}
	f.display.Note("%s: %s%s", n.Node, text, terminal.Colon(note))
}

// allThere reports whether a page has every node that may have something to say: those whose turn has not come are the last.
func allThere(s *api.PlanStatus) bool {
	if s.NextOffset == 0 || len(s.Nodes) == 0 {
		return true
	}
	last := s.Nodes[len(s.Nodes)-1]
	return last.State == plan.Waiting.Word() && last.NotBefore.IsZero()
}

// gone says of nodes that were worked on, and are in none of the states that are looked at, that they are over.
func (f *follower) gone(s *api.PlanStatus) {
	there := map[string]bool{}
	for _, n := range s.Nodes {
		there[n.Node] = true
	}
	for _, name := range slices.Sorted(maps.Keys(f.known)) {
		if there[name] {
			continue
		}
		if state := f.known[name]; state == plan.Running.Word() || state == plan.Held.Word() {
			f.display.Note("%s: over", name)
		}
		delete(f.known, name)
	}
}
