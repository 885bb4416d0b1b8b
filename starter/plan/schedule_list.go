package plan

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func newScheduleList(a *invocation.App) *cobra.Command {
	var output terminal.Output
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the plans that run again and again",
		Long: `List the plans that have a schedule, with when each runs, the next time, and when it was last begun. What became of the
runs of one is told by "drydock plan schedule NAME".`,
		Example: `  drydock plan schedule list
  drydock plan schedule list -o json | jq -r '.[] | select(.paused) | .name'`,
		Args: invocation.NoArgs,
		RunE: a.Connected(func(ctx context.Context, c *invocation.Connection, _ []string) error {
			return listSchedules(ctx, c, a, &output)
		}),
	}
	output.Register(cmd, terminal.FormatName)
	output.RegisterNoHeaders(cmd)
	return cmd
}

func listSchedules(ctx context.Context, c *invocation.Connection, a *invocation.App, output *terminal.Output) error {
	schedules, err := client.ListRecurring(ctx, c.Client)
	if err != nil {
		return c.Explain(err)
	}
	if len(schedules) == 0 && output.Table() {
		fmt.Fprintln(a.Stderr, "No plan has a schedule.")
		return nil
	}
	return output.Write(a.Stdout, schedules, views.PlanSchedules(schedules, views.At(c.Clock())))
}
