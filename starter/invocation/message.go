package invocation

import (
	"context"
	"errors"
	"fmt"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
)

// Message is a message that a command sends to a maintenance.
type Message struct {
	// Name and Payload are those of package api.
	Name    string
	Payload any
	Comment string
	// Next says what to do where the maintenance refuses the message; empty if its reason says enough.
	Next string
}

// SendMessage sends a maintenance a message, and returns in words what came of it. The cancellation of one for which no worker answers is
// recorded alone: unanswered says so.
func (c *Connection) SendMessage(ctx context.Context, to client.Maintenance, m Message) (said string, err error) {
	sent, err := c.Send(ctx, to, m.Name, m.Payload, m.Comment)
	if err == nil {
		return inWords(m, sent), nil
	}
	switch {
	case errors.Is(err, client.ErrUnanswered):
		return "", exit.Hint(err, `The maintenance of %s goes on once a worker runs; see it with "%s status %s".`, to.Node, c.Program, to.Node)
	case exit.Has[*client.RefusedError](err) && m.Next != "":
		return "", exit.Hint(err, "%s", m.Next)
	}
	return "", c.ExplainSent(err, "status "+to.Node)
}

// inWords is what came of a message.
func inWords(m Message, sent client.Sent) string {
	if sent.Unanswered != nil {
		return fmt.Sprintf("%s is recorded and takes effect when a worker runs: %s", m.Name, sent.Unanswered)
	}
	return sent.Effect
}

// ExplainSent is Explain for a message that may have been sent; look is the command that shows what came of it.
func (c *Connection) ExplainSent(err error, look string) error {
	var unsettled *client.UnsettledError
	if !errors.As(err, &unsettled) {
		return c.Explain(err)
	}
	return exit.WithCode(exit.TimedOut, exit.Hint(fmt.Errorf("%s: %w", unsettled.What(), c.Explain(unsettled.Unwrap())),
		`"%s %s" says what came of it.`, c.Program, look))
}
