package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/overview"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/heldby"
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
		Use:   "status [NODE]",
		Short: "Show what goes on in the cluster, or where the maintenance of a node is",
		Long: `Without NODE, show the cluster: what needs attention and the command that comes next, what runs, who waits for a slot,
limits and freezes, plans, health checks, and profiles. A part that cannot be read says why, and the others are shown.

With NODE, show the maintenance of a node: its phase, what it waits for in words, the progress of its drain with every pod
that blocks it, the rungs of the escalation that were taken and the next one, its times and the latest messages to it.

If none is running, the profile that holds the node in maintenance is shown, or else the latest maintenance that ended.`,
		Example: `  drydock status
  drydock status -o json | jq -r '.attention[] | [.about, .what] | @tsv'
  drydock status worker-01
  drydock status worker-01 --requestor ops -o json | jq -r .phase`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("one node at a time, not %s", strings.Join(args, ", "))
			}
			return nil
		},
		RunE: a.Connected(func(ctx context.Context, c *invocation.Connection, args []string) error {
			if len(args) == 0 {
				return o.ofCluster(ctx, c)
			}
			return o.run(ctx, c, args[0])
		}, o.check),
	}
	o.output.Register(cmd)
	cmd.Flags().StringVarP(&o.requestor, "requestor", "r", "", invocation.OfMaintenance)
	return cmd
}

func (o *statusOptions) check(args []string) error {
	if len(args) == 0 && o.requestor != "" {
		return exit.UsageError("--requestor is for the maintenance of a NODE: status NODE --requestor %s", o.requestor)
	}
	return nil
}

func (o *statusOptions) run(ctx context.Context, c *invocation.Connection, node string) error {
	f, note, err := o.pick(ctx, c, node)
	if o.requestor == "" && noneRuns(f.Maintenance, err) {
		switch held := heldby.HoldingOf(ctx, c, node, o.app.Stderr); {
		case held.Node != nil && o.output.Table():
			return o.output.Write(o.app.Stdout, nil, views.ProfileHolds(*held.Node, views.At(c.Clock())))
		case err != nil:
			return held.Instead(err, c.Program)
		case held.Node != nil:
			fmt.Fprintf(o.app.Stderr, "Warning: %s is in maintenance by a profile: see \"%s profile explain %s\".\n", node, c.Program, node)
		}
	}
	if err != nil {
		return heldby.WhyNone(ctx, c, c.Program, err)
	}
	if note != "" {
		fmt.Fprintln(o.app.Messages(&o.output), terminal.OneLine(note))
	}
	v, err := c.Observe(ctx, f.Maintenance)
	if err != nil {
		return c.Explain(err)
	}
	if !v.Running() && v.Status == nil {
		// The history of one that ended still answers, with more than its result.
		if status, err := c.LastStatus(ctx, v.Maintenance); err == nil {
			v.Status = status
		}
	}
	o.app.WarnUnanswered(v.Unanswered)
	reader := views.At(c.Clock())
	if o.output.Table() && v.Running() && o.mustName(ctx, c, v.Maintenance) {
		reader = reader.Naming(f.For)
	}
	return o.output.Write(o.app.Stdout, v.Known(), views.Maintenance(v.Known(), reader))
}

// mustName reports whether a command about a maintenance has to name its requestor: the user did so, or the node has
// other maintenances too.
func (o *statusOptions) mustName(ctx context.Context, c *invocation.Connection, m client.Maintenance) bool {
	if o.requestor != "" {
		return true
	}
	running, err := c.List(ctx, client.ListOptions{Node: m.Node, Running: true})
	return err != nil || slices.ContainsFunc(running, func(other client.Maintenance) bool { return other.Requestor != m.Requestor })
}

// withoutKeys says of errors how to name the keys of payloads.
type withoutKeys struct{}

func (withoutKeys) Explain(err error) error { return invocation.WithoutKeys(err) }

func (o *statusOptions) ofCluster(ctx context.Context, c *invocation.Connection) error {
	s := overview.Status(ctx, c.Client, c.Clock(), withoutKeys{})
	if err := exit.OrStopped(ctx, ctx.Err()); err != nil {
		return err
	}
	return cmp.Or(o.output.Write(o.app.Stdout, s, views.Cluster(s, views.At(c.Clock()))), exit.Unless(!overview.Unknown(s), exit.Failed))
}

// noneRuns reports whether no maintenance of the node runs, by what pick has found. An error that says anything else has to be shown: that
// several run, or that it could not be found out.
func noneRuns(found client.Maintenance, err error) bool {
	if err == nil {
		return !found.Running()
	}
	var none *client.NotFoundError
	return errors.As(err, &none) && len(none.Others) == 0
}

// pick finds the running maintenance, or else the one that ended last.
func (o *statusOptions) pick(ctx context.Context, c *invocation.Connection, node string) (client.Found, string, error) {
	f, note, missing := c.FindByFlag(ctx, node, o.requestor, "--requestor")
	if missing == nil {
		return f, note, nil
	}
	if spec.NodeName(node) != nil {
		return client.Found{}, "", missing
	}
	all, err := c.List(ctx, client.ListOptions{Node: node, Limit: 100})
	if err != nil {
		return client.Found{}, "", c.Explain(err)
	}
	all = slices.DeleteFunc(all, func(t client.Maintenance) bool { return o.requestor != "" && t.Requestor != o.requestor })
	if len(all) == 0 || slices.ContainsFunc(all, client.Maintenance.Running) {
		return client.Found{}, "", missing
	}
	last := slices.MaxFunc(all, func(a, b client.Maintenance) int { return cmp.Compare(a.Closed.UnixNano(), b.Closed.UnixNano()) })
	return client.Found{Maintenance: last}, "No maintenance of " + node + " is running; this is the last one that ended.", nil
}
