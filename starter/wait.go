package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drydock/api"
	"drydock/client"
)

// waiter waits for maintenances and shows how they come along.
type waiter struct {
	conn *connection
	show *display
}

const (
	// The hint that nobody works on the maintenance comes when the wait begins, again soon, and then rarely.
	secondHintAfter = 10 * time.Second
	laterHintsEvery = time.Minute
)

// await observes a maintenance until goal is reached or impossible, or ctx ends: then it is errTimedOut or
// errInterrupted. A server that does not answer is waited for, since the maintenance does not need us.
func (w *waiter) await(ctx context.Context, m client.Maintenance, goal client.Goal) (client.View, error) {
	var (
		lost  bool
		hints hints
	)
	v, err := w.conn.WaitWatching(ctx, m, goal, func(v client.View, err error) {
		switch {
		case err != nil && !lost:
			w.show.note("the Temporal server at %s does not answer (%v); trying again until it does", w.conn.address, plainCause(err))
		case err == nil && lost:
			w.show.note("the Temporal server at %s answers again", w.conn.address)
		}
		lost = err != nil
		if lost {
			return
		}
		w.show.update(m.WorkflowID, lineOf(v, w.conn.self, w.conn.now()))
		if v.Unanswered != nil && hints.due(w.conn.now()) {
			w.show.note("%s", v.Unanswered)
		}
	})
	return v, w.conn.explain(goalMissed(orStopped(ctx, err)))
}

// hints says when the same hint is due again.
type hints struct {
	given int
	last  time.Time
}

func (h *hints) due(now time.Time) bool {
	wait := laterHintsEvery
	switch h.given {
	case 0:
		wait = 0
	case 1:
		wait = secondHintAfter
	}
	if h.given > 0 && now.Sub(h.last) < wait {
		return false
	}
	h.given++
	h.last = now
	return true
}

// stopCause tells an interruption from a time that has run out.
func stopCause(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errTimedOut) {
		return errTimedOut
	}
	return errInterrupted
}

// orStopped is why ctx has ended, where that is what the error says.
func orStopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return stopCause(ctx)
	}
	return err
}

// withTimeout bounds a wait; 0 is no bound.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errTimedOut)
}

// checkTimeout checks a --timeout, which is of no use where nothing is waited for.
func checkTimeout(timeout time.Duration, waits bool) error {
	switch {
	case timeout < 0:
		return usageError("--timeout %s: want 0 or more", timeout)
	case timeout > 0 && !waits:
		return usageError("--timeout is for --wait")
	}
	return nil
}

// goalMissed adds to the error of a goal that is out of reach who can do what, and the exit code.
func goalMissed(err error) error {
	var (
		ended     *client.EndError
		undecided *client.UndecidedError
	)
	switch {
	case errors.As(err, &ended):
		return withCode(max(endCode(ended.View.Phase()), exitFailed), err)
	case errors.As(err, &undecided) && undecided.View.Phase() == api.RequestorFailed:
		return fmt.Errorf("%w (retry, done, or cancel --release decides what becomes of it)", err)
	case errors.As(err, &undecided):
		return withCode(exitFailed, fmt.Errorf("%w (retry, validated, or cancel --release decides what becomes of it)", err))
	default:
		return err
	}
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// stopped adds to the error of a wait that was given up what happens to the maintenance, and how to look again.
func (c *connection) stopped(err error, node, what string) error {
	switch {
	case errors.Is(err, errTimedOut):
		err = withCode(exitTimedOut, fmt.Errorf("timed out waiting for %s", what))
	case errors.Is(err, errInterrupted):
		err = withCode(exitInterrupted, fmt.Errorf("no longer waiting for %s", what))
	default:
		return err
	}
	return hint(err, `The maintenance goes on: "%s watch %s" looks again, "%s cancel %s" ends it.`, c.program, node, c.program, node)
}
