// Package plan has the commands about maintenance plans: many nodes under one intent.
package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

// New is the group of the commands about plans, with those beside them that work on nodes.
func New(a *invocation.App, work ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Take many nodes through maintenance under one plan",
		Long: `Take many nodes through maintenance under one plan: in an order, at a pace, with a canary, and with a pause where too many
fail. A plan is a durable workflow of its own and begins a maintenance for each of its nodes; it goes on when your
terminal is gone.`,
		Example: `  drydock plan create kernel-6.12 --selector pool=gpu --max-parallel 10% --canary 3 --canary-soak 1h --dry-run
  drydock plan status kernel-6.12 --watch
  drydock plan pause kernel-6.12 --comment "incident 4711"`,
	}
	invocation.AsNoun(cmd)
	cmd.AddCommand(newCreate(a), newStatus(a), newList(a), newSetSelector(a), newSchedule(a))
	for _, m := range messages {
		cmd.AddCommand(m.command(a))
	}
	cmd.AddCommand(work...)
	return cmd
}

// onePlan is the argument of the commands that are about one plan.
func onePlan(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return checkName(args[0])
	case 0:
		return fmt.Errorf("missing NAME: %s", cmd.Use)
	default:
		return fmt.Errorf("one plan at a time, not %s", strings.Join(args, ", "))
	}
}

func checkName(name string) error {
	if err := plan.CheckName(name); err != nil {
		return exit.UsageError("%w", err)
	}
	return nil
}

// Explain turns an error about a plan into one that says what to do next.
func Explain(c *invocation.Connection, name string, err error) error {
	var (
		none *client.NoneError
		runs *client.RunsError
	)
	switch {
	case errors.As(err, &none):
		return exit.Hint(err, `"%s plan list --all" shows those that there are.`, c.Program)
	case errors.As(err, &runs):
		return exit.Hint(err, `See it with "%s plan status %s", or choose another name.`, c.Program, name)
	case errors.Is(err, client.ErrEnded):
		return exit.Hint(err, `"%s plan status %s" shows what it left. Nodes that are held are decided one by one, with "retry", "done" or "cancel --release"; `+
			`a new plan takes the others ("plan create").`, c.Program, name)
	default:
		return c.ExplainSent(err, "plan status "+name)
	}
}

// stopped says what becomes of the plan when a wait is given up.
func stopped(ctx context.Context, c *invocation.Connection, name string, err error) error {
	switch err = exit.OrStopped(ctx, err); {
	case errors.Is(err, exit.ErrTimedOut):
		err = exit.WithCode(exit.TimedOut, fmt.Errorf("timed out waiting for plan %s", name))
	case errors.Is(err, exit.ErrInterrupted):
		err = exit.WithCode(exit.Interrupted, fmt.Errorf("no longer waiting for plan %s", name))
	default:
		return Explain(c, name, err)
	}
	return exit.Hint(err, `The plan goes on: "%s plan status %s --watch" looks again, "%s plan cancel %s" ends it.`, c.Program, name, c.Program, name)
}
