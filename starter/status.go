package starter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type statusOptions struct {
	app       *invocation.App
	output    terminal.Output
	requestor string
}

func newStatus(a *invocation.App) *cobra.Command {
	o := &statusOptions{app: a}
	cmd := &cobra.Command{
		Use:   "status NODE",
		Short: "Show where the maintenance of a node is, and what it waits for",
		Long: `Show the maintenance of a node: its phase, what it waits for in words, the progress of its drain with every pod that
blocks it, the rungs of the escalation that were taken and the next one, its times and the latest messages to it.

If none is running, the latest one that ended is shown.`,
		Example: `  drydock status worker-01
  drydock status worker-01 --requestor ops -o json | jq -r .phase`,
		Args: invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.output.Register(cmd)
	cmd.Flags().StringVarP(&o.requestor, "requestor", "r", "", invocation.OfMaintenance)
	return cmd
}

func (o *statusOptions) run(ctx context.Context, node string) error {
	if err := o.output.Check(); err != nil {
		return err
	}
	c, err := o.app.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	t, note, err := o.pick(ctx, c, node)
	if err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintln(o.app.Messages(&o.output), terminal.OneLine(note))
	}
	v, err := c.Observe(ctx, t)
	if err != nil {
		return c.Explain(err)
	}
	if !v.Running() && v.Status == nil {
		// The history of one that ended still answers, with more than its result.
		if status, err := c.LastStatus(ctx, v.Maintenance); err == nil {
			v.Status = status
		}
	}
	if v.Unanswered != nil {
		fmt.Fprintf(o.app.Stderr, "Warning: %s\n", terminal.OneLine(invocation.WithoutKeys(v.Unanswered).Error()))
	}
	return o.output.Write(o.app.Stdout, v.Known(), func(w io.Writer) { terminal.Show(w, views.Maintenance(v.Known(), views.At(c.Clock()))) })
}

// pick finds the running maintenance, or else the one that ended last.
func (o *statusOptions) pick(ctx context.Context, c *invocation.Connection, node string) (client.Maintenance, string, error) {
	f, note, missing := c.FindWithNote(ctx, node, o.requestor)
	if missing == nil {
		return f.Maintenance, note, nil
	}
	if spec.NodeName(node) != nil {
		return client.Maintenance{}, "", missing
	}
	all, err := c.List(ctx, client.ListOptions{Node: node, Limit: 100})
	if err != nil {
		return client.Maintenance{}, "", c.Explain(err)
	}
	all = slices.DeleteFunc(all, func(t client.Maintenance) bool { return o.requestor != "" && t.Requestor != o.requestor })
	if len(all) == 0 || slices.ContainsFunc(all, client.Maintenance.Running) {
		return client.Maintenance{}, "", missing
	}
	last := slices.MaxFunc(all, func(a, b client.Maintenance) int { return cmp.Compare(a.Closed.UnixNano(), b.Closed.UnixNano()) })
	return last, "No maintenance of " + node + " is running; this is the last one that ended.", nil
}
