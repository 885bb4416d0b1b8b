package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/heldby"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type startOptions struct {
	app       *invocation.App
	spec      input.Flags
	output    terminal.Output
	wait      bool
	timeout   time.Duration
	skipCheck bool
	orders    []input.Order
}

func newStart(a *invocation.App) *cobra.Command {
	o := &startOptions{app: a}
	cmd := &cobra.Command{
		Use:   "start NODE...",
		Short: "Start the maintenance of a node: take it out of service",
		Long: `Start the maintenance of one or more nodes: each waits for a slot, is cordoned, drained, and then is Ready for you.

Without --wait the command returns when a worker has taken the maintenances, and fails where it refuses one, such as for a
channel that its configuration lacks; with --wait it waits until the nodes are Ready, and fails if one does not get there. Then do the work and say "drydock done NODE".

Starting what runs already with the same settings is no error: the command goes on with the running maintenance. With
other settings it is, and the error shows both. If the maintenance before is still giving the node back, it waits for that.

A drain in tiers is written in the file: "drain: {plan: {tiers: [{podPriority: 1000, podSelector: app=web}]}}".`,
		Example: `  drydock start worker-01 --reason "kernel 6.12" --ticket OPS-7 --wait
  drydock start worker-01 worker-02 --wait --timeout 2h
  drydock start gpu-07 --wait-for-pods app=training --wait-for-pods-timeout 12h --ready-timeout 4h
  drydock start worker-03 --preflight fail --escalation 30m=notify --escalation 2h=giveBack
  drydock start --file maintenance.yaml
  drydock start worker-01 --drain-mode wait -o json`,
		RunE: a.Connected(o.run, o.check),
	}
	o.spec.Register(cmd)
	o.output.Register(cmd)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the nodes are Ready")
	invocation.DurationVar(cmd.Flags(), &o.timeout, "timeout", 0, "how long --wait waits; 0 is for ever. The maintenances go on")
	registerSkipCheck(cmd, &o.skipCheck)
	return cmd
}

func registerSkipCheck(cmd *cobra.Command, skip *bool) {
	cmd.Flags().BoolVar(skip, "skip-node-check", false, "do not look whether Kubernetes knows the node")
}

func (o *startOptions) check(args []string) (err error) {
	if err := invocation.CheckTimeout(o.timeout, o.wait); err != nil {
		return err
	}
	o.orders, err = input.OrdersOf(o.app, &o.spec, args)
	return err
}

func (o *startOptions) run(ctx context.Context, c *invocation.Connection, _ []string) (err error) {
	a := o.app
	var nodes []invocation.Node
	if !o.skipCheck {
		if nodes, err = a.FindNodes(ctx, input.OrderNodes(o.orders)); err != nil {
			return err
		}
	}
	out := a.Messages(&o.output)
	views, failures := o.startAll(ctx, c, out)
	for _, n := range heldby.Of(ctx, c, nodes) {
		fmt.Fprintln(out, heldText(n, c.Program))
	}
	if o.wait {
		failures = append(failures, o.waitAll(ctx, c, out, views)...)
	}
	return cmp.Or(o.output.Write(a.Stdout, client.Summaries(views)), exit.Joined(failures))
}

// begun is what became of one order.
type begun struct {
	view    client.View
	adopted bool
	// unread: no worker has read its input yet.
	unread bool
	err    error
}

// decidedAtOnce bounds how many maintenances are begun together.
const decidedAtOnce = 16

// startAll starts what can be started, and returns it with the errors of the rest.
func (o *startOptions) startAll(ctx context.Context, c *invocation.Connection, out io.Writer) (views []client.View, failures []error) {
	display := o.app.Progress(out)
	all, _ := invocation.Each(o.orders, decidedAtOnce, func(order input.Order) (begun, error) {
		return o.startOne(ctx, c, display, order), nil
	})
	warned := ""
	for _, b := range all {
		var undecided invocation.Undecided
		if errors.As(b.err, &undecided) {
			if text := undecided.Error(); text != warned {
				warned = text
				fmt.Fprintf(o.app.Stderr, "Warning: %s\n", text)
			}
			b.err, b.unread = nil, true
		}
		if b.err != nil {
			failures = append(failures, b.err)
			continue
		}
		views = append(views, b.view)
		fmt.Fprintln(out, begunText(b, c.Program, c.Clock()))
	}
	if !o.wait && len(views) > 0 {
		node := views[0].Node
		fmt.Fprintf(out, "Watch it with \"%s watch %s\"; once Ready, do the work and run \"%s done %s\".\n", c.Program, node, c.Program, node)
	}
	return views, failures
}

// startOne starts a maintenance and waits until a worker takes it, so that an input that is refused is an error here.
func (o *startOptions) startOne(ctx context.Context, c *invocation.Connection, display *terminal.Display, order input.Order) (b begun) {
	b.view, b.adopted, b.err = c.StartAnew(ctx, order.Input, func(text string) { display.Note("%s", text) })
	if b.err == nil && !b.adopted {
		b.view, b.err = c.AwaitDecision(ctx, b.view.Maintenance)
	}
	return b
}

// begunText says that a maintenance was started, and what it waits for before it begins.
func begunText(b begun, program string, now time.Time) string {
	v := b.view
	if b.adopted {
		return fmt.Sprintf("%s: the same maintenance for %s is running already, %s", v.Node, v.Requestor, terminal.OneLine(terminal.Words(views.Progress(v.Known()), now)))
	}
	text := fmt.Sprintf("%s: maintenance for %s started", v.Node, v.Requestor)
	if b.unread {
		return text + "; it begins once a worker runs"
	}
	if v.Status == nil {
		return text
	}
	if at := v.Status.Spec.NotBefore; at != nil && at.After(now) {
		text += "; it begins not before " + terminal.Clock(*at, now)
	}
	if v.Status.Spec.Approval && v.Status.Approval == nil {
		text += fmt.Sprintf(`; it waits for approval: "%s approve %s"`, program, v.Node)
	}
	return text
}

// heldText says which profiles hold a node too.
func heldText(n api.ProfileNode, program string) string {
	names := terminal.NamesOf(n.Profiles, func(p api.NodeProfile) string { return "profile " + terminal.OneLine(p.Profile) })
	return fmt.Sprintf(`%s: the node is %s by %s too: see "%s profile explain %s".`, n.Node, n.State, strings.Join(names, " and "), program, n.Node)
}

// waitAll waits until all are Ready and keeps what it saw last in views.
func (o *startOptions) waitAll(ctx context.Context, c *invocation.Connection, out io.Writer, views []client.View) []error {
	ctx, cancel := exit.WithTimeout(ctx, o.timeout)
	defer cancel()
	w := &invocation.Waiter{Conn: c, Show: o.app.Waiting(out)}
	if len(views) > 0 {
		w.Show.Say("Waiting until %s Ready.", isAre(len(views)))
	}
	errs := make([]error, len(views))
	var all sync.WaitGroup
	for i := range views {
		all.Go(func() {
			v, err := w.Await(ctx, views[i].Maintenance, client.Ready)
			w.Show.Settle(v.WorkflowID)
			views[i], errs[i] = v, c.Stopped(err, v, v.Node+" to be Ready")
		})
	}
	all.Wait()
	var failures []error
	for i, err := range errs {
		if err != nil {
			failures = append(failures, err)
			continue
		}
		fmt.Fprintf(out, "%s is Ready: %s.\n", views[i].Node, next(views[i], c.Program))
	}
	return failures
}

func next(v client.View, program string) string {
	if v.Status != nil && v.Status.Spec.Work != "" {
		return fmt.Sprintf("the worker does %s, and is done for you; see \"%s watch %s\"", v.Status.Spec.Work, program, v.Node)
	}
	return fmt.Sprintf("do the work, then run \"%s done %s\"", program, v.Node)
}

func isAre(n int) string {
	if n == 1 {
		return "the node is"
	}
	return "the nodes are"
}
