package starter

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type thawOptions struct {
	app         *invocation.App
	output      terminal.Output
	by, comment string
	all         bool
}

func newThaw(a *invocation.App) *cobra.Command {
	o := &thawOptions{app: a}
	cmd := &cobra.Command{
		Use:   "thaw",
		Short: "Take back a freeze",
		Long: `Take back your freeze. Slots are granted again when nobody's freeze is left; --all takes back everybody's, which is
recorded with your name.`,
		Example: `  drydock thaw --comment "incident closed"
  drydock thaw --by incident-4711
  drydock thaw --all`,
		Args: invocation.NoArgs,
		RunE: a.Connected(o.run),
	}
	o.output.Register(cmd)
	registerBy(cmd, &o.by)
	cmd.Flags().StringVar(&o.comment, "comment", "", "why, recorded")
	cmd.Flags().BoolVar(&o.all, "all", false, "take back everybody's freeze")
	return cmd
}

func (o *thawOptions) run(ctx context.Context, c *invocation.Connection, _ []string) error {
	by := cmp.Or(o.by, c.By())
	before, err := c.SchedulerState(ctx, 1)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	mine := slices.ContainsFunc(before.Freezes, func(f schedule.Freeze) bool { return f.By == by })
	if len(before.Freezes) > 0 && !mine && !o.all {
		names := terminal.NamesOf(before.Freezes, func(f schedule.Freeze) string { return f.By })
		return exit.Hint(fmt.Errorf("there is no freeze by %s", by), "There are freezes by %s: pass --by with one of them, or --all.", terminal.OrList(names))
	}
	state := before
	if len(before.Freezes) > 0 {
		request := api.ThawRequest{By: by, Comment: o.comment, All: o.all}
		if err := c.Scheduler().Thaw(ctx, request); err != nil {
			return c.ExplainSent(err, "limits")
		}
		if state, err = c.SchedulerState(ctx, 1); err != nil {
			return err
		}
	}
	done := "Thawed; no freezes remain."
	switch n := len(state.Freezes); {
	case len(before.Freezes) == 0:
		done = "Nothing is frozen."
	case n > 0:
		done = fmt.Sprintf("Thawed; %s:", number.Form(n, "freeze remains", "freezes remain"))
	}
	return o.output.Write(o.app.Stdout, state.Freezes, views.Freezes(done, state.Freezes, views.At(c.Clock())))
}
