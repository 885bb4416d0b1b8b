package plan

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/overview"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type listOptions struct {
	app    *invocation.App
	output terminal.Output
	all    bool
	limit  int
}

func newList(a *invocation.App) *cobra.Command {
	o := &listOptions{app: a}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the plans that are running",
		Long: `List the plans that are running, with how far each has come and what it waits for.

With --all those that ended are listed too, the newest first, as far back as the Temporal namespace keeps them.`,
		Example: `  drydock plan list
  drydock plan list --all -o wide`,
		Args: invocation.NoArgs,
		RunE: a.Connected(o.run, o.check),
	}
	o.output.Register(cmd, terminal.FormatName)
	o.output.RegisterNoHeaders(cmd)
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "list those that ended too")
	cmd.Flags().IntVar(&o.limit, "limit", 100, "list at most this many; 0 is no limit")
	return cmd
}

func (o *listOptions) check([]string) error {
	if o.limit < 0 {
		return exit.UsageError("--limit %d: want 0 or more", o.limit)
	}
	return nil
}

func (o *listOptions) run(ctx context.Context, c *invocation.Connection, _ []string) error {
	runs, err := client.ListPlans(ctx, c.Client, !o.all)
	if err != nil {
		return c.Explain(err)
	}
	if o.limit > 0 {
		runs = runs[:min(o.limit, len(runs))]
	}
	observed, err := overview.Plans(ctx, c.Client, runs, len(runs))
	if err != nil {
		return c.Explain(err)
	}
	plans, unanswered := make(api.Plans, len(observed)), error(nil)
	for i, v := range observed {
		plans[i], unanswered = v.Summary(), cmp.Or(unanswered, v.Unanswered)
	}
	o.app.WarnUnanswered(unanswered)
	if len(plans) == 0 && o.output.Table() {
		fmt.Fprintln(o.app.Stderr, map[bool]string{true: "No plans.", false: "No plans are running."}[o.all])
		return nil
	}
	return o.output.Write(o.app.Stdout, plans, views.Plans(plans, o.output.Wide(), views.At(c.Clock())))
}
