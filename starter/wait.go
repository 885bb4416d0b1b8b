package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drydock/api"
)

// goal tells whether a maintenance is where a command wants it to be, or why it will never be.
type goal func(view) (reached bool, err error)

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

// await observes a maintenance until goal is reached or impossible, or ctx ends, whose cause it then returns. A
// server that does not answer is waited for, since the maintenance does not need us.
func (w *waiter) await(ctx context.Context, t target, reached goal) (view, error) {
	o := w.conn.observer(t)
	var (
		pause   time.Duration
		lost    bool
		hints   hints
		lastKey string
	)
	for {
		v, err := o.observe(ctx)
		switch {
		case ctx.Err() != nil:
			return v, stopCause(ctx)
		case err != nil && unreachable(err):
			if !lost {
				w.show.note("the Temporal server at %s does not answer (%v); trying again until it does", w.conn.address, plainCause(err))
			}
			lost = true
		case err != nil:
			return v, w.conn.explain("looking at the maintenance of "+t.Node, err)
		default:
			if lost {
				w.show.note("the Temporal server at %s answers again", w.conn.address)
			}
			lost = false
			w.show.update(t.ID, lineOf(v, w.conn.self, w.conn.now()))
			if ok, err := reached(v); ok || err != nil {
				return v, err
			}
			if v.Unanswered != nil && hints.due(w.conn.now()) {
				w.show.note("%s", v.Unanswered)
			}
			// What moves is looked at more often than what waits for hours.
			if key := progress(v); key != lastKey {
				pause, lastKey = 0, key
			}
		}
		pause = nextPause(pause)
		if !sleep(ctx, pause) {
			return v, stopCause(ctx)
		}
	}
}

// nextPause grows from short, for what is over at once, to a pace that costs a server little.
func nextPause(previous time.Duration) time.Duration {
	const first, last = 200 * time.Millisecond, 1500 * time.Millisecond
	return min(last, max(first, previous*5/4))
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
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

// becomesReady is the goal of start and exec: the requestor has the node.
func becomesReady(v view) (bool, error) {
	switch phase := v.phase(); {
	case phase == api.Ready:
		return true, nil
	case phase == api.RequestorFailed:
		return false, fmt.Errorf("%s is RequestorFailed%s (retry, done, or cancel --release decides what becomes of it)", v.Node, colon(v.message()))
	case phase == api.Completed && v.wasReady():
		return true, nil
	case phase.Ended():
		return false, withCode(max(endCode(phase), exitFailed), fmt.Errorf("the maintenance of %s ended %s before the node was ready%s", v.Node, phase, colon(v.message())))
	default:
		return false, nil
	}
}

// endsAs is the goal of those for whom any other end is a failure.
func endsAs(wanted api.Phase) goal {
	return func(v view) (bool, error) {
		if v.running() && wanted == api.Completed && v.Status != nil && undecided(v.Status) {
			return true, withCode(exitFailed, fmt.Errorf("%s stays out of service: %s (retry, validated, or cancel --release decides what becomes of it)",
				v.Node, v.Status.Failure))
		}
		if v.running() {
			return false, nil
		}
		if v.phase() == wanted {
			return true, nil
		}
		return true, withCode(max(endCode(v.phase()), exitFailed), fmt.Errorf("the maintenance of %s ended %s%s", v.Node, v.phase(), colon(v.message())))
	}
}

// completes is the goal of most.
func completes(v view) (bool, error) { return endsAs(api.Completed)(v) }

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
