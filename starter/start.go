package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"drydock/client"
	"drydock/rules/spec"
)

type startOptions struct {
	app       *app
	spec      specFlags
	output    output
	wait      bool
	timeout   time.Duration
	skipCheck bool
}

func newStart(a *app) *cobra.Command {
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
	o.spec.register(cmd)
	o.output.register(cmd)
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
	if err := o.output.check(); err != nil {
		return err
	}
	if err := checkTimeout(o.timeout, o.wait); err != nil {
		return err
	}
	orders, err := a.orders(cmd, &o.spec, args)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if !o.skipCheck {
		if err := a.checkNodes(ctx, orderNodes(orders)); err != nil {
			return err
		}
	}
	out := a.messages(&o.output)
	views, failures := o.startAll(ctx, c, out, orders)
	if len(views) > 0 && !o.wait {
		if err := c.HasWorker(ctx); err != nil {
			fmt.Fprintf(a.Stderr, "Warning: %s\n", err)
		}
	}
	if o.wait {
		failures = append(failures, o.waitAll(ctx, c, out, views)...)
	}
	if !o.output.table() {
		if err := o.output.write(a.Stdout, summaries(views), nil); err != nil {
			return err
		}
	}
	return joined(failures)
}

// joined is nil for no errors, and for one is that one.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// order is one maintenance to start.
type order struct {
	input client.Input
	spec  spec.Maintenance
}

// orders makes an order for each node from the flags and the file, before anything is started.
func (a *app) orders(cmd *cobra.Command, flags *specFlags, args []string) ([]order, error) {
	input, err := flags.input(cmd.Flags(), a.env, a.Stdin)
	if err != nil {
		return nil, err
	}
	names, err := nodesOf(args, input)
	if err != nil {
		return nil, err
	}
	return ordersFor(input, names)
}

func ordersFor(input map[string]any, names []string) ([]order, error) {
	orders := make([]order, len(names))
	for i, name := range names {
		var err error
		if orders[i].input, orders[i].spec, err = forNode(input, name); err != nil {
			return nil, err
		}
	}
	return orders, nil
}

func orderNodes(orders []order) []string {
	names := make([]string, len(orders))
	for i, o := range orders {
		names[i] = o.spec.Node
	}
	return names
}

// startAll starts what can be started, and returns it with the errors of the rest.
func (o *startOptions) startAll(ctx context.Context, c *connection, out io.Writer, orders []order) (views []client.View, failures []error) {
	for _, order := range orders {
		v, adopted, err := c.start(ctx, order)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		views = append(views, v)
		if adopted {
			fmt.Fprintf(out, "%s: the same maintenance for %s is running already, %s\n", v.Node, v.Requestor, progress(v))
			continue
		}
		fmt.Fprintf(out, "%s: maintenance for %s started\n", v.Node, v.Requestor)
	}
	if !o.wait && len(views) > 0 {
		node := views[0].Node
		fmt.Fprintf(out, "See how it goes with \"%s watch %s\"; once Ready, do the work and say \"%s done %s\".\n", c.program, node, c.program, node)
	}
	return views, failures
}

// waitAll waits until all are Ready and keeps what it saw last in views.
func (o *startOptions) waitAll(ctx context.Context, c *connection, out io.Writer, views []client.View) []error {
	ctx, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	if len(views) > 0 {
		fmt.Fprintf(out, "Waiting until %s Ready.\n", isAre(len(views)))
	}
	w := &waiter{conn: c, show: newDisplay(out, o.app.now)}
	errs := make([]error, len(views))
	var all sync.WaitGroup
	for i := range views {
		all.Go(func() {
			v, err := w.await(ctx, views[i].Maintenance, client.Ready)
			w.show.settle(v.WorkflowID)
			views[i], errs[i] = v, c.stopped(err, v.Node, v.Node+" to be Ready")
		})
	}
	all.Wait()
	var failures []error
	for i, err := range errs {
		if err != nil {
			failures = append(failures, err)
			continue
		}
		fmt.Fprintf(out, "%s is Ready: do the work, then say \"%s done %s\".\n", views[i].Node, c.program, views[i].Node)
	}
	return failures
}

func isAre(n int) string {
	if n == 1 {
		return "the node is"
	}
	return "the nodes are"
}

// start starts a maintenance, or adopts the one that runs already if it is the same.
func (c *connection) start(ctx context.Context, o order) (v client.View, adopted bool, err error) {
	v, adopted, err = c.Start(ctx, o.input)
	var (
		different   *client.DifferentError
		notCompared *client.NotComparedError
	)
	switch {
	case errors.As(err, &different):
		err = c.errDifferent(different)
	case errors.As(err, &notCompared):
		err = hint(err, "%s", notCompared.Unanswered)
	default:
		err = c.explain(err)
	}
	return v, adopted, err
}

func (c *connection) errDifferent(different *client.DifferentError) error {
	v := different.View
	var table strings.Builder
	r := newRows(&table, "FIELD", "RUNNING", "ASKED FOR")
	for _, d := range different.Differences {
		r.add(d.Field, jsonText(d.Running), jsonText(d.Asked))
	}
	r.done()
	text := fmt.Sprintf("a maintenance of %s for %s is running already (%s), with other settings:\n%s",
		v.Node, v.Requestor, v.Phase(), strings.TrimRight(table.String(), "\n"))
	return hint(&inWords{text, different}, `Ask for the settings it has, end it with "%s cancel %s", or start one of your own with another --requestor.`, c.program, v.Node)
}
