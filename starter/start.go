package starter

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"drydock/client"
	"drydock/starter/exit"
	"drydock/starter/input"
	"drydock/starter/invocation"
	"drydock/starter/show"
	"drydock/starter/terminal"
)

type startOptions struct {
	app       *invocation.App
	spec      input.Flags
	output    terminal.Output
	wait      bool
	timeout   time.Duration
	skipCheck bool
}

func newStart(a *invocation.App) *cobra.Command {
	o := &startOptions{app: a}
	cmd := &cobra.Command{
		Use:   "start NODE...",
		Short: "Start the maintenance of a node: take it out of service",
		Long: `Start the maintenance of one or more nodes: each waits for a slot, is cordoned, drained, and then is Ready for you.

Without --wait the command returns when the maintenances are started; with --wait it waits until the nodes are Ready,
and fails if one does not get there. Then do the work and say "drydock done NODE".

Starting what runs already with the same settings is no error: the command goes on with the running maintenance. With
other settings it is, and the error shows both.

A drain in tiers is written in the file: "drain: {plan: {tiers: [{podPriority: 1000, podSelector: app=web}]}}".`,
		Example: `  drydock start worker-01 --reason "kernel 6.12" --ticket OPS-7 --wait
  drydock start worker-01 worker-02 --wait --timeout 2h
  drydock start gpu-07 --wait-for-pods app=training --wait-for-pods-timeout 12h --ready-timeout 4h
  drydock start worker-03 --preflight fail --escalation 30m=notify --escalation 2h=giveBack
  drydock start --file maintenance.yaml
  drydock start worker-01 --drain-mode wait -o json`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd, args) },
	}
	o.spec.Register(cmd)
	o.output.Register(cmd)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the nodes are Ready")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "how long --wait waits; 0 is for ever. The maintenances go on")
	registerSkipCheck(cmd, &o.skipCheck)
	return cmd
}

func registerSkipCheck(cmd *cobra.Command, skip *bool) {
	cmd.Flags().BoolVar(skip, "skip-node-check", false, "do not look whether Kubernetes knows the node")
}

func (o *startOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	a := o.app
	if err := o.output.Check(); err != nil {
		return err
	}
	if err := invocation.CheckTimeout(o.timeout, o.wait); err != nil {
		return err
	}
	orders, err := input.OrdersOf(a, cmd, &o.spec, args)
	if err != nil {
		return err
	}
	c, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if !o.skipCheck {
		if err := a.CheckNodes(ctx, input.OrderNodes(orders)); err != nil {
			return err
		}
	}
	out := a.Messages(&o.output)
	views, failures := o.startAll(ctx, c, out, orders)
	if len(views) > 0 && !o.wait {
		if err := c.HasWorker(ctx); err != nil {
			fmt.Fprintf(a.Stderr, "Warning: %s\n", err)
		}
	}
	if o.wait {
		failures = append(failures, o.waitAll(ctx, c, out, views)...)
	}
	if !o.output.Table() {
		if err := o.output.Write(a.Stdout, show.Summaries(views), nil); err != nil {
			return err
		}
	}
	return exit.Joined(failures)
}

// startAll starts what can be started, and returns it with the errors of the rest.
func (o *startOptions) startAll(ctx context.Context, c *invocation.Connection, out io.Writer, orders []input.Order) (views []client.View, failures []error) {
	for _, order := range orders {
		v, adopted, err := c.StartOrAdopt(ctx, order.Input)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		views = append(views, v)
		if adopted {
			fmt.Fprintf(out, "%s: the same maintenance for %s is running already, %s\n", v.Node, v.Requestor, show.Progress(v))
			continue
		}
		fmt.Fprintf(out, "%s: maintenance for %s started\n", v.Node, v.Requestor)
	}
	if !o.wait && len(views) > 0 {
		node := views[0].Node
		fmt.Fprintf(out, "See how it goes with \"%s watch %s\"; once Ready, do the work and say \"%s done %s\".\n", c.Program, node, c.Program, node)
	}
	return views, failures
}

// waitAll waits until all are Ready and keeps what it saw last in views.
func (o *startOptions) waitAll(ctx context.Context, c *invocation.Connection, out io.Writer, views []client.View) []error {
	ctx, cancel := exit.WithTimeout(ctx, o.timeout)
	defer cancel()
	if len(views) > 0 {
		fmt.Fprintf(out, "Waiting until %s Ready.\n", isAre(len(views)))
	}
	w := &invocation.Waiter{Conn: c, Show: terminal.NewDisplay(out, o.app.Clock)}
	errs := make([]error, len(views))
	var all sync.WaitGroup
	for i := range views {
		all.Go(func() {
			v, err := w.Await(ctx, views[i].Maintenance, client.Ready)
			w.Show.Settle(v.WorkflowID)
			views[i], errs[i] = v, c.Stopped(err, v.Node, v.Node+" to be Ready")
		})
	}
	all.Wait()
	var failures []error
	for i, err := range errs {
		if err != nil {
			failures = append(failures, err)
			continue
		}
		fmt.Fprintf(out, "%s is Ready: do the work, then say \"%s done %s\".\n", views[i].Node, c.Program, views[i].Node)
	}
	return failures
}

func isAre(n int) string {
	if n == 1 {
		return "the node is"
	}
	return "the nodes are"
}
