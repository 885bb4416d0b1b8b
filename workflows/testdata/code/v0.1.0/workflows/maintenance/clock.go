package maintenance

import (
	"errors"
	"go.temporal.io/sdk/workflow"
	"time"
)

// clock is how a maintenance waits. Its context outlives every cancellation.
type clock struct {
	life workflow.Context
	// unread tells whether there are messages that were not looked at yet.
	unread func() bool
}

func (c *clock) now() time.Time { return workflow.Now(c.life) }

// awaitUpTo waits for a condition, at most for a time; ok tells that the condition came true. The timer goes when the
// wait is over: one left behind would wake the workflow for nothing. A coroutine waits on its own context.
func (c *clock) awaitUpTo(ctx workflow.Context, limit time.Duration, summary string, condition func() bool) (ok bool, err error) {
	waiting, cancel := workflow.WithCancel(ctx)
	defer cancel()
	ok, err = workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: limit, TimerOptions: workflow.TimerOptions{Summary: summary},
	}, condition)
	if err != nil || ok {
		return ok, err
	}
	// A message that came before the time was over counts, also where no worker ran to read it. One that was handed to
	// the reader is not pending any more: the reader has its turn first.
	turns := 0
	if err := workflow.Await(waiting, func() bool { turns++; return turns > 1 && !c.unread() }); err != nil {
		return false, err
	}
	return condition(), nil
}

// await waits where no cancellation reaches, so there is no error to handle.
func (c *clock) await(condition func() bool) {
	if err := workflow.Await(c.life, condition); err != nil {
		workflow.GetLogger(c.life).Error("wait interrupted", "error", err)
	}
}

// pauseOrLeave pauses between two tries, where no cancellation reaches, unless the maintenance is to go on in a new run.
func (c *clock) pauseOrLeave(d time.Duration, summary string, l *leave) error {
	if _, err := c.awaitUpTo(c.life, d, summary, l.due); err != nil {
		return err
	}
	if l.due() {
		return errContinue
	}
	return nil
}

// errContinue: the maintenance goes on in a new run.
var errContinue = errors.New("goes on in a new run")

// maxEvents is how long a history gets before the maintenance goes on in a new run, where the server does not suggest it
// earlier. A server ends what has 51,200.
const maxEvents = 8000

// leave tells when a maintenance goes on in a new run: at a point where it waits and nothing of it is under way.
type leave struct {
	life workflow.Context
	// idle tells, each for its part, that nothing would be lost with this run.
	idle []func() bool
}

// due tells that the history is long enough and that nothing would be lost.
func (l *leave) due() bool {
	info := workflow.GetInfo(l.life)
	if !info.GetContinueAsNewSuggested() && info.GetCurrentHistoryLength() < maxEvents {
		return false
	}
	for _, idle := range l.idle {
		if !idle() {
			return false
		}
	}
	return workflow.AllHandlersFinished(l.life)
}

// backoff is a pause that doubles with every try. What fails again and again is tried once an hour.
type backoff struct{ first, last, next time.Duration }

func (b *backoff) pause() time.Duration {
	b.next = max(b.first, min(2*b.next, b.last))
	return b.next
}

// pauseMost bounds the pause between tries of what does not succeed.
const pauseMost = time.Hour
