package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/client"
)

// message is something that a command tells a maintenance, with the command's words for what becomes of it.
type message struct {
	client.Message
	// refuse says why the command does not send what the maintenance would heed; nil where it sends all of it.
	refuse func(s *api.Status) error
	// already says in the command's words that there is nothing left to do; nil where the client's are good.
	already func(s *api.Status, text string) string
	// next says what to do where the maintenance would ignore the message; nil, or empty, where there is nothing to say.
	next func(s *api.Status) string
	// unknownPod says how to name a pod that the client does not know; nil where the message is about no pod.
	unknownPod func(*client.UnknownPodError) error
	// danger asks, in a question, whether to do what is not easily undone; empty where there is nothing to ask. The
	// question is put to agree, whose error keeps the message from being sent.
	danger func(s *api.Status) (question string)
	agree  func(question string) error
	// said describes the effect.
	said func(now *api.Status) string
}

// check looks at a maintenance before anything is sent: already is not empty if the message has nothing left to do.
func (m message) check(s *api.Status) (already string, err error) {
	already, err = m.Check(s)
	return m.judged(s, already, err)
}

// judged adds the command's words to what the client says of a maintenance.
func (m message) judged(s *api.Status, already string, err error) (string, error) {
	var (
		notNow *client.NotNowError
		noPod  *client.UnknownPodError
	)
	switch {
	case errors.As(err, &noPod) && m.unknownPod != nil:
		err = m.unknownPod(noPod)
	case errors.As(err, &notNow) && m.next != nil && m.next(s) != "":
		err = hint(err, "%s", m.next(s))
	case err == nil && already != "" && m.already != nil:
		already = m.already(s, already)
	case err == nil && already == "" && m.refuse != nil:
		err = m.refuse(s)
	}
	return already, err
}

// prepare looks at a maintenance and checks a message.
func (c *connection) prepare(ctx context.Context, to client.Maintenance, m message) (client.Prepared, string, error) {
	p, err := c.Prepare(ctx, to, m.Message)
	if errors.Is(err, client.ErrUnanswered) {
		return p, "", hint(err, `The maintenance of %s goes on once a worker runs; see it with "%s status %s".`, to.Node, c.program, to.Node)
	}
	if p.View.Status == nil || p.View.Unanswered != nil {
		return p, "", c.explain(err)
	}
	already, err := m.judged(p.View.Status, p.Already, err)
	return p, already, c.explain(err)
}

// send tells a maintenance something and waits for the effect, which said describes.
func (c *connection) send(ctx context.Context, to client.Maintenance, m message, comment string) (v client.View, said string, err error) {
	p, already, err := c.prepare(ctx, to, m)
	if err == nil && already == "" && m.danger != nil {
		_, already, err = m.agreed(p.View, func() (client.View, string, error) {
			p, already, err = c.prepare(ctx, to, m)
			return p.View, already, err
		})
	}
	if err != nil || already != "" {
		return p.View, already, err
	}
	sent, err := p.Send(ctx, comment)
	switch {
	case err != nil:
		return sent.View, "", c.explain(c.withoutEffect(orStopped(ctx, err)))
	case sent.Unanswered != nil:
		return sent.View, m.Name() + " is recorded and takes effect when a worker runs: " + sent.Unanswered.Error(), nil
	case sent.Already != "":
		already, err := m.judged(sent.View.Status, sent.Already, nil)
		return sent.View, already, err
	case !sent.View.Running():
		return sent.View, "the maintenance ended " + string(sent.View.Phase()) + colon(sent.View.Message()), nil
	default:
		return sent.View, m.said(sent.View.Status), nil
	}
}

// withoutEffect adds to the error of a message that nothing came of where to look, and the exit code.
func (c *connection) withoutEffect(err error) error {
	var none *client.NoEffectError
	if !errors.As(err, &none) || none.Waited == 0 {
		return err
	}
	plain := *none
	plain.Unanswered = nil
	var text error = &plain
	if none.Received != nil {
		text = hint(text, `It is not lost: "%s status %s" says what it waits for.`, c.program, none.Node)
	}
	if none.Unanswered != nil {
		text = fmt.Errorf("%w: %w", text, none.Unanswered)
	}
	return withCode(exitTimedOut, text)
}

// agreed asks whether to send a dangerous message. The answer may take long: afterwards the message must still mean
// what was agreed to.
func (m message) agreed(v client.View, look func() (client.View, string, error)) (now client.View, already string, err error) {
	question := m.danger(v.Status)
	if question == "" {
		return v, "", nil
	}
	if err := m.agree(question); err != nil {
		return v, "", err
	}
	now, already, err = look()
	if err == nil && already == "" && m.danger(now.Status) != question {
		err = hint(fmt.Errorf("%s has moved on meanwhile, and %s would now mean something else; nothing was sent", v.Node, m.Name()), "Say it again.")
	}
	return now, already, err
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
func (t *tell) run(ctx context.Context, node string, build func(f client.Found) message) error {
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
	f, note, err := c.find(ctx, node, t.requestor)
	if err != nil {
		return err
	}
	out := t.app.messages(&t.output)
	if note != "" {
		fmt.Fprintln(out, note)
	}
	v, said, err := c.send(ctx, f.Maintenance, build(f), t.comment)
	if err != nil {
		return c.stopped(err, node, "the effect")
	}
	fmt.Fprintf(out, "%s: %s\n", node, said)
	if t.wait {
		if v, err = t.awaitEnd(ctx, c, v.Maintenance); err != nil {
			return c.stopped(err, node, "the end of the maintenance of "+node)
		}
	}
	if t.output.table() {
		return nil
	}
	return t.output.write(t.app.Stdout, summaryOf(v), nil)
}

// awaitEnd waits for the end. It is an error only if the wait is cut short.
func (t *tell) awaitEnd(ctx context.Context, c *connection, m client.Maintenance) (client.View, error) {
	ctx, cancel := withTimeout(ctx, t.timeout)
	defer cancel()
	out := t.app.messages(&t.output)
	fmt.Fprintf(out, "Waiting for the end of the maintenance of %s.\n", m.Node)
	w := &waiter{conn: c, show: newDisplay(out, t.app.now)}
	defer w.show.settle(m.WorkflowID)
	return w.await(ctx, m, client.Ends(cmp.Or(t.end, api.Completed)))
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
