// Package lockstep is the workflow that decides for all plans of strategy allAtOnce in a cluster how far each node is
// drained: a node that several plans hold has one maintenance, and none of them goes on alone (KEP-4212).
package lockstep

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
	"drydock/workflows/reset"
)

// lockstep is one run of Lockstep. It is made of parts, which share the core.
type lockstep struct {
	*core
	office   *office
	stock    *stock
	errands  *errands
	bulletin *bulletin
	watcher  *watcher
	// decided is when it was last decided how far nodes go.
	decided time.Time
}

// Lockstep decides for all plans of strategy allAtOnce how far each node is drained. There is one per cluster, under
// api.LockstepID, which a plan starts with the signal of its intent; it ends when no plan is left. Packed is what a run hands
// to the next, and nothing that anybody else gives.
func Lockstep(ctx workflow.Context, packed []byte) error {
	cluster, err := inbox.Only(ctx, "the lockstep", api.LockstepID)
	if err != nil {
		return err
	}
	c := &core{ctx: ctx, cluster: cluster, book: newBook(), dirty: true, changed: true}
	l := assemble(c)
	if err := inbox.Carried(ctx, packed, func(data []byte) error {
		defer l.bulletin.assumeTold()
		return l.unpack(data)
	}, c.note); err != nil {
		return err
	}
	if err := l.listen(); err != nil {
		return err
	}
	return reset.Run(ctx, l.wasReset, func(ctx workflow.Context) error {
		l.ctx = ctx
		return l.run()
	})
}

// assemble puts the parts together.
func assemble(c *core) *lockstep {
	l := &lockstep{core: c, stock: &stock{core: c}, errands: &errands{core: c}, watcher: &watcher{core: c}}
	l.bulletin = &bulletin{core: c}
	l.office = &office{core: c, heard: l.stock.heard, refuse: l.bulletin.refuse}
	l.bulletin.gone = l.office.doubt
	l.errands.mayEnd = func() bool { return l.stock.isComplete() && l.office.isIdle() }
	return l
}

// run decides whenever something happened, until no plan is left.
func (l *lockstep) run() error {
	if left := l.stock.until.Sub(l.now()); left > 0 {
		l.wakeIn(left) // the run before was waiting for this
	}
	for {
		l.dirty = false
		l.office.attend()
		switch {
		case l.leaving():
			l.watcher.stop()
			if l.isIdle() {
				return l.continueAsNew()
			}
		case l.step():
			return nil
		}
		l.describe()
		if err := workflow.Await(l.ctx, func() bool { return l.dirty }); err != nil {
			return err
		}
	}
}

// isIdle tells that nothing would be lost with this run.
func (l *lockstep) isIdle() bool {
	return l.inFlight == 0 && l.office.isIdle() && !l.unread() && workflow.AllHandlersFinished(l.ctx)
}

// step does what is to be done now, and tells whether it is all over.
func (l *lockstep) step() (over bool) {
	if !l.stock.known {
		l.stock.take()
		return false
	}
	if left := pace - l.now().Sub(l.decided); left > 0 && !l.decided.IsZero() && !l.book.ripe {
		if l.changed {
			l.wakeIn(left)
		}
		return false
	}
	if l.changed {
		l.book.hold()
		if l.stock.isOpen() {
			l.changed, l.decided = false, l.now()
			l.decide()
		}
	}
	l.stock.ask()
	l.errands.run()
	l.watcher.keep()
	return len(l.book.plans) == 0 && len(l.book.nodes) == 0 && len(l.book.silent) == 0 && l.isIdle()
}

// decide brings all nodes as far as their plans have come together, and has everybody told.
func (l *lockstep) decide() {
	s := l.book.resolve()
	l.rest()
	l.errands.aim(s)
	l.bulletin.tell(s)
}

// wasReset has everything found out anew: this run goes on from the past, and what was said since is not in its history.
func (l *lockstep) wasReset(ctx workflow.Context) (runID string, err error) {
	l.note("finding out anew how far nodes are", "this run was reset: what was said since is not in its history")
	l.stock.doubt()
	err = workflow.ExecuteActivity(call.Quick(ctx, "see which run this is"), call.Executions.ThisRun).Get(ctx, &runID)
	l.dirty = true
	return runID, err
}
