package starter

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type freezeOptions struct {
	app        *invocation.App
	output     terminal.Output
	by, reason string
	running    bool
}

func newFreeze(a *invocation.App) *cobra.Command {
	o := &freezeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "freeze",
		Short: "Stop new maintenances in the whole cluster",
		Long: `Stop new maintenances: while anybody's freeze is in force, no slot is granted. Maintenances that have a slot go on;
with --running they too are held before their next step, evictions included.

A freeze belongs to the person who asked for it, and a second one of the same replaces it. Everybody's has to be taken back
with "drydock thaw" before maintenances go on.`,
		Example: `  drydock freeze --comment "incident 4711"
  drydock freeze --comment "API servers are overloaded" --running`,
		Args: invocation.NoArgs,
		RunE: a.Connected(o.run),
	}
	o.output.Register(cmd)
	registerBy(cmd, &o.by)
	cmd.Flags().StringVar(&o.reason, "comment", "", "why, shown by everything that waits")
	cmd.Flags().BoolVar(&o.running, "running", false, "hold running maintenances too")
	return cmd
}

func registerBy(cmd *cobra.Command, by *string) {
	cmd.Flags().StringVar(by, "by", "", "whose freeze it is, such as an incident's number (default user@host)")
}

func (o *freezeOptions) run(ctx context.Context, c *invocation.Connection, _ []string) error {
	request := api.FreezeRequest{By: cmp.Or(o.by, c.By()), Reason: o.reason, Running: o.running}
	if err := c.Scheduler().Freeze(ctx, request); err != nil {
		return c.ExplainSent(err, "limits")
	}
	state, err := c.SchedulerState(ctx, 1)
	if err != nil {
		return err
	}
	what := "no slots are granted"
	if o.running {
		what += ", and running maintenances are held"
	}
	done := fmt.Sprintf("Frozen by %s: %s until \"%s thaw\".", request.By, what, c.Program)
	return o.output.Write(o.app.Stdout, state.Freezes, views.Freezes(done, state.Freezes, views.At(c.Clock())))
}
