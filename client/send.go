package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"

	"drydock.dev/drydock/api"
)

const (
	// effectTimeout is how long a worker may take to act upon a message that has arrived.
	effectTimeout = 30 * time.Second
	// recordedGrace is how long the effect may be missing once the message is known to have been read.
	recordedGrace = 2 * time.Second
)

// Sent is what became of a message.
type Sent struct {
	// View is the maintenance with the effect; before the message where Already or Unanswered is set.
	View View
	// Already says in words that the message had nothing left to do; empty where it was sent and had its effect.
	Already string
	// Unanswered says why nobody has acted upon the message yet: it is recorded, and takes effect when a worker runs.
	// Only a cancellation is sent without an answer.
	Unanswered error
}

// Send sends a maintenance a message and waits for the effect, half a minute at most. It looks first, and sends nothing if the message has
// nothing left to do or the maintenance would ignore it. Errors are ErrUnanswered, ErrEnded, NotNowError, UnknownPodError, IgnoredError,
// NoEffectError and CallError.
func (c *Client) Send(ctx context.Context, to Maintenance, m Message, comment string) (Sent, error) {
	p, err := c.Prepare(ctx, to, m)
	if err != nil || p.Already != "" {
		return Sent{View: p.View, Already: p.Already}, err
	}
	return p.Send(ctx, comment)
}

// Prepared is a message that a maintenance has been looked at for.
type Prepared struct {
	// View is what was seen; its Unanswered is set where the message can be sent all the same.
	View View
	// Already says in words that the message has nothing left to do.
	Already string

	client   *Client
	message  Message
	observer *observer
}

// Prepare looks at a maintenance and checks whether a message would be heeded, as Send does before it sends. It is for
// those who want to know, or to ask somebody, before they send.
func (c *Client) Prepare(ctx context.Context, to Maintenance, m Message) (Prepared, error) {
	p := Prepared{client: c, message: m, observer: c.observer(to)}
	var err error
	if p.View, err = p.observer.settled(ctx); err != nil {
		if errors.Is(err, ErrUnanswered) && m.unseen {
			return p, nil
		}
		return p, err
	}
	if v := p.View; !v.Running() {
		return p, fmt.Errorf("the maintenance of %s %w: %s%s", to.Node, ErrEnded, v.Phase(), colon(v.Message()))
	}
	p.Already, err = m.check(p.View.Status)
	return p, err
}

// Send sends the message and waits for its effect. A signal is durable before anybody acts upon it; the effect is what
// the status says afterwards.
func (p Prepared) Send(ctx context.Context, comment string) (Sent, error) {
	if p.View.Unanswered != nil {
		return Sent{View: p.View, Unanswered: p.View.Unanswered}, p.client.Signal(ctx, p.View.Maintenance, p.message, comment)
	}
	before := p.View.Status
	to := addressee{Message: p.client.says(comment), run: before.RunID, status: before}
	if err := p.client.server.signal(ctx, p.View.Maintenance, p.message.name, p.message.payload(to)); err != nil {
		return Sent{View: p.View}, err
	}
	w := effectWait{server: p.client.server, observer: p.observer, before: before, message: p.message, who: to.Message}
	return w.await(ctx)
}

// Signal sends a message without looking at the maintenance and without waiting for anything: it is durable, and is
// ignored where it does not fit.
func (c *Client) Signal(ctx context.Context, to Maintenance, m Message, comment string) error {
	return c.server.signal(ctx, to, m.name, m.payload(addressee{Message: c.says(comment), run: to.FirstRunID}))
}

// says is who says what, under an ID by which the outcome is found.
func (c *Client) says(comment string) api.Message {
	return api.Message{ID: uuid.NewString(), By: c.options.By, Comment: comment}
}

func (s *server) signal(ctx context.Context, to Maintenance, name string, payload any) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	// Without a run ID: the message says which maintenance it is meant for, and that may go on in a new run any time.
	err := s.temporal.SignalWorkflow(ctx, to.WorkflowID, "", name, payload)
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return fmt.Errorf("the maintenance of %s %w", to.Node, ErrEnded)
	}
	return failedCall("sending "+name, err)
}

// effectWait waits for the effect of a message that was sent.
type effectWait struct {
	server   *server
	observer *observer
	before   *api.Status
	message  Message
	who      api.Message

	// received is the maintenance's record of the message, readAt when that was first seen.
	received *api.Received
	readAt   time.Time
}

// await returns when the effect is there. A maintenance that has ended meanwhile has acted upon the message.
func (w *effectWait) await(ctx context.Context) (Sent, error) {
	deadline := w.server.now().Add(effectTimeout)
	var pause time.Duration
	for {
		v, err := w.observer.observe(ctx)
		if err != nil && ctx.Err() == nil && !unreachable(err) {
			return Sent{View: v}, failedCall("looking for the effect of "+w.message.name, err)
		}
		if err == nil {
			if sent, done, err := w.judge(v); done || err != nil {
				return sent, err
			}
		}
		if w.server.now().After(deadline) {
			return Sent{View: v}, &NoEffectError{Message: w.message.name, Node: v.Node, Received: w.received, Waited: effectTimeout, Unanswered: v.Unanswered}
		}
		if pause = nextPause(pause); !sleep(ctx, pause) {
			return Sent{View: v}, context.Cause(ctx)
		}
	}
}

// judge reports whether what was seen is the end of the wait.
func (w *effectWait) judge(v View) (sent Sent, done bool, err error) {
	entry, received := outcomeOf(v.Status, w.who.ID)
	// First of all: what looks like the effect is then somebody else's doing.
	if received && ignored(entry) {
		sent, err := w.wasIgnored(v, entry)
		return sent, true, err
	}
	if !v.Running() || v.Status != nil && w.message.effect(w.before, v.Status) {
		return Sent{View: v}, true, nil
	}
	if !received {
		return Sent{}, false, nil
	}
	if w.readAt.IsZero() {
		w.readAt = w.server.now()
	}
	w.received = &entry
	if w.server.now().Sub(w.readAt) > recordedGrace && !w.message.slow {
		return Sent{View: v}, true, &NoEffectError{Message: w.message.name, Node: v.Node, Received: w.received}
	}
	return Sent{}, false, nil
}

// wasIgnored is an error, unless the message would not be sent now because what it is for has come about.
func (w *effectWait) wasIgnored(v View, entry api.Received) (Sent, error) {
	if already, err := w.message.check(v.Status); err == nil && already != "" {
		return Sent{View: v, Already: already}, nil
	}
	return Sent{View: v}, &IgnoredError{Message: w.message.name, Node: v.Node, Reason: strings.TrimPrefix(entry.Effect, ignoredPrefix)}
}
