// Package plan has the commands about maintenance plans: many nodes under one intent.
package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// New is the group of the commands about plans, with those beside them that work on nodes.
func New(a *invocation.App, work ...*cobra.Command) *cobra.Command {
	verbs := append([]*cobra.Command{newCreate(a), newStatus(a), newList(a), newSetSelector(a), newSchedule(a)}, work...)
	for _, m := range messages {
		verbs = append(verbs, m.command(a))
	}
	return invocation.Noun(&cobra.Command{
		Use:   "plan",
		Short: "Take many nodes through maintenance under one plan",
		Long: `Take many nodes through maintenance under one plan: in an order, at a pace, with a canary, and with a pause where too many
fail. A plan is a durable workflow of its own and begins a maintenance for each of its nodes; it goes on when your
terminal is gone.`,
		Example: `  drydock plan create kernel-6.12 --selector pool=gpu --max-parallel 10% --canary 3 --canary-soak 1h --dry-run
  drydock plan status kernel-6.12 --watch
  drydock plan pause kernel-6.12 --comment "incident 4711"`,
	}, verbs...)
}

// onePlan is the argument of the commands that are about one plan.
var onePlan = invocation.One("NAME", "plan", plan.CheckName)

func checkName(name string) error {
	if err := plan.CheckName(name); err != nil {
		return exit.UsageError("%w", err)
	}
	return nil
}

// Explain turns an error about a plan into one that says what to do next.
func Explain(c *invocation.Connection, name string, err error) error {
	switch {
	case exit.Has[*client.NoneError](err):
		return exit.Hint(err, `"%s plan list --all" shows those that there are.`, c.Program)
	case exit.Has[*client.RunsError](err):
		return exit.Hint(err, `See it with "%s plan status %s", or choose another name.`, c.Program, name)
	case errors.Is(err, client.ErrEnded):
		return exit.Hint(err, `"%s plan status %s" shows what it left. Nodes that are held are decided one by one, with "retry", "done" or "cancel --release"; `+
			`a new plan takes the others ("plan create").`, c.Program, name)
	default:
		return c.ExplainSent(err, "plan status "+name)
	}
}

// slowestWithin bounds the question, after a wait has timed out, for what holds up the slowest node.
const slowestWithin = 3 * time.Second

// waits is what holds up the slowest node of a plan, or else what the plan itself waits for or why it is paused, after a semicolon; empty if
// none of them is known.
func waits(v client.PlanView, slow []api.SlowNode, now time.Time) string {
	switch {
	case len(slow) > 0:
		return fmt.Sprintf("; %s is %s", slow[0].Node, terminal.OneLine(terminal.Words(slow[0].Progress, now)))
	case v.Status != nil && v.Status.WaitingFor == plan.PausedWaits:
		return "; it is " + paused(terminal.OneLine(terminal.Words(v.Status.Failure, now)))
	case v.Status != nil && v.Status.WaitingFor != "":
		return "; it waits for " + terminal.OneLine(terminal.Words(v.Status.WaitingFor, now))
	default:
		return ""
	}
}

func paused(message string) string {
	if strings.HasPrefix(message, plan.PausedWaits) { // by somebody, as the message says
		return message
	}
	return plan.PausedWaits + terminal.Colon(message)
}

// stopped says what becomes of the plan when a wait is given up, and what it waits for, as far as it was seen.
func stopped(ctx context.Context, c *invocation.Connection, p *client.Plan, v client.PlanView, err error) error {
	name := p.Name
	switch err = exit.OrStopped(ctx, err); {
	case errors.Is(err, exit.ErrTimedOut):
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), slowestWithin)
		defer cancel()
		text := "timed out waiting for plan " + name + waits(v, slowest(asking, c, p, v), c.Clock())
		err = exit.WithCode(exit.TimedOut, errors.New(text))
	case errors.Is(err, exit.ErrInterrupted):
		err = exit.WithCode(exit.Interrupted, fmt.Errorf("no longer waiting for plan %s", name))
	default:
		return Explain(c, name, err)
	}
	return exit.Hint(err, `The plan goes on: "%s plan status %s --watch" looks again, "%s plan cancel %s" ends it.`, c.Program, name, c.Program, name)
}
