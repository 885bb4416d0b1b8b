package controller

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/workflows/call"
)

// timer is the one timer of a run.
type timer struct {
	at     time.Time
	future workflow.Future
	cancel workflow.CancelFunc
}

func (t *timer) fired() bool { return t.future != nil && t.future.IsReady() }

// set makes the timer fire at a time, at the latest. A timer that fires earlier is kept, and set again when it has fired.
func (t *timer) set(ctx workflow.Context, at time.Time, why string) {
	switch {
	case at.IsZero():
		t.stop()
		return
	case t.future != nil && !t.at.After(at):
		return
	}
	t.stop()
	now := workflow.Now(ctx)
	wait := max(at.Sub(now), minTimer)
	ctx, cancel := workflow.WithCancel(ctx)
	*t = timer{at: now.Add(wait), cancel: cancel}
	t.future = workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: call.Short(why)})
}

func (t *timer) stop() {
	if t.future != nil {
		t.cancel()
	}
	*t = timer{}
}
