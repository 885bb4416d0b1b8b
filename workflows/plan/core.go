package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/settings"
	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/rollout"
)

// core is what all parts of a plan share.
type core struct {
	identity
	// ctx is a context that no cancellation reaches: a plan that is cancelled ends what it began.
	ctx   workflow.Context
	state state
	// dirty: something happened that the next decision may depend on.
	dirty bool
	// places are where nodes stand in the list; nil where that has to be found out.
	places map[string]int
	unread func() bool
	// crowded tells that the run has about as many children as a server takes, told that no channel waits for anything.
	crowded, told func() bool
	// summarize says in one line how the plan stands.
	summarize func() string
	// staging is the part of the status about stages; nil of a plan that has none.
	staging func() *api.PlanStages
	// doubts count what is being found out that nothing can be begun without.
	doubts int
	// signals were taken by this run.
	signals  int
	prepared settings.Prepared
	// troubles are what fails and is tried again.
	troubles []api.Trouble
}

func (c *core) now() time.Time { return workflow.Now(c.ctx) }

const (
	// maxSignals continues the plan as new well before the server's limit of signals a run.
	maxSignals = 5000
	// maxHistory is how many events there may be before nothing is waited for any more.
	maxHistory = 20000
)

// leaving tells whether to continue as new; from then on nothing new is begun.
func (c *core) leaving() bool {
	info, most := workflow.GetInfo(c.ctx), cmp.Or(c.state.ContinueAfter, maxSignals)
	if !info.GetContinueAsNewSuggested() && c.signals < most && !c.crowded() {
		return false
	}
	// A channel that does not answer is no reason to begin nothing, while there is room.
	return c.told() || info.GetCurrentHistoryLength() > maxHistory || c.signals >= most+most/2
}

// enter changes the phase and notes when.
func (c *core) enter(phase api.PlanPhase, why string) {
	c.state.Phase, c.state.Since, c.state.Failure = phase, c.now(), why
	c.dirty = true
	c.attribute(api.AttributePhase.ValueSet(string(phase)))
}

// attribute sets search attributes where the namespace has them.
func (c *core) attribute(updates ...temporal.SearchAttributeUpdate) {
	if !c.prepared.SearchAttributes {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(c.ctx, updates...); err != nil {
		workflow.GetLogger(c.ctx).Error("setting search attributes", "error", err)
	}
}

// summary says in one line how many nodes of the plan are done.
func (c *core) summary() string {
	counts := rollout.Count(c.state.Nodes)
	text := fmt.Sprintf("%d of %d nodes are done", counts.Done, counts.Total)
	for _, part := range []struct {
		n    int
		what string
	}{{counts.Failures(), "failed"}, {counts.Running, "running"}, {counts.Waiting, "waiting"}, {counts.Skipped, "skipped"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	if c.state.Failure != "" {
		text += ": " + c.state.Failure
	}
	return text
}

// place is where a node stands in the list.
func (c *core) place(name string) (int, bool) {
	if c.places == nil {
		c.places = make(map[string]int, len(c.state.Nodes))
		for i := range c.state.Nodes {
			c.places[c.state.Nodes[i].Name] = i
		}
	}
	i, ok := c.places[name]
	return i, ok
}

func (c *core) node(name string) *rollout.Node {
	i, ok := c.place(name)
	if !ok {
		return nil
	}
	return &c.state.Nodes[i]
}

// change writes to a node by its name.
func (c *core) change(name string, write func(*rollout.Node)) {
	if n := c.node(name); n != nil {
		write(n)
		n.Note = bounds.Cut(n.Note, maxNote)
	}
}

// maxNote bounds what is kept of why a node is in its state: there may be thousands.
const maxNote = 200

// said is how the plan signs its messages to maintenances.
func (c *core) said(why string) api.Message {
	return api.Message{By: "plan " + c.name, Comment: bounds.Cut(why, bounds.Text)}
}

// maxHeard bounds the IDs of messages that are kept, maxMessages the messages.
const (
	maxHeard    = 200
	maxMessages = 30
)

func (c *core) knows(id string) bool {
	return slices.Contains(c.state.Heard, id)
}

// received records a message and what became of it.
func (c *core) received(name string, who api.Message, outcome api.Outcome, effect string) {
	entry := api.Received{
		At: c.now(), ID: who.ID, Name: name, By: who.By, Comment: who.Comment, Outcome: outcome, Effect: effect,
	}
	bounds.Fit(&entry)
	c.state.Messages = append(c.state.Messages, entry)
	c.state.Messages = c.state.Messages[max(len(c.state.Messages)-maxMessages, 0):]
	if who.ID != "" {
		c.state.Heard = append(c.state.Heard, who.ID)
		c.state.Heard = c.state.Heard[max(len(c.state.Heard)-maxHeard, 0):]
	}
	c.dirty = true
}

// open refuses messages to a plan that is being ended, or to an earlier plan of its name.
func (c *core) open(run string) error {
	if run != "" && run != c.runID && run != workflow.GetInfo(c.ctx).WorkflowExecution.RunID {
		return fmt.Errorf("it is meant for run %s, and this is run %s", run, c.runID)
	}
	if c.state.Stop != "" || c.state.Phase.Ended() {
		return errors.New("the plan is ending")
	}
	return nil
}
