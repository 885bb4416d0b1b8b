package main

import (
	"slices"
	"time"
)

// observationLag is how much later than an operator's client the scheduler may see that a node is in service again, or not
// any more: a worker that was killed observes nothing meanwhile.
const observationLag = 90 * time.Second

// ceiling bounds a count that the scheduler keeps within a limit. A limit is judged when a slot is granted, so that what was
// granted under a higher one, and what happened since, is allowed for: the bound rises with a higher limit at once, and
// falls to a lower one only by as many as were given back.
type ceiling struct {
	// limit is the highest of those that may be in force.
	limit int
	bound int
	// lag is how much later the scheduler may know of what it does not do itself.
	lag  time.Duration
	owed []time.Time
}

func newCeiling(limit int, lag time.Duration) *ceiling {
	return &ceiling{limit: limit, bound: limit, lag: lag}
}

// set puts the highest of the limits that may be in force from now on. What was given back before does not lower the bound to them.
func (c *ceiling) set(now time.Time, limits ...int) {
	c.at(now)
	c.limit = slices.Max(limits)
	c.bound = max(c.bound, c.limit)
}

// raise allows for one that came without a grant.
func (c *ceiling) raise() { c.bound++ }

// lower takes note of one that was given back.
func (c *ceiling) lower(at time.Time) { c.owed = append(c.owed, at.Add(c.lag)) }

// at is the bound at a time.
func (c *ceiling) at(now time.Time) int {
	for len(c.owed) > 0 && !c.owed[0].After(now) {
		c.bound = max(c.limit, c.bound-1)
		c.owed = c.owed[1:]
	}
	return c.bound
}
