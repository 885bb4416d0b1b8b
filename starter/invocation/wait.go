package invocation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// Observer gets what is seen of a maintenance.
type Observer interface{ Seen(client.View) }

// Waiter waits for maintenances and shows how they come along.
type Waiter struct {
	Conn *Connection
	Show *terminal.Display
	// Observer gets every look at a maintenance; nil if Show is enough.
	Observer Observer
}

const (
	// The hint that nobody works on the maintenance comes when that is certain, again soon, and then rarely.
	firstHintAfter  = 10 * time.Second
	secondHintAfter = 10 * time.Second
	laterHintsEvery = time.Minute
)

// Await observes a maintenance until goal is reached or impossible, or ctx ends: then it is errTimedOut or
// errInterrupted. A server that does not answer is waited for, since the maintenance does not need us.
func (w *Waiter) Await(ctx context.Context, m client.Maintenance, goal client.Goal) (client.View, error) {
	var (
		lost  bool
		hints hints
	)
	v, err := w.Conn.WaitWatching(ctx, m, goal, func(v client.View, err error) {
		switch {
		case err != nil && !lost:
			w.Show.Note("the Temporal server at %s does not answer (%v); trying again until it does", w.Conn.Address, plainCause(err))
		case err == nil && lost:
			w.Show.Note("the Temporal server at %s answers again", w.Conn.Address)
		}
		lost = err != nil
		if lost {
			return
		}
		if w.Observer != nil {
			w.Observer.Seen(v)
		}
		w.Show.Update(m.WorkflowID, show.LineOf(v, w.Conn.self, w.Conn.Clock()))
		if hints.due(v.Unanswered, w.Conn.Clock()) {
			w.Show.Note("%s", v.Unanswered)
		}
	})
	return v, w.Conn.Explain(goalMissed(exit.OrStopped(ctx, err)))
}

// hints says when the hint is due that nobody answers.
type hints struct {
	given int
	last  time.Time
	// silent is when the present silence was first seen.
	silent time.Time
}

func (h *hints) due(unanswered error, now time.Time) bool {
	if unanswered == nil {
		h.silent = time.Time{}
		return false
	}
	if h.silent.IsZero() {
		h.silent = now
	}
	wait := laterHintsEvery
	switch {
	case h.given == 0 && !gone(unanswered) && now.Sub(h.silent) < firstHintAfter:
		return false
	case h.given == 0:
		wait = 0
	case h.given == 1:
		wait = secondHintAfter
	}
	if h.given > 0 && now.Sub(h.last) < wait {
		return false
	}
	h.given++
	h.last = now
	return true
}

// gone reports whether there is no worker for sure. Any other silence may be that of one with its hands full.
func gone(unanswered error) bool {
	var noWorker *client.NoWorkerError
	return errors.As(unanswered, &noWorker) && !noWorker.Silent
}

// goalMissed adds to the error of a goal that is out of reach who can do what, and the exit code.
func goalMissed(err error) error {
	var (
		ended     *client.EndError
		undecided *client.UndecidedError
	)
	switch {
	case errors.As(err, &ended):
		return exit.WithCode(max(exit.EndCode(ended.View.Phase()), exit.Failed), err)
	case errors.As(err, &undecided) && undecided.View.Phase() == api.RequestorFailed:
		return fmt.Errorf("%w (retry, done, or cancel --release decides what becomes of it)", err)
	case errors.As(err, &undecided):
		return exit.WithCode(exit.Failed, fmt.Errorf("%w (retry, validated, or cancel --release decides what becomes of it)", err))
	default:
		return err
	}
}

// Stopped adds to the error of a wait that was given up what the maintenance waits for, as far as it was seen, what
// happens to it, and how to look again.
func (c *Connection) Stopped(err error, v client.View, what string) error {
	if !errors.Is(err, exit.ErrTimedOut) && !errors.Is(err, exit.ErrInterrupted) {
		return err
	}
	if v.Status != nil {
		what += "; it is " + terminal.Words(views.Progress(v.Known()), c.Clock())
	}
	return exit.Hint(exit.GivenUp(err, "timed out waiting for "+what, "no longer waiting for "+what), `The maintenance goes on: "%s watch %s" looks again, "%s cancel %s" ends it.`,
		c.Program, v.Node, c.Program, v.Node)
}
