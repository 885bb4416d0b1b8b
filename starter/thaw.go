package starter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/rules/schedule"
)

type thawOptions struct {
	app         *app
	output      output
	by, comment string
	all         bool
}

func newThaw(a *app) *cobra.Command {
	o := &thawOptions{app: a}
	cmd := &cobra.Command{
		Use:   "thaw",
		Short: "Take back a freeze",
		Long: `Take back your freeze. Slots are granted again when nobody's freeze is left; --all takes back everybody's, which is
recorded with your name.`,
		Example: `  drydock thaw --comment "incident closed"
  drydock thaw --by incident-4711
  drydock thaw --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.output.register(cmd)
	registerBy(cmd, &o.by)
	cmd.Flags().StringVar(&o.comment, "comment", "", "why, recorded")
	cmd.Flags().BoolVar(&o.all, "all", false, "take back everybody's freeze")
	return cmd
}

func (o *thawOptions) run(ctx context.Context) error {
	if err := o.output.check(); err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	by := cmp.Or(o.by, c.By())
	before, err := c.schedulerState(ctx, firstPending)
	if err != nil {
		return err
	}
	mine := slices.ContainsFunc(before.Freezes, func(f schedule.Freeze) bool { return f.By == by })
	if len(before.Freezes) > 0 && !mine && !o.all {
		names := make([]string, len(before.Freezes))
		for i, f := range before.Freezes {
			names[i] = f.By
		}
		return hint(fmt.Errorf("there is no freeze by %s", by), "There are freezes by %s: say --by with one of them, or --all.", orList(names))
	}
	state := before
	if len(before.Freezes) > 0 {
		request := api.ThawRequest{By: by, Comment: o.comment, All: o.all}
		if err := c.Scheduler().Thaw(ctx, request); err != nil {
			return c.explain(err)
		}
		if state, err = c.schedulerState(ctx, firstPending); err != nil {
			return err
		}
	}
	return o.output.write(o.app.Stdout, notNil(state.Freezes), func(w io.Writer) {
		if len(state.Freezes) == 0 {
			fmt.Fprintln(w, "Nothing is frozen.")
			return
		}
		fmt.Fprintln(w, "Still frozen:")
		renderFreezes(w, state.Freezes, c.now())
	})
}
