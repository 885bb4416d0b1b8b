package scheduler

import (
	"go.temporal.io/sdk/workflow"
)

// maxUnderWay bounds the signals and activities under way, with the few that are not counted (to observe, to watch, to take the
// inventory) 500. A server refuses 2,000, and the workflow task that asks for more fails for ever.
const maxUnderWay = 490

// command is a signal or an activity that may have to wait until there is room for it, or any future that was begun.
type command struct {
	// key is what the command is about: of two that wait with the same key the later replaces the earlier. Empty replaces none.
	key   string
	start func() workflow.Future
	// then is called when the future is ready. With decides, everything is decided again after it.
	future  workflow.Future
	then    func(workflow.Future)
	decides bool
	// keep puts into the state what is left undone where the run ends before there is room; nil keeps nothing.
	keep func()
}

// commands has at most maxUnderWay under way; the rest wait in order.
type commands struct {
	*loop
	underWay int
	waiting  []*command
	// byKey are the waiting ones. It is not ranged over.
	byKey map[string]*command
}

// add carries a command out as soon as there is room for it.
func (c *commands) add(next command) {
	if before := c.byKey[next.key]; next.key != "" && before != nil {
		*before = next
		return
	}
	if c.underWay < maxUnderWay && len(c.waiting) == 0 {
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
	c.unfinished++
	c.onceReady(next.start(), func(future workflow.Future) {
		c.underWay--
		c.unfinished--
		next.then(future)
		c.woken, c.dirty = true, c.dirty || next.decides // a decision per delivery would be too slow with thousands of them
		c.beginWaiting()
	})
}

func (c *commands) beginWaiting() {
	for c.underWay < maxUnderWay && len(c.waiting) > 0 {
		next := c.waiting[0]
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
		delete(c.byKey, next.key)
		c.begin(next)
	}
}

// keepWaiting leaves the waiting commands to the next run.
func (c *commands) keepWaiting() {
	for _, left := range c.waiting {
		if left.keep != nil {
			left.keep()
		}
	}
	c.waiting, c.byKey = nil, map[string]*command{}
}
