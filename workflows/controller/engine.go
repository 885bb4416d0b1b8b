package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/inbox"
)

// Bounds of what is under way. A workflow task takes 4 MB of commands, and a server 2,000 pending ones of a workflow.
const (
	maxUnderWay = 400
	// maxStarts and maxBytes bound what begins in one turn.
	maxStarts = 100
	maxBytes  = 1 << 20
	// maxMore is how many turns a decision may be split into.
	maxMore = 100
)

// A run continues as new when the server suggests it, and after maxEvents or with maxChildren at the latest. It first waits for what is under
// way, and begins nothing. Where that does not end within leaveWithin, the run goes on as usual for as long, unless its history is longer
// than maxHistory.
const (
	maxEvents   = 5000
	maxChildren = 1000
	maxHistory  = 20000
	leaveWithin = 5 * time.Minute
)

// minTimer is the shortest timer. A decision that asks again and again to be taken at once waits for minTimer first, and for maxSpin at most.
const (
	minTimer = time.Second
	maxSpin  = time.Minute
)

// engine runs the turns of one run. One coroutine does everything, in a fixed order.
type engine[C Controller] struct {
	root, ctx workflow.Context // ctx is disconnected
	c         C
	base      *Base
	mail      *intake[C]
	effects   []*running
	children  []*running
	watches   []*watching
	timer     timer
	pace      pacing
	leave     leaving
	// events counts what this run has taken.
	events int
	// wasReset: a reset was noticed, and the controller does not know of it yet.
	wasReset bool
	// cancelled: the controller knows that this run was cancelled.
	cancelled bool
	page      Page
}

// pacing is when the next turn is.
type pacing struct {
	// again: decide without waiting for an event.
	again bool
	// wake is when the frame has to act by itself, and why the reason.
	wake time.Time
	why  string
	// more counts the turns of a split decision. spin is the present pause of a decision that asks again and again to be taken at once.
	more int
	spin time.Duration
}

// leaving is the state of a run that is to continue as new: it waits until a time for what is under way, or goes on and does not try before
// another.
type leaving struct {
	until, notBefore time.Time
	// closing: the run ends or continues as new once nothing is under way and all updates are answered.
	closing bool
}

// running is an effect that is under way, or a child that this run has started and that has not ended.
type running struct {
	Effect
	future workflow.Future
	child  workflow.ChildWorkflowFuture
	same   uint64
	stale  bool
	// run is that of a child that has started.
	run string
}

func (r *running) isReady() bool { return r.future.IsReady() }

func (e *engine[C]) now() time.Time { return workflow.Now(e.ctx) }

// run takes turns until the workflow ends or continues as new.
func (e *engine[C]) run() (end *End, err error) {
	for e.pace.again = true; ; {
		if err := workflow.Await(e.ctx, e.happened); err != nil {
			return nil, err // nothing cancels this context
		}
		e.pace.again, e.pace.wake = false, time.Time{}
		taken := e.take()
		now := e.now()
		leaves := e.leaves(now)
		t := e.turn(now, leaves)
		d := e.c.Decide(t)
		if leaves {
			e.mail.settle(time.Time{})
			e.wakeAt(e.leave.until, "continue as new")
			e.timer.set(e.ctx, e.pace.wake, e.pace.why)
		} else {
			e.watch(d.Watches, now)
			e.begin(d, t)
			if d.End != nil {
				e.mail.settle(time.Time{})
			}
			e.wakeAt(e.mail.settle(now), "answer an update")
			e.arm(now, d, taken)
		}
		e.show(now)
		if !leaves {
			e.mirror()
		}
		if e.leave.closing = leaves || d.End != nil && !e.pace.again; e.leave.closing && e.isIdle() {
			e.stopWatches()
			e.timer.stop()
			return d.End, nil
		}
	}
}

// happened reports whether a turn is due. It changes nothing.
func (e *engine[C]) happened() bool {
	return e.pace.again || e.wasReset || e.isCancelled() || e.mail.unread() || e.timer.fired() || e.leave.closing && e.isIdle() ||
		slices.ContainsFunc(e.effects, (*running).isReady) || slices.ContainsFunc(e.children, (*running).isReady) ||
		slices.ContainsFunc(e.watches, func(w *watching) bool { return w.future != nil && w.future.IsReady() })
}

func (e *engine[C]) isCancelled() bool { return e.root.Err() != nil && !e.cancelled }

// isIdle reports whether nothing would be lost with this run.
func (e *engine[C]) isIdle() bool {
	return len(e.effects) == 0 && !e.mail.unread() && workflow.AllHandlersFinished(e.ctx)
}

// take processes all that has happened. A child's start comes before its messages, and those before its end: the server records them in this
// order, and one workflow task may have all three. Messages that came with a cancellation are processed first.
func (e *engine[C]) take() (taken int) {
	if e.wasReset {
		e.takeReset()
		taken++
	}
	taken += e.takeEffects(true)
	taken += e.mail.take()
	if e.isCancelled() {
		e.cancelled = true
		e.base.Note(e.now(), "the workflow was cancelled", "somebody has requested that")
		e.c.Cancel(e.now())
		taken++
	}
	taken += e.takeEffects(false) + e.takeReports() + e.takeEnds()
	e.events += taken
	if e.timer.fired() {
		e.timer = timer{}
		taken++
	}
	return taken
}

// takeReset discards what the frame knows from before the reset, and has the controller do so.
func (e *engine[C]) takeReset() {
	e.wasReset = false
	e.base.Note(e.now(), "finding out anew what there is", "this run was reset: what was done since is not in its history")
	for _, r := range e.effects {
		r.stale = true
	}
	e.children = nil // the server reports their ends to the run that was reset
	e.stopWatches()
	e.c.Reset(e.now())
}

// takeEffects takes the outcomes of starts, or those of other effects, in the order in which they were begun.
func (e *engine[C]) takeEffects(starts bool) (taken int) {
	isDone := func(r *running) bool { return r.isReady() && (r.child != nil) == starts }
	done := slices.DeleteFunc(slices.Clone(e.effects), func(r *running) bool { return !isDone(r) })
	e.effects = slices.DeleteFunc(e.effects, isDone)
	for _, r := range done {
		m, now := r.meta(), e.now()
		o := Outcome{Key: m.Key, Begun: r.Effect, Stale: r.stale}
		if r.child != nil {
			var run workflow.Execution
			o.Err = r.future.Get(e.ctx, &run)
			o.Run = run.RunID
			if o.Err == nil && !r.stale {
				e.children = append(e.children, &running{Effect: r.Effect, run: run.RunID, future: r.child})
			}
		} else {
			o.take(e.ctx, r.future)
		}
		if m.Key != mirrored && !e.feedBack(o, m.Summary, now) {
			e.base.repeats(m, r.same, now)
		}
	}
	return len(done)
}

// feedBack feeds the outcome of an effect, or the failure of a watch, back. What has failed backs off, unless Outcome has set a backoff: it
// reports whether one is set.
func (e *engine[C]) feedBack(o Outcome, summary string, now time.Time) (judged bool) {
	e.base.judging, e.base.judged = o.Key, false
	e.c.Outcome(o, now)
	if o.Err == nil || e.base.judged {
		return e.base.judged
	}
	why := call.Cause(o.Err)
	switch o.Begun.(type) {
	case Activity, Watch:
		e.base.Warn(now, summary, "failed: "+why)
	}
	if temporal.IsWorkflowExecutionAlreadyStartedError(o.Err) || call.IsNobody(o.Err) {
		why = "" // the controller judges that
	}
	e.base.Fails(o.Key, summary, why, now)
	return true
}

func (e *engine[C]) takeEnds() (taken int) {
	ended := slices.DeleteFunc(slices.Clone(e.children), func(r *running) bool { return !r.isReady() })
	e.children = slices.DeleteFunc(e.children, (*running).isReady)
	for _, c := range ended {
		o := Outcome{Key: c.meta().Key, What: Ended, Begun: c.Effect, Run: c.run}
		o.take(e.ctx, c.future)
		var terminated *temporal.TerminatedError
		if errors.As(o.Err, &terminated) {
			o.What = Terminated
		}
		e.c.Outcome(o, e.now())
	}
	return len(ended)
}

// leaves reports whether the run is to continue as new, so that it begins nothing.
func (e *engine[C]) leaves(now time.Time) bool {
	info := workflow.GetInfo(e.ctx)
	if !info.GetContinueAsNewSuggested() && e.events < cmp.Or(e.base.ContinueAfter, maxEvents) && len(e.children) < maxChildren {
		return false
	}
	switch {
	case now.Before(e.leave.notBefore):
		e.wakeAt(e.leave.notBefore, "continue as new")
		return false
	case e.leave.until.IsZero(), !now.Before(e.leave.until) && info.GetCurrentHistoryLength() >= maxHistory:
		e.leave.until = now.Add(leaveWithin)
	case !now.Before(e.leave.until):
		e.leave.until, e.leave.notBefore = time.Time{}, now.Add(leaveWithin)
		return false
	}
	return true
}

func (e *engine[C]) turn(now time.Time, leaves bool) Turn {
	t := Turn{Now: now, underWay: map[Key]bool{}, kinds: map[string]int{}, children: map[string]bool{}}
	for _, r := range e.effects {
		t.add(r.meta().Key)
	}
	for _, c := range e.children {
		t.children[c.run] = true
	}
	if !leaves {
		t.room = max(maxUnderWay-len(e.effects), 0)
	}
	return t
}

// begin begins the effects that are neither under way nor backing off, while there is room.
func (e *engine[C]) begin(d Decision, t Turn) {
	wanted, starts, bytes := map[Key]bool{}, 0, 0
	for _, w := range d.Watches {
		wanted[w.Key] = true
	}
	for _, x := range d.Effects {
		m := x.meta()
		wanted[m.Key] = true
		_, isStart := x.(Start)
		if t.UnderWay(m.Key) || len(e.effects) >= maxUnderWay || bytes >= maxBytes || isStart && starts >= maxStarts ||
			m.AtOnce > 0 && t.kinds[m.Key.Kind] >= m.AtOnce {
			continue // one that is under way comes back, and then there is another turn
		}
		if until := e.base.rests(x, t.Now); !until.IsZero() {
			e.wakeAt(until, "try again: "+m.Summary)
			continue
		}
		same, size := digest(x.content())
		r := &running{Effect: x, same: same, future: x.begin(e.ctx)}
		if isStart {
			r.child = r.future.(workflow.ChildWorkflowFuture)
			r.future = r.child.GetChildWorkflowExecution()
			starts++
		}
		bytes += size
		t.add(m.Key)
		e.effects = append(e.effects, r)
	}
	for _, r := range e.effects {
		wanted[r.meta().Key] = true
	}
	e.base.forget(wanted, t.Now)
}

// wakeAt schedules the next turn no later than a time; the zero time changes nothing.
func (e *engine[C]) wakeAt(at time.Time, why string) {
	if !at.IsZero() && (e.pace.wake.IsZero() || at.Before(e.pace.wake)) {
		e.pace.wake, e.pace.why = at, why
	}
}

// arm schedules the next turn. A Wake in the past means to decide again now. A decision that asks for that twice in a row, with no event in
// between, is a mistake in Decide and would go on forever: it backs off.
func (e *engine[C]) arm(now time.Time, d Decision, taken int) {
	due := !d.Wake.IsZero() && !d.Wake.After(now)
	switch {
	case d.More && e.pace.more < maxMore:
		e.pace.more++
		e.pace.again = true
	case due && taken > 0 && !d.More:
		e.pace.again = true
	case due || d.More:
		e.pace.spin = min(max(2*e.pace.spin, minTimer), maxSpin)
		e.pace.more = 0
		e.base.Warn(now, "a decision asks to be taken again at once", fmt.Sprintf("nothing has happened since (%s): this is a mistake in Drydock", d.Why))
		e.wakeAt(now.Add(e.pace.spin), "back off from a decision that does not end")
	default:
		e.pace.more, e.pace.spin = 0, 0
		e.wakeAt(d.Wake, d.Why)
	}
	if e.pace.again {
		inbox.Rest(e.ctx)
		return
	}
	e.timer.set(e.ctx, e.pace.wake, e.pace.why)
}
