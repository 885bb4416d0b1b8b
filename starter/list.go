package starter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"drydock/rules/period"
)

type listOptions struct {
	app       *app
	output    output
	all       bool
	requestor string
	limit     int
}

func newList(a *app) *cobra.Command {
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
	o.output.register(cmd)
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "list those that ended too")
	cmd.Flags().StringVarP(&o.requestor, "requestor", "r", "", "list those of one requestor")
	cmd.Flags().IntVar(&o.limit, "limit", 500, "list at most this many; 0 is no limit")
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if o.limit < 0 {
		return usageError("--limit %d: want 0 or more", o.limit)
	}
	c, err := o.app.connect(ctx)
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
	return o.output.write(o.app.Stdout, summaries(views), func(w io.Writer) { renderList(w, views, o.all, c.now()) })
}

// views are the maintenances to list: those that run by node, then those that ended, newest first.
func (o *listOptions) views(ctx context.Context, c *connection) ([]view, error) {
	// A requestor is not a part of the query, so the limit cannot be either.
	limit := o.limit
	if o.requestor != "" {
		limit = 0
	}
	targets, err := c.list(ctx, "", !o.all, limit)
	if err != nil {
		return nil, err
	}
	if o.requestor != "" {
		targets = slices.DeleteFunc(targets, func(t target) bool { return t.Requestor != o.requestor })
	}
	if o.limit > 0 && len(targets) > o.limit {
		targets = targets[:o.limit]
	}
	views, err := c.viewAll(ctx, targets)
	slices.SortStableFunc(views, func(a, b view) int {
		switch {
		case a.running() && b.running():
			return cmp.Or(compareNames(a.Node, b.Node), cmp.Compare(a.Requestor, b.Requestor))
		case a.running():
			return -1
		case b.running():
			return 1
		default:
			return b.Closed.Compare(a.Closed)
		}
	})
	return views, err
}

// viewAll looks at many maintenances, a few at a time.
func (c *connection) viewAll(ctx context.Context, targets []target) ([]view, error) {
	const atATime = 16
	views, errs := make([]view, len(targets)), make([]error, len(targets))
	tokens := make(chan struct{}, atATime)
	var all sync.WaitGroup
	for i, t := range targets {
		tokens <- struct{}{}
		all.Go(func() {
			defer func() { <-tokens }()
			views[i], errs[i] = c.observer(t).observe(ctx)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, c.explain("looking at the maintenances", err)
		}
	}
	return views, nil
}

func renderList(w io.Writer, views []view, all bool, now time.Time) {
	if len(views) == 0 {
		if all {
			fmt.Fprintln(w, "No maintenances.")
		} else {
			fmt.Fprintln(w, "No maintenances are running.")
		}
		return
	}
	r := newRows(w, "NODE", "REQUESTOR", "PHASE", "SINCE", "ATTEMPT", "WAITING FOR")
	for _, v := range views {
		phase, since, attempt, waiting := string(v.phase()), v.Started, "", ""
		switch {
		case !v.running():
			since, waiting = v.Closed, v.message()
		case v.Status != nil:
			since, waiting = v.Status.Since, v.Status.WaitingFor
			attempt = fmt.Sprint(v.Status.Attempt)
		default:
			phase = "?"
		}
		r.add(v.Node, v.Requestor, phase, period.Age(now.Sub(since)), attempt, waiting)
	}
	r.done()
}
