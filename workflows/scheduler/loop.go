package scheduler

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/workflows/inbox"
)

// maxSignals continues the workflow as new well before the server's limit of signals per run.
const maxSignals = 5000

// loop is what all parts share with the main loop: they wake it, and it does not continue as new while they wait for something.
type loop struct {
	ctx workflow.Context
	*State
	// dirty: something happened that a decision may depend on. woken: something else did.
	dirty, woken bool
	// unfinished counts what has to come back before the workflow may continue as new.
	unfinished int
	// signals counts those of this run, which ends after ContinueAfter of them.
	signals  int
	messages *inbox.Inbox
	// awaited are the commands that have to come back. One coroutine waits for all.
	awaited  []command
	awaiting bool
}

func (l *loop) now() time.Time { return workflow.Now(l.ctx) }

// leaving reports whether this run is to continue as new. It then begins nothing new.
func (l *loop) leaving() bool {
	return workflow.GetInfo(l.ctx).GetContinueAsNewSuggested() || l.signals >= cmp.Or(l.ContinueAfter, maxSignals)
}

// idle reports whether nothing would be lost with this run.
func (l *loop) idle() bool {
	return l.unfinished == 0 && !l.messages.Unread() && workflow.AllHandlersFinished(l.ctx)
}

// whenDone calls then when a future is ready, and has everything decided again. This run waits for it.
func (l *loop) whenDone(future workflow.Future, then func(workflow.Future)) {
	l.unfinished++
	l.whenReady(future, func(future workflow.Future) {
		l.unfinished--
		then(future)
	})
}

// whenReady is whenDone for a future that this run does not wait for before it ends.
func (l *loop) whenReady(future workflow.Future, then func(workflow.Future)) {
	l.onceReady(future, func(future workflow.Future) {
		then(future)
		l.dirty = true
	})
}

// after calls then once a time is over. The timer is lost with this run: what it stands for, the next run finds again.
func (l *loop) after(d time.Duration, summary string, then func()) {
	timer := workflow.NewTimerWithOptions(l.ctx, d, workflow.TimerOptions{Summary: summary})
	l.whenReady(timer, func(workflow.Future) { then() })
}

// onceReady calls then from one coroutine for all futures: of hundreds, one each, every event would wake all.
func (l *loop) onceReady(future workflow.Future, then func(workflow.Future)) {
	l.awaited = append(l.awaited, command{future: future, then: then})
	if !l.awaiting {
		l.awaiting = true
		workflow.GoNamed(l.ctx, "what comes back", l.awaitReady)
	}
}

func (l *loop) awaitReady(ctx workflow.Context) {
	ready := func(one command) bool { return one.future.IsReady() }
	for workflow.Await(ctx, func() bool { return slices.ContainsFunc(l.awaited, ready) }) == nil {
		for i := slices.IndexFunc(l.awaited, ready); i >= 0; i = slices.IndexFunc(l.awaited, ready) {
			one := l.awaited[i]
			l.awaited = slices.Delete(l.awaited, i, i+1)
			one.then(one.future)
		}
	}
}
