package starter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"drydock/client"
	"drydock/starter/exit"
	"drydock/starter/invocation"
	"drydock/starter/show"
	"drydock/starter/terminal"
)

type listOptions struct {
	app       *invocation.App
	output    terminal.Output
	all       bool
	requestor string
	limit     int
}

func newList(a *invocation.App) *cobra.Command {
	o := &listOptions{app: a}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the maintenances that are running",
		Long: `List the maintenances that are running, with what each waits for.

With --all those that ended are listed too, the newest first, as far back as the Temporal namespace keeps them.
A maintenance appears here a moment after it was started.`,
		Example: `  drydock list
  drydock list --all --requestor ops
  drydock list -o json | jq -r '.[] | select(.phase == "Ready") | .node'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.output.Register(cmd)
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "list those that ended too")
	cmd.Flags().StringVarP(&o.requestor, "requestor", "r", "", "list those of one requestor")
	cmd.Flags().IntVar(&o.limit, "limit", 500, "list at most this many; 0 is no limit")
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}
	if o.limit < 0 {
		return exit.UsageError("--limit %d: want 0 or more", o.limit)
	}
	c, err := o.app.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	views, err := o.views(ctx, c)
	if err != nil {
		return err
	}
	for _, v := range views {
		if v.Unanswered != nil {
			fmt.Fprintf(o.app.Stderr, "Warning: %s\n", v.Unanswered)
			break
		}
	}
	return o.output.Write(o.app.Stdout, show.Summaries(views), func(w io.Writer) { show.List(w, views, o.all, c.Clock()) })
}

// views are the maintenances to list: those that run by node, then those that ended, newest first.
func (o *listOptions) views(ctx context.Context, c *invocation.Connection) ([]client.View, error) {
	// A requestor is not a part of the query, so the limit cannot be either.
	limit := o.limit
	if o.requestor != "" {
		limit = 0
	}
	chosen, err := c.List(ctx, client.ListOptions{Running: !o.all, Limit: limit})
	if err != nil {
		return nil, c.Explain(err)
	}
	if o.requestor != "" {
		chosen = slices.DeleteFunc(chosen, func(t client.Maintenance) bool { return t.Requestor != o.requestor })
	}
	if o.limit > 0 && len(chosen) > o.limit {
		chosen = chosen[:o.limit]
	}
	views, err := c.ObserveAll(ctx, chosen)
	slices.SortStableFunc(views, func(a, b client.View) int {
		switch {
		case a.Running() && b.Running():
			return cmp.Or(terminal.CompareNames(a.Node, b.Node), cmp.Compare(a.Requestor, b.Requestor))
		case a.Running():
			return -1
		case b.Running():
			return 1
		default:
			return b.Closed.Compare(a.Closed)
		}
	})
	return views, c.Explain(err)
}
