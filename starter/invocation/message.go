package invocation

import (
	"context"
	"errors"
	"fmt"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// Message is a message that a command sends to a maintenance, with the command's words for what becomes of it.
type Message struct {
	client.Message
	Words
	// Agree puts the question of Danger; its error keeps the message from being sent. Nil asks nothing.
	Agree func(question string) error
}

// Words are what a command says of its message. A command embeds Plain, which says nothing, and adds Said.
type Words interface {
	// Refuse returns why the command does not send what the maintenance would heed.
	Refuse(s *api.Status) error
	// Already says that there is nothing left to do; text is how the client says it.
	Already(s *api.Status, text string) string
	// Next says what to do where the maintenance would ignore the message.
	Next(s *api.Status) string
	// UnknownPod says how to name a pod that the client does not know.
	UnknownPod(unknown *client.UnknownPodError) error
	// Danger asks, in a question, whether to do what is not easily undone; empty where there is nothing to ask.
	Danger(s *api.Status) (question string)
	// Said describes the effect, and Ended where the maintenance has ended by it; empty where the end is not what it is for.
	Said(now *api.Status) string
	Ended(v client.View) string
}

// Plain are the words of a command that has none of its own.
type Plain struct{}

// Refuse refuses nothing.
func (Plain) Refuse(*api.Status) error { return nil }

// Already says what the client says.
func (Plain) Already(_ *api.Status, text string) string { return text }

// Next says nothing.
func (Plain) Next(*api.Status) string { return "" }

// UnknownPod says what the client says.
func (Plain) UnknownPod(unknown *client.UnknownPodError) error { return unknown }

// Danger asks nothing.
func (Plain) Danger(*api.Status) string { return "" }

// Ended says nothing.
func (Plain) Ended(client.View) string { return "" }

// Judge looks at a maintenance before anything is sent: already is not empty if the message has nothing left to do.
func (m Message) Judge(s *api.Status) (already string, err error) {
	already, err = m.Check(s)
	return m.judged(s, already, err)
}

// judged adds the command's words to what the client says of a maintenance.
func (m Message) judged(s *api.Status, already string, err error) (string, error) {
	var (
		notNow *client.NotNowError
		noPod  *client.UnknownPodError
	)
	switch {
	case errors.As(err, &noPod):
		err = m.UnknownPod(noPod)
	case errors.As(err, &notNow) && m.Next(s) != "":
		err = exit.Hint(err, "%s", m.Next(s))
	case err == nil && already != "":
		already = m.Already(s, already)
	case err == nil:
		err = m.Refuse(s)
	}
	return already, err
}

// prepare looks at a maintenance and checks a message.
func (c *Connection) prepare(ctx context.Context, to client.Maintenance, m Message) (client.Prepared, string, error) {
	p, err := c.Prepare(ctx, to, m.Message)
	if errors.Is(err, client.ErrUnanswered) {
		return p, "", exit.Hint(err, `Nothing was sent. The maintenance of %s goes on once a worker runs; see it with "%s status %s".`, to.Node, c.Program, to.Node)
	}
	if p.View.Status == nil || p.View.Unanswered != nil {
		return p, "", c.Explain(err)
	}
	already, err := m.judged(p.View.Status, p.Already, err)
	return p, already, c.Explain(err)
}

// SendMessage sends a maintenance a message and waits for the effect, which said describes.
func (c *Connection) SendMessage(ctx context.Context, to client.Maintenance, m Message, comment string) (v client.View, said string, err error) {
	p, already, err := c.prepare(ctx, to, m)
	if err == nil && already == "" && m.Agree != nil {
		_, already, err = m.Agreed(p.View, func() (client.View, string, error) {
			p, already, err = c.prepare(ctx, to, m)
			return p.View, already, err
		})
	}
	if err != nil || already != "" {
		return p.View, already, err
	}
	sent, err := p.Send(ctx, comment)
	switch {
	case errors.Is(err, client.ErrUnreachable):
		return sent.View, "", exit.Hint(c.Explain(err), `%s may have arrived all the same: "%s status %s" says.`, m.Name(), c.Program, to.Node)
	case err != nil:
		return sent.View, "", c.Explain(c.withoutEffect(exit.OrStopped(ctx, err)))
	case sent.Unanswered != nil:
		return sent.View, m.Name() + " is recorded and takes effect when a worker runs: " + sent.Unanswered.Error(), nil
	case sent.Already != "":
		already, err := m.judged(sent.View.Status, sent.Already, nil)
		return sent.View, already, err
	case !sent.View.Running() && m.Ended(sent.View) != "":
		return sent.View, m.Ended(sent.View), nil
	case !sent.View.Running():
		return sent.View, "the maintenance ended " + string(sent.View.Phase()) + terminal.Colon(sent.View.Message()), nil
	default:
		return sent.View, m.Said(sent.View.Status), nil
	}
}

// withoutEffect adds to the error of a message that nothing came of where to look, and the exit code.
func (c *Connection) withoutEffect(err error) error {
	var none *client.NoEffectError
	if !errors.As(err, &none) || none.Waited == 0 {
		return err
	}
	plain := *none
	plain.Unanswered = nil
	var text error = &plain
	if none.Received != nil {
		text = exit.Hint(text, `It is not lost: "%s status %s" says what it waits for.`, c.Program, none.Node)
	}
	if none.Unanswered != nil {
		text = fmt.Errorf("%w: %w", text, none.Unanswered)
	}
	return exit.WithCode(exit.TimedOut, text)
}

// Agreed asks whether to send a dangerous message. The answer may take long: afterwards the message must still mean
// what was agreed to.
func (m Message) Agreed(v client.View, look func() (client.View, string, error)) (now client.View, already string, err error) {
	question := m.Danger(v.Status)
	if question == "" {
		return v, "", nil
	}
	if err := m.Agree(question); err != nil {
		return v, "", err
	}
	now, already, err = look()
	if err == nil && already == "" && m.Danger(now.Status) != question {
		err = exit.Hint(fmt.Errorf("%s has moved on meanwhile, and %s would now mean something else; nothing was sent", v.Node, m.Name()), "Run it again.")
	}
	return now, already, err
}
