package starter

import (
	"context"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// firstPending is how many of those that wait are shown to people.
const firstPending = 20

func newLimits(a *invocation.App) *cobra.Command {
	var out terminal.Output
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Show and change how many nodes may be out of service at a time",
		Long: `Show the limits in force with who set them and why, the freezes, the slots in use with their holders, and what waits
for a slot with the reason.

The worker's configuration sets the limits only when the scheduler is first started. From then on they are the
scheduler's own, changed by "drydock limits set".`,
		Example: `  drydock limits
  drydock limits set --max-parallel 2 --comment "two crews tonight"
  drydock limits diff --config worker.yaml`,
		Args: invocation.NoArgs,
		RunE: a.Connected(func(ctx context.Context, c *invocation.Connection, _ []string) error {
			return showLimits(ctx, c, a, &out)
		}),
	}
	out.Register(cmd)
	cmd.AddCommand(newLimitsSet(a), newLimitsDiff(a))
	return cmd
}

func showLimits(ctx context.Context, c *invocation.Connection, a *invocation.App, out *terminal.Output) error {
	pending := firstPending
	if !out.Table() {
		pending = client.AllPending
	}
	state, err := c.SchedulerState(ctx, pending)
	if err != nil {
		return err
	}
	shown := api.SchedulerOf(state)
	return out.Write(a.Stdout, shown, views.Scheduler(shown, views.At(c.Clock())))
}
