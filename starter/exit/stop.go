package exit

import (
	"context"
	"errors"
	"time"
)

// Why a wait ended without what it waited for; both are causes of a cancelled context.
var (
	ErrTimedOut    = errors.New("timed out")
	ErrInterrupted = errors.New("interrupted")
)

// StopCause is ErrInterrupted or ErrTimedOut, whichever ended the context.
func StopCause(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrTimedOut) {
		return ErrTimedOut
	}
	return ErrInterrupted
}

// OrStopped is why ctx has ended, where that is what the error says.
func OrStopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return StopCause(ctx)
	}
	return err
}

// Waited is the error of a wait for what: where the wait was given up it says so, with the exit code.
func Waited(ctx context.Context, err error, what string) error {
	return GivenUp(OrStopped(ctx, err), "timed out waiting for "+what, "no longer waiting for "+what)
}

// GivenUp has an error that says why a wait was given up say it in these words, with the exit code.
func GivenUp(err error, timedOut, interrupted string) error {
	switch {
	case errors.Is(err, ErrTimedOut):
		return WithCode(TimedOut, errors.New(timedOut))
	case errors.Is(err, ErrInterrupted):
		return WithCode(Interrupted, errors.New(interrupted))
	default:
		return err
	}
}

// WithTimeout bounds a wait; 0 is no bound.
func WithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, ErrTimedOut)
}
