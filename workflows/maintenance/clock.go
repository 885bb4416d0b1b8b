package maintenance

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// clock is how a maintenance waits. Its context outlives every cancellation.
type clock struct {
	life workflow.Context
	// unread tells whether there are messages that were not looked at yet.
	unread func() bool
}

func (c *clock) now() time.Time { return workflow.Now(c.life) }

// awaitUpTo waits for a condition, at most for a time; ok tells that the condition came true. The timer goes when the
// wait is over: one left behind would wake the workflow for nothing.
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
	if workflow.GetVersion(c.life, "reader-first", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		turns = 1
	}
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

// pause sleeps where no cancellation reaches, so there is no error to handle.
func (c *clock) pause(d time.Duration) {
	if err := workflow.Sleep(c.life, d); err != nil {
		workflow.GetLogger(c.life).Error("pause interrupted", "error", err)
	}
}
