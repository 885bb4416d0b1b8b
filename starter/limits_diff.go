package starter

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type limitsDiffOptions struct {
	app    *invocation.App
	output terminal.Output
	config string
	file   schedule.Limits
}

func newLimitsDiff(a *invocation.App) *cobra.Command {
	o := &limitsDiffOptions{app: a}
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Compare the limits in force with those of a file",
		Long: `Compare the limits in force with those of the worker's configuration, which count only when the scheduler is first
started. The exit code is 0 if they are equal and 1 if not. To put the file's limits in force: "drydock limits set
--from-file FILE".`,
		Example: `  drydock limits diff --config worker.yaml`,
		Args:    invocation.NoArgs,
		RunE:    a.Connected(o.run, o.check),
	}
	o.output.Register(cmd)
	cmd.Flags().StringVar(&o.config, "config", "", "the worker's configuration, or a file of limits alone (env "+invocation.EnvConfig+")")
	return cmd
}

func (o *limitsDiffOptions) check([]string) (err error) {
	if o.config = cmp.Or(o.config, o.app.Env.Get(invocation.EnvConfig)); o.config == "" {
		return exit.UsageError("missing --config (or %s)", invocation.EnvConfig)
	}
	o.file, err = input.ReadLimits(o.config, o.app.Stdin)
	return err
}

func (o *limitsDiffOptions) run(ctx context.Context, c *invocation.Connection, _ []string) error {
	state, err := c.SchedulerState(ctx, 1)
	if err != nil {
		return err
	}
	different := api.LimitDifferences(state.Limits.Limits, o.file)
	return cmp.Or(o.output.Write(o.app.Stdout, different, views.LimitDifferences(different, o.config)), exit.Unless(len(different) == 0, exit.Failed))
}
