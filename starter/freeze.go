package starter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/rules/period"
	"drydock/rules/schedule"
)

type freezeOptions struct {
	app        *app
	output     output
	by, reason string
	running    bool
}

func newFreeze(a *app) *cobra.Command {
	o := &freezeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "freeze",
		Short: "Stop new maintenances in the whole cluster",
		Long: `Stop new maintenances: while anybody's freeze is in force, no slot is granted. Maintenances that have a slot go on;
with --running they too are held before their next step, evictions included.

A freeze belongs to whoever asked for it, and a second one of the same replaces it. Everybody's has to be taken back
with "drydock thaw" before maintenances go on.`,
		Example: `  drydock freeze --reason "incident 4711"
  drydock freeze --reason "API servers are overloaded" --running`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.output.register(cmd)
	registerBy(cmd, &o.by)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, shown by everything that waits")
	cmd.Flags().BoolVar(&o.running, "running", false, "hold running maintenances too")
	return cmd
}

func registerBy(cmd *cobra.Command, by *string) {
	cmd.Flags().StringVar(by, "by", "", "whose freeze it is, such as an incident's number (default user@host)")
}

func (o *freezeOptions) run(ctx context.Context) error {
	if err := o.output.check(); err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	request := api.FreezeRequest{By: cmp.Or(o.by, c.By()), Reason: o.reason, Running: o.running}
	if err := c.Scheduler().Freeze(ctx, request); err != nil {
		return c.explain(err)
	}
	state, err := c.schedulerState(ctx, firstPending)
	if err != nil {
		return err
	}
	return o.output.write(o.app.Stdout, notNil(state.Freezes), func(w io.Writer) {
		what := "no slots are granted"
		if o.running {
			what += ", and running maintenances are held"
		}
		fmt.Fprintf(w, "Frozen by %s: %s until \"%s thaw\".\n", request.By, what, c.program)
		renderFreezes(w, state.Freezes, c.now())
	})
}

func renderFreezes(w io.Writer, freezes []schedule.Freeze, now time.Time) {
	r := newRows(w, "FROZEN BY", "SINCE", "RUNNING TOO", "REASON")
	for _, f := range freezes {
		r.add(f.By, period.Age(now.Sub(f.At)), yesNo(f.Running), f.Reason)
	}
	r.done()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// notNil makes no freezes an empty list for programs, and not null.
func notNil(freezes []schedule.Freeze) []schedule.Freeze {
	if freezes == nil {
		return []schedule.Freeze{}
	}
	return freezes
}
