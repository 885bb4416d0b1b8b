package lockstep

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
)

const (
	// maxSignals continues the workflow as new well before the server's limit of signals a run.
	maxSignals = 5000
	// pace is the shortest time between two decisions: what happens meanwhile is decided about together. One that nodes wait
	// for is not put off.
	pace = time.Second
	// wordsAfter is how long it has to last that a node waits for something else before its maintenance is told so.
	wordsAfter = 5 * time.Second
	// tryAgain is the pause after something failed or was not answered for the first time. It doubles up to tryAgainMost.
	tryAgain     = 30 * time.Second
	tryAgainMost = 10 * time.Minute
	// maxNotes bounds what is remembered for people.
	maxNotes = 50
	// maxWords bounds each note, in bytes.
	maxWords = 500
)

// core is what all parts share.
type core struct {
	ctx     workflow.Context
	cluster string
	book    *book
	// dirty: something happened that the next decision may depend on. changed: plans or nodes did.
	dirty, changed bool
	// inFlight counts what has to come back before the workflow may continue as new.
	inFlight int
	// signals were taken by this run, which leaves after continueAfter of them.
	signals, continueAfter int
	unread                 func() bool
	notes                  []api.RecordedDecision
	// wakes are when the workflow has to wake up by itself, alarm is when it next does, zero where it does not.
	wakes []time.Time
	alarm time.Time
}

func (c *core) now() time.Time { return workflow.Now(c.ctx) }

// leaving tells whether to continue as new; from then on nothing new is begun.
func (c *core) leaving() bool {
	return workflow.GetInfo(c.ctx).GetContinueAsNewSuggested() || c.signals >= cmp.Or(c.continueAfter, maxSignals)
}

// note keeps for people what was refused, ignored or is worth to know; what recurs is kept once.
func (c *core) note(what, why string) {
	what, why = bounds.Cut(what, maxWords), bounds.Cut(why, maxWords)
	c.notes = slices.DeleteFunc(c.notes, func(e api.RecordedDecision) bool { return e.What == what && e.Why == why })
	c.notes = append(c.notes, api.RecordedDecision{At: c.now(), What: what, Why: why})
	c.notes = c.notes[max(len(c.notes)-maxNotes, 0):]
	workflow.GetLogger(c.ctx).Info("lockstep", "what", what, "why", why)
}

// does has something carried out that this run waits for, and takes what it came to.
func (c *core) does(what string, future workflow.Future, then func(workflow.Future)) {
	c.inFlight++
	workflow.GoNamed(c.ctx, what, func(ctx workflow.Context) {
		_ = workflow.Await(ctx, future.IsReady) // then reads what it came to
		c.inFlight--
		c.dirty, c.changed = true, true
		then(future)
	})
}

// wakeIn has everything looked at again after some time.
func (c *core) wakeIn(d time.Duration) {
	at := c.now().Add(d)
	if d > 2*time.Second {
		at = at.Truncate(time.Second).Add(time.Second) // of many, some have one timer
	}
	if i, set := slices.BinarySearchFunc(c.wakes, at, time.Time.Compare); !set {
		c.wakes = slices.Insert(c.wakes, i, at)
	}
	c.arm()
}

// arm sets a timer for the earliest of the times to wake up, where there is none that is as early.
func (c *core) arm() {
	if len(c.wakes) == 0 || !c.alarm.IsZero() && !c.alarm.After(c.wakes[0]) {
		return
	}
	at := c.wakes[0]
	c.alarm = at
	timer := workflow.NewTimerWithOptions(c.ctx, max(at.Sub(c.now()), time.Millisecond), workflow.TimerOptions{Summary: "look again"})
	workflow.GoNamed(c.ctx, "alarm", func(ctx workflow.Context) {
		if timer.Get(ctx, nil) != nil {
			return // the workflow is cancelled
		}
		c.dirty, c.changed = true, true
		c.wakes = slices.DeleteFunc(c.wakes, func(t time.Time) bool { return !t.After(c.now()) })
		if c.alarm.Equal(at) {
			c.alarm = time.Time{}
			c.arm()
		}
	})
}

// rest lets the other coroutines run: one that runs for a second is taken for one that hangs.
func (c *core) rest() {
	rested := false
	_ = workflow.Await(c.ctx, func() bool {
		defer func() { rested = true }()
		return rested
	})
}

// backoff is the pause after so many failures in a row.
func backoff(failures int) time.Duration {
	wait := tryAgain
	for range min(failures, 10) {
		wait = min(2*wait, tryAgainMost)
	}
	return wait
}

// postpone leaves a node alone for a while, longer each time.
func (c *core) postpone(n *node) {
	wait := backoff(n.tries)
	n.tries++
	n.notBefore = c.now().Add(wait).Unix()
	c.wakeIn(wait + time.Second)
}

// isDue tells whether something may be done for a node.
func (c *core) isDue(n *node) bool { return !n.busy && c.now().Unix() >= n.notBefore }
