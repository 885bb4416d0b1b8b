package scheduler

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/workflows/inbox"
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
	// messages are those that came; some may not be looked at yet.
	messages *inbox.Inbox
	// awaited are the commands that have to come back, attended by one coroutine.
	awaited  []command
	attended bool
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
	return l.inFlight == 0 && !l.messages.Unread() && workflow.AllHandlersFinished(l.ctx)
}

// whenDone calls back when a future is ready, for which this run has to wait, and has everything decided again.
func (l *loop) whenDone(future workflow.Future, then func(workflow.Future)) {
	l.inFlight++
	l.whenReady(future, func(future workflow.Future) {
		l.inFlight--
		then(future)
	})
}

// whenReady calls back when a future is ready, and has everything decided again. This run may end before that.
func (l *loop) whenReady(future workflow.Future, then func(workflow.Future)) {
	l.onceReady(future, func(future workflow.Future) {
		then(future)
		l.dirty = true
	})
}

// whenDelivered is whenDone for what needs no decision: thousands of deliveries would be thousands of decisions.
func (l *loop) whenDelivered(future workflow.Future, then func(workflow.Future)) {
	l.inFlight++
	l.onceReady(future, func(future workflow.Future) {
		l.inFlight--
		l.woken = true
		then(future)
	})
}

// onceReady calls back from one coroutine for all: hundreds that each wait for one thing would all be woken by every event.
func (l *loop) onceReady(future workflow.Future, then func(workflow.Future)) {
	l.awaited = append(l.awaited, command{future: future, then: then})
	if !l.attended {
		l.attended = true
		workflow.GoNamed(l.ctx, "what comes back", l.attend)
	}
}

func (l *loop) attend(ctx workflow.Context) {
	ready := func(one command) bool { return one.future.IsReady() }
	for {
		if err := workflow.Await(ctx, func() bool { return slices.ContainsFunc(l.awaited, ready) }); err != nil {
			return
		}
		for i := slices.IndexFunc(l.awaited, ready); i >= 0; i = slices.IndexFunc(l.awaited, ready) {
			one := l.awaited[i]
			l.awaited = slices.Delete(l.awaited, i, i+1)
			one.then(one.future)
		}
	}
}
