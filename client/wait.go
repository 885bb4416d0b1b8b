package client

import (
	"context"
	"errors"
	"time"

	"drydock.dev/drydock/api"
)

// Goal reports whether a maintenance is where somebody wants it to be, or why it will never be.
type Goal func(View) (reached bool, err error)

// Ready is the goal of whoever wants to work on the node: the requestor has it. A maintenance that ends without is an
// EndError, and one that became RequestorFailed an UndecidedError.
func Ready(v View) (reached bool, err error) {
	switch phase := v.Phase(); {
	case phase == api.Ready:
		return true, nil
	case phase == api.RequestorFailed:
		return false, &UndecidedError{View: v}
	case phase == api.Completed && v.WasReady():
		return true, nil
	case phase.Ended():
		return false, &EndError{View: v, BeforeReady: true}
	default:
		return false, nil
	}
}

// Accepted is the goal of whoever has started a maintenance: a worker has read its input and takes it. One that is refused
// is a RefusedInputError, any other end an EndError.
func Accepted(v View) (reached bool, err error) {
	switch {
	case v.Refused:
		return false, &RefusedInputError{Node: v.Node, Reason: v.Failure}
	case v.Running():
		return prepared(v.Status) && !releasing(v.Status), nil
	case v.Phase() == api.Completed:
		return true, nil
	default:
		return false, &EndError{View: v, BeforeReady: !v.WasReady()}
	}
}

// Ended is reached when a maintenance has ended, in whatever way.
func Ended(v View) (bool, error) { return !v.Running(), nil }

// Completed is the goal of whoever wants the node back in service. Any other end is an EndError, and a node that has
// failed its validation an UndecidedError.
func Completed(v View) (reached bool, err error) { return Ends(api.Completed)(v) }

// Ends is the goal of those for whom any other end than the one wanted is a failure.
func Ends(wanted api.Phase) Goal {
	return func(v View) (bool, error) {
		if v.Running() && wanted == api.Completed && v.IsUndecided() {
			return true, &UndecidedError{View: v}
		}
		if v.Running() {
			return false, nil
		}
		if v.Phase() == wanted {
			return true, nil
		}
		return true, &EndError{View: v}
	}
}

// Leaves is reached when a maintenance is known to be in another phase.
func Leaves(phase api.Phase) Goal {
	return func(v View) (bool, error) { return v.Phase() != "" && v.Phase() != phase, nil }
}

// Wait looks at a maintenance until the goal is reached or impossible, or ctx ends, whose cause it then returns. A
// server or a worker that does not answer is waited for, since the maintenance does not need the one who waits.
func (c *Client) Wait(ctx context.Context, m Maintenance, reached Goal) (View, error) {
	return c.WaitWatching(ctx, m, reached, func(View, error) {})
}

// WaitWatching is Wait, and calls watch after each look, a few times a second at first and then more rarely: with what
// was seen, or with what was seen before and the ErrUnreachable that the look met.
func (c *Client) WaitWatching(ctx context.Context, m Maintenance, reached Goal, watch func(View, error)) (View, error) {
	o := c.observer(m)
	var (
		pause time.Duration
		last  View
	)
	for {
		v, err := o.observe(ctx)
		err = failedCall("looking at the maintenance of "+m.Node, err)
		switch {
		case ctx.Err() != nil:
			// The look that was cut off knows less than the one before.
			if last.Status != nil {
				v = last
			}
			return v, context.Cause(ctx)
		case errors.Is(err, ErrUnreachable):
			watch(v, err)
		case err != nil:
			return v, err
		default:
			watch(v, nil)
			if ok, err := reached(v); ok || err != nil {
				return v, err
			}
			// What moves is looked at more often than what waits for hours.
			if moved(last, v) {
				pause = 0
			}
			last = v
		}
		pause = nextPause(pause)
		if !sleep(ctx, pause) {
			return v, context.Cause(ctx)
		}
	}
}

// moved reports whether something has happened that somebody would like to see.
func moved(before, now View) bool {
	if before.Phase() != now.Phase() || before.Status == nil || now.Status == nil {
		return (before.Status == nil) != (now.Status == nil) || before.Phase() != now.Phase()
	}
	a, b := before.Status, now.Status
	if a.WaitingFor != b.WaitingFor || a.Attempt != b.Attempt || a.Failure != b.Failure || (a.Drain == nil) != (b.Drain == nil) {
		return true
	}
	return a.Drain != nil && (a.Drain.Total != b.Drain.Total || a.Drain.Remaining != b.Drain.Remaining ||
		a.Drain.Terminating != b.Drain.Terminating || a.Drain.Tier != b.Drain.Tier || len(a.Drain.Blockers) != len(b.Drain.Blockers))
}

// nextPause grows from short, for what is over at once, to a pace that costs a server little.
func nextPause(previous time.Duration) time.Duration {
	const first, last = 200 * time.Millisecond, 1500 * time.Millisecond
	return min(last, max(first, previous*5/4))
}
