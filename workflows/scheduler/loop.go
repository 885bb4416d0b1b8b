package scheduler

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/workflow"
)

// maxSignals continues the workflow as new well before the server's limit of signals per run.
const maxSignals = 5000

// loop is what all parts share with the main loop: they wake it, and it does not continue as new while something of
// theirs is under way.
type loop struct {
	ctx workflow.Context
	// dirty: something happened that a decision may depend on. woken: something else did.
	dirty, woken bool
	// inFlight counts what has to come back before the workflow may continue as new.
	inFlight int
	// signals were taken by this run, which leaves after continueAfter of them.
	signals, continueAfter int
}

func (l *loop) now() time.Time { return workflow.Now(l.ctx) }

// await waits until something happened, and tells whether a decision may depend on it.
func (l *loop) await() (dirty bool, err error) {
	if err := workflow.Await(l.ctx, func() bool { return l.dirty || l.woken }); err != nil {
		return false, err
	}
	dirty = l.dirty
	l.dirty, l.woken = false, false
	return dirty, nil
}

// leaving tells whether to continue as new; from then on nothing new is begun.
func (l *loop) leaving() bool {
	return workflow.GetInfo(l.ctx).GetContinueAsNewSuggested() || l.signals >= cmp.Or(l.continueAfter, maxSignals)
}

// idle tells that nothing would be lost with this run.
func (l *loop) idle() bool { return l.inFlight == 0 && workflow.AllHandlersFinished(l.ctx) }

// whenDone calls back when a future is ready, for which this run has to wait, and has everything decided again.
func (l *loop) whenDone(future workflow.Future, then func()) {
	l.inFlight++
	l.whenReady(future, func() {
		l.inFlight--
		then()
	})
}

// whenReady calls back when a future is ready, and has everything decided again. This run may end before that.
func (l *loop) whenReady(future workflow.Future, then func()) {
	l.onceReady(future, func() {
		then()
		l.dirty = true
	})
}

// whenDelivered is whenDone for what needs no decision: thousands of deliveries would be thousands of decisions.
func (l *loop) whenDelivered(future workflow.Future, then func()) {
	l.inFlight++
	l.onceReady(future, func() {
		l.inFlight--
		l.woken = true
		then()
	})
}

func (l *loop) onceReady(future workflow.Future, then func()) {
	workflow.Go(l.ctx, func(ctx workflow.Context) {
		if err := workflow.Await(ctx, future.IsReady); err != nil {
			return
		}
		then()
	})
}
