package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"

	"drydock/api"
)

// message is something that can be told to a maintenance.
type message struct {
	// name is the signal.
	name string
	// payload is what the signal carries.
	payload func(to addressee) any
	// check looks at the maintenance before anything is sent: it returns a non-empty already if the message has
	// nothing left to do, and an error if the maintenance would ignore it.
	check func(s *api.Status) (already string, err error)
	// danger asks, in a question, whether to do what is not easily undone; empty where there is nothing to ask. The
	// question is put to agree, whose error keeps the message from being sent.
	danger func(s *api.Status) (question string)
	agree  func(question string) error
	// effect tells whether the message has done what it is for.
	effect func(before, now *api.Status) bool
	// slow tells that the effect comes some time after the message was read, as a running step has to end first.
	slow bool
	// said describes the effect.
	said func(now *api.Status) string
	// unseen allows to send it where no worker can say what the phase is: whoever wants out must not have to wait.
	unseen bool
}

// addressee is what a payload may need to know.
type addressee struct {
	api.Message
	// run keeps a late message from reaching the next maintenance of the node.
	run string
	// status is what the check has seen; nil where no worker answered.
	status *api.Status
}

const (
	// effectTimeout is how long a worker may take to act upon a message that has arrived.
	effectTimeout = 30 * time.Second
	// recordedGrace is how long the effect may be missing once the message is known to have been read.
	recordedGrace = 2 * time.Second
)

// errEnded marks the errors of messages that come too late.
var errEnded = errors.New("has ended meanwhile")

// send tells a maintenance something and waits for the effect. Signals are durable before anybody acts upon them;
// the effect is what the status says afterwards.
func (c *connection) send(ctx context.Context, t target, m message, comment string) (v view, said string, err error) {
	o := c.observer(t)
	look := func() (v view, already string, err error) {
		if v, err = o.settled(ctx); err != nil {
			return v, "", err
		}
		if !v.running() {
			return v, "", fmt.Errorf("the maintenance of %s %w: %s%s", t.Node, errEnded, v.phase(), colon(v.message()))
		}
		already, err = m.check(v.Status)
		return v, already, err
	}
	before, already, err := look()
	if errors.Is(err, errUnanswered) && m.unseen {
		to := addressee{Message: api.Message{By: c.by, Comment: comment}, run: before.Run}
		said := m.name + " is recorded and takes effect when a worker runs: " + before.Unanswered.Error()
		return before, said, c.signal(ctx, before.target, m.name, m.payload(to))
	}
	if err == nil && already == "" && m.danger != nil {
		before, already, err = m.agreed(before, look)
	}
	if err != nil || already != "" {
		return before, already, err
	}
	to := addressee{Message: api.Message{By: c.by, Comment: comment}, run: before.Status.RunID, status: before.Status}
	if err := c.signal(ctx, before.target, m.name, m.payload(to)); err != nil {
		return before, "", err
	}
	now, already, err := c.effectOf(ctx, o, before.Status, m, to.Message)
	if err != nil || already != "" {
		return now, already, err
	}
	if !now.running() {
		return now, "the maintenance ended " + string(now.phase()) + colon(now.message()), nil
	}
	return now, m.said(now.Status), nil
}

// agreed asks whether to send a dangerous message. The answer may take long: afterwards the message must still mean
// what was agreed to.
func (m message) agreed(v view, look func() (view, string, error)) (now view, already string, err error) {
	question := m.danger(v.Status)
	if question == "" {
		return v, "", nil
	}
	if err := m.agree(question); err != nil {
		return v, "", err
	}
	now, already, err = look()
	if err == nil && already == "" && m.danger(now.Status) != question {
		err = hint(fmt.Errorf("%s has moved on meanwhile, and %s would now mean something else; nothing was sent", v.Node, m.name), "Say it again.")
	}
	return now, already, err
}

func (c *connection) signal(ctx context.Context, t target, name string, payload any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.SignalWorkflow(ctx, t.ID, t.Run, name, payload)
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return fmt.Errorf("the maintenance of %s %w", t.Node, errEnded)
	}
	return c.explain("sending "+name, err)
}

// effectOf waits for the effect of a message that was sent. A maintenance that has ended meanwhile has acted upon it.
// Already is not empty where the message was ignored and there was nothing left to do.
func (c *connection) effectOf(ctx context.Context, o *observer, before *api.Status, m message, who api.Message) (_ view, already string, _ error) {
	deadline := c.now().Add(effectTimeout)
	var read time.Time
	var heard api.Received
	var pause time.Duration
	for {
		v, err := o.observe(ctx)
		if err != nil && ctx.Err() == nil && !unreachable(err) {
			return v, "", c.explain("looking for the effect of "+m.name, err)
		}
		if err == nil {
			entry, received := newlyReceived(before, v.Status, m.name, who)
			// First of all: what looks like the effect is then somebody else's doing.
			if received && ignored(entry) {
				return m.wasIgnored(v, entry)
			}
			if !v.running() || v.Status != nil && m.effect(before, v.Status) {
				return v, "", nil
			}
			if received {
				if read.IsZero() {
					read = c.now()
				}
				heard = entry
				if c.now().Sub(read) > recordedGrace && !m.slow {
					return v, "", fmt.Errorf("%s was received by the maintenance of %s and has not had its effect: %s", m.name, v.Node, entry.Effect)
				}
			}
		}
		if c.now().After(deadline) {
			text := fmt.Errorf("%s was sent, and nothing has happened for %s", m.name, effectTimeout)
			if heard.Name != "" {
				text = fmt.Errorf("%s was received by the maintenance of %s (%s), and nothing has happened for %s", m.name, v.Node, heard.Effect, effectTimeout)
				text = hint(text, `It is not lost: "%s status %s" says what it waits for.`, c.program, v.Node)
			}
			if v.Unanswered != nil {
				text = fmt.Errorf("%w: %w", text, v.Unanswered)
			}
			return v, "", withCode(exitTimedOut, text)
		}
		if pause = nextPause(pause); !sleep(ctx, pause) {
			return v, "", stopCause(ctx)
		}
	}
}

// wasIgnored is an error, unless the message would not be sent now because what it is for has come about.
func (m message) wasIgnored(v view, entry api.Received) (_ view, already string, _ error) {
	if already, err := m.check(v.Status); err == nil && already != "" {
		return v, already, nil
	}
	return v, "", fmt.Errorf("the maintenance of %s ignored %s: %s", v.Node, m.name, strings.TrimPrefix(entry.Effect, ignoredPrefix))
}

// newlyReceived finds our message among those that the maintenance has received since before. Of several that are alike
// one that was not ignored counts: what it was to bring about has come about.
func newlyReceived(before, now *api.Status, name string, who api.Message) (ours api.Received, found bool) {
	if now == nil {
		return ours, false
	}
	for _, r := range slices.Backward(now.Messages) {
		if r.Name != name || r.By != who.By || r.Comment != who.Comment || receivedBefore(before, r) {
			continue
		}
		if !ignored(r) {
			return r, true
		}
		if !found {
			ours, found = r, true
		}
	}
	return ours, found
}

const ignoredPrefix = "ignored: "

// ignored tells that a message was received and came to nothing.
func ignored(r api.Received) bool { return strings.HasPrefix(r.Effect, ignoredPrefix) }

// receivedBefore tells whether a message had been received by then.
func receivedBefore(before *api.Status, r api.Received) bool {
	return slices.ContainsFunc(before.Messages, func(old api.Received) bool {
		return old.At.Equal(r.At) && old.Name == r.Name && old.By == r.By
	})
}

// tell is what the commands that send a message have in common.
type tell struct {
	app       *app
	output    output
	requestor string
	comment   string
	wait      bool
	timeout   time.Duration
	// end is the end that --wait wants; Completed where it is empty.
	end api.Phase
}

func (t *tell) register(cmd *cobra.Command, requestorHelp string) {
	t.output.register(cmd)
	cmd.Flags().StringVarP(&t.requestor, "requestor", "r", "", requestorHelp)
	cmd.Flags().StringVar(&t.comment, "comment", "", "why, recorded with the message")
}

func (t *tell) registerWait(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&t.wait, "wait", false, "wait for the end of the maintenance: the node is back in service")
	cmd.Flags().DurationVar(&t.timeout, "timeout", 0, "how long --wait waits; 0 is for ever")
}

const ofMaintenance = "whose maintenance of the node it is (env " + envRequestor + ", default yours, or the only one)"

// run finds the maintenance of a node, sends the message that build makes, and reports the effect.
func (t *tell) run(ctx context.Context, node string, build func(f found) message) error {
	if err := t.output.check(); err != nil {
		return err
	}
	if err := checkTimeout(t.timeout, t.wait); err != nil {
		return err
	}
	c, err := t.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	f, err := t.app.find(ctx, c, node, t.requestor)
	if err != nil {
		return err
	}
	out := t.app.messages(&t.output)
	if f.note != "" {
		fmt.Fprintln(out, f.note)
	}
	v, said, err := c.send(ctx, f.target, build(f), t.comment)
	if err != nil {
		return c.stopped(err, node, "the effect")
	}
	fmt.Fprintf(out, "%s: %s\n", node, said)
	if t.wait {
		if v, err = t.awaitEnd(ctx, c, v.target); err != nil {
			return c.stopped(err, node, "the end of the maintenance of "+node)
		}
	}
	if t.output.table() {
		return nil
	}
	return t.output.write(t.app.Stdout, summaryOf(v), nil)
}

// awaitEnd waits for the end. It is an error only if the wait is cut short.
func (t *tell) awaitEnd(ctx context.Context, c *connection, m target) (view, error) {
	ctx, cancel := withTimeout(ctx, t.timeout)
	defer cancel()
	out := t.app.messages(&t.output)
	fmt.Fprintf(out, "Waiting for the end of the maintenance of %s.\n", m.Node)
	w := &waiter{conn: c, show: newDisplay(out, t.app.now)}
	defer w.show.settle(m.ID)
	return w.await(ctx, m, endsAs(api.Phase(firstSet(string(t.end), string(api.Completed)))))
}

// oneNode is the argument of the commands that are about one maintenance.
func oneNode(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return errors.New("which node? Name one")
	default:
		return fmt.Errorf("one node at a time, not %s", strings.Join(args, ", "))
	}
}

// notIn refuses a message in a phase in which it would be ignored, and says what to do instead.
func notIn(s *api.Status, what, next string, args ...any) error {
	return hint(fmt.Errorf("%s is %s: %s", s.Spec.Node, s.Phase, what), next, args...)
}
