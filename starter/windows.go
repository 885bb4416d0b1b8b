package starter

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

const windowsWithin = 30 * time.Second

type windowsOptions struct {
	app    *invocation.App
	output terminal.Output
	next   int
}

func newWindows(a *invocation.App) *cobra.Command {
	o := &windowsOptions{app: a}
	cmd := &cobra.Command{
		Use:   "windows [NAME]",
		Short: "Show when nodes may be taken out of service",
		Long: `Show the windows of the worker's configuration: their time zone, whether they are open, when they are next, and which
limits name them. A worker answers; no configuration is needed here.

A maintenance names windows with "drydock start --window", the scheduler's limits with "drydock limits set --window".`,
		Example: `  drydock windows
  drydock windows weeknights --next 10`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Connected(o.run, o.check),
	}
	o.output.Register(cmd)
	cmd.Flags().IntVar(&o.next, "next", api.DefaultNextOpenings, "how many openings of each window to show")
	return cmd
}

func (o *windowsOptions) check([]string) error {
	if o.next < 1 || o.next > api.MaxNextOpenings {
		return exit.UsageError("--next: %d: want 1 to %d", o.next, api.MaxNextOpenings)
	}
	return nil
}

func (o *windowsOptions) run(ctx context.Context, c *invocation.Connection, args []string) error {
	asked := api.WindowsInput{Next: o.next}
	if len(args) > 0 {
		asked.Name = args[0]
	}
	state, err := c.SchedulerState(ctx, 1)
	if err != nil {
		return err
	}
	horizon, err := client.Windows(ctx, c.Client, asked, windowsWithin)
	if asked.Name != "" && exit.Has[*client.FailedError](err) {
		return exit.Hint(c.Explain(err), `"%s windows" shows those that there are.`, c.Program)
	}
	if err != nil {
		return c.Explain(err)
	}
	if differ := views.WindowsDiffer(horizon, state.Windows, views.At(c.Clock())); differ != "" {
		fmt.Fprintf(o.app.Stderr, "Warning: %s\n", differ)
	}
	windows := api.WindowsOf(horizon, state.Limits.Limits, asked.Name)
	return o.output.Write(o.app.Stdout, windows, views.Windows(windows, views.At(c.Clock())))
}
