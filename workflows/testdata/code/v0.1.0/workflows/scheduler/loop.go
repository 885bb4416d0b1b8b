package scheduler

import (
	"cmp"
	"go.temporal.io/sdk/workflow"
	"slices"
	"time"
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
	// unread tells whether there are messages that were not looked at yet.
	unread func() bool
	// awaited is what has to come back, attended by one coroutine.
	awaited  []awaited
	attended bool
}

// awaited is what is to be done when something comes back.
type awaited struct {
	future workflow.Future
	then   func()
}

// doubled is a pause that doubles with every failure before it, up to most.
func doubled(first, most time.Duration, failures int) time.Duration {
	wait := first
	for range min(failures, 20) {
		wait = min(2*wait, most)
	}
	return wait
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
func (l *loop) idle() bool {
	return l.inFlight == 0 && !l.unread() && workflow.AllHandlersFinished(l.ctx)
}

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

// onceReady calls back from one coroutine for all: hundreds that each wait for one thing would all be woken by every event.
func (l *loop) onceReady(future workflow.Future, then func()) {
	l.awaited = append(l.awaited, awaited{future, then})
	if !l.attended {
		l.attended = true
		workflow.GoNamed(l.ctx, "what comes back", l.attend)
	}
}

func (l *loop) attend(ctx workflow.Context) {
	ready := func(one awaited) bool { return one.future.IsReady() }
	for {
		if err := workflow.Await(ctx, func() bool { return slices.ContainsFunc(l.awaited, ready) }); err != nil {
			return
		}
		for i := slices.IndexFunc(l.awaited, ready); i >= 0; i = slices.IndexFunc(l.awaited, ready) {
			one := l.awaited[i]
			l.awaited = slices.Delete(l.awaited, i, i+1)
			one.then()
		}
	}
}
