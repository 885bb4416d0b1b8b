package scheduler

import (
	"go.temporal.io/sdk/workflow"
)

// atOnce bounds the signals and activities under way, with the few that wait for nobody (to observe, to watch, to take
// the inventory) 500. A server refuses 2,000, and the workflow task that asks for more fails for ever.
const atOnce = 490

// command is a signal or an activity that may have to wait for its turn, or either or a timer that has begun.
type command struct {
	// key tells what it is about: of two that wait with the same key only the later is of use. Empty is none's.
	key   string
	start func() workflow.Future
	// future is what was begun, and then is called when it is ready. Decides says that everything has to be decided again after it.
	future  workflow.Future
	then    func(workflow.Future)
	decides bool
	// back puts back into the state what is left undone where the run ends before its turn comes; nil has nothing to.
	back func()
}

// commands has at most atOnce under way; the rest wait in order and follow as others come back.
type commands struct {
	*loop
	underWay int
	waiting  []*command
	// byKey are those that wait. It is only looked up in.
	byKey map[string]*command
}

func newCommands(l *loop) *commands { return &commands{loop: l, byKey: map[string]*command{}} }

// give has a command carried out as soon as there is room for it.
func (c *commands) give(next command) {
	if before := c.byKey[next.key]; next.key != "" && before != nil {
		*before = next
		return
	}
	if c.underWay < atOnce && len(c.waiting) == 0 {
		c.begin(&next)
		return
	}
	c.waiting = append(c.waiting, &next)
	if next.key != "" {
		c.byKey[next.key] = &next
	}
}

func (c *commands) begin(next *command) {
	c.underWay++
	done := func(future workflow.Future) {
		c.underWay--
		next.then(future)
		c.follow()
	}
	if next.decides {
		c.whenDone(next.start(), done)
	} else {
		c.whenDelivered(next.start(), done)
	}
}

func (c *commands) follow() {
	for c.underWay < atOnce && len(c.waiting) > 0 {
		next := c.waiting[0]
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
		delete(c.byKey, next.key)
		c.begin(next)
	}
}

// takeBack puts what waits back into the state, for the next run to do.
func (c *commands) takeBack() {
	waiting := c.waiting
	c.waiting, c.byKey = nil, map[string]*command{}
	for _, left := range waiting {
		if left.back != nil {
			left.back()
		}
	}
}
