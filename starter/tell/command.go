// Package tell has the commands that tell a maintenance something, with their words for what becomes of it.
package tell

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/terminal"
)

// Commands are a command for each message to a maintenance.
func Commands(a *invocation.App) []*cobra.Command {
	return []*cobra.Command{
		newDone(a), newFailed(a), newRetry(a), newCancel(a), newExtend(a), newStarted(a), newDrained(a), newJoin(a), newLeave(a),
		newEscalate(a), newSkipPod(a), newConsent(a), newRetryNow(a),
		newApprove(a), newDeny(a), newReschedule(a), newValidated(a), newValidationFailed(a), newHookDone(a), newSkipHook(a), newNote(a),
	}
}

// messageCommand is what the commands that send a message have in common.
type messageCommand struct {
	app       *invocation.App
	output    terminal.Output
	requestor string
	comment   string
	wait      bool
	timeout   time.Duration
	// owned says how to ask before the message ends what is somebody else's; nil where it may.
	owned *invocation.Owned
	// of is the flag that says whose maintenance it is, where that is not --requestor.
	of string
	// end is the end that --wait wants; Completed where it is empty.
	end api.Phase
}

func (t *messageCommand) register(cmd *cobra.Command, requestorHelp string) {
	t.output.Register(cmd)
	cmd.Flags().StringVarP(&t.requestor, "requestor", "r", "", requestorHelp)
	cmd.Flags().StringVar(&t.comment, "comment", "", "why, recorded with the message")
}

// asksFirst is the help of the commands that do not end what is somebody else's by a slip.
const asksFirst = `Where the maintenance is neither for you nor started by you, it asks first; --yes takes the place of the answer, and is
needed where nobody is there to give one.`

// registerOwned is for a message that is not to end what is somebody else's.
func (t *messageCommand) registerOwned(cmd *cobra.Command, says string, shared bool) {
	t.owned = &invocation.Owned{Says: says, Shared: shared}
	cmd.Flags().BoolVarP(&t.owned.Yes, "yes", "y", false, "do not ask where the maintenance is somebody else's")
}

// message is what is sent to a maintenance, which asks first where it is somebody else's.
func (t *messageCommand) message(ctx context.Context, c *invocation.Connection, f client.Found, m invocation.Message) (invocation.Message, error) {
	if t.owned == nil {
		return m, nil
	}
	t.owned.Named = t.requestor != ""
	return t.app.Guard(ctx, c, f, *t.owned, m)
}

func (t *messageCommand) registerWait(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&t.wait, "wait", false, "wait for the end of the maintenance: the node is back in service")
	invocation.DurationVar(cmd.Flags(), &t.timeout, "timeout", 0, "how long --wait waits; 0 is for ever")
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
	f, note, err := c.FindByFlag(ctx, node, t.requestor, cmp.Or(t.of, "--requestor"))
	if err != nil {
		return err
	}
	m, err := t.message(ctx, c, f, build(f))
	if err != nil {
		return err
	}
	out := t.app.Messages(&t.output)
	if note != "" {
		fmt.Fprintln(out, note)
	}
	v, said, err := c.SendMessage(ctx, f.Maintenance, m, t.comment)
	if err != nil {
		return c.Stopped(err, node, "the effect")
	}
	fmt.Fprintf(out, "%s: %s\n", node, terminal.Words(said, c.Clock()))
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
	w := &invocation.Waiter{Conn: c, Show: t.app.Progress(out)}
	w.Show.Say("Waiting for the end of the maintenance of %s.", m.Node)
	defer w.Show.Settle(m.WorkflowID)
	v, err := w.Await(ctx, m, client.Ends(cmp.Or(t.end, api.Completed)))
	if err == nil {
		w.Show.Otherwise("%s: %s", m.Node, terminal.Words(show.Progress(v), c.Clock()))
	}
	return v, err
}
