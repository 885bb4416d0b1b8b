// Package tell has the commands that tell a maintenance something, with their words for what becomes of it.
package tell

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/client"
	"drydock/starter/exit"
	"drydock/starter/invocation"
	"drydock/starter/show"
	"drydock/starter/terminal"
)

// messageCommand is what the commands that send a message have in common.
type messageCommand struct {
	app       *invocation.App
	output    terminal.Output
	requestor string
	comment   string
	wait      bool
	timeout   time.Duration
	// end is the end that --wait wants; Completed where it is empty.
	end api.Phase
}

func (t *messageCommand) register(cmd *cobra.Command, requestorHelp string) {
	t.output.Register(cmd)
	cmd.Flags().StringVarP(&t.requestor, "requestor", "r", "", requestorHelp)
	cmd.Flags().StringVar(&t.comment, "comment", "", "why, recorded with the message")
}

func (t *messageCommand) registerWait(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&t.wait, "wait", false, "wait for the end of the maintenance: the node is back in service")
	cmd.Flags().DurationVar(&t.timeout, "timeout", 0, "how long --wait waits; 0 is for ever")
}

// run finds the maintenance of a node, sends the message that build makes, and reports the effect.
func (t *messageCommand) run(ctx context.Context, node string, build func(f client.Found) invocation.Message) error {
	if err := t.output.Check(); err != nil {
		return err
	}
	if err := invocation.CheckTimeout(t.timeout, t.wait); err != nil {
		return err
	}
	c, err := t.app.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	f, note, err := c.FindWithNote(ctx, node, t.requestor)
	if err != nil {
		return err
	}
	out := t.app.Messages(&t.output)
	if note != "" {
		fmt.Fprintln(out, note)
	}
	v, said, err := c.Tell(ctx, f.Maintenance, build(f), t.comment)
	if err != nil {
		return c.Stopped(err, node, "the effect")
	}
	fmt.Fprintf(out, "%s: %s\n", node, said)
	if t.wait {
		if v, err = t.awaitEnd(ctx, c, v.Maintenance); err != nil {
			return c.Stopped(err, node, "the end of the maintenance of "+node)
		}
	}
	if t.output.Table() {
		return nil
	}
	return t.output.Write(t.app.Stdout, show.SummaryOf(v), nil)
}

// awaitEnd waits for the end. It is an error only if the wait is cut short.
func (t *messageCommand) awaitEnd(ctx context.Context, c *invocation.Connection, m client.Maintenance) (client.View, error) {
	ctx, cancel := exit.WithTimeout(ctx, t.timeout)
	defer cancel()
	out := t.app.Messages(&t.output)
	fmt.Fprintf(out, "Waiting for the end of the maintenance of %s.\n", m.Node)
	w := &invocation.Waiter{Conn: c, Show: terminal.NewDisplay(out, t.app.Clock)}
	defer w.Show.Settle(m.WorkflowID)
	return w.Await(ctx, m, client.Ends(cmp.Or(t.end, api.Completed)))
}
