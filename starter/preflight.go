package starter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type preflightOptions struct {
	app       *invocation.App
	spec      input.Flags
	output    terminal.Output
	selector  string
	timeout   time.Duration
	skipCheck bool
}

// preflightsAtOnce bounds the nodes that are looked at together.
const preflightsAtOnce = 8

// noDrainFlags are flags of start that say nothing about the drain: they are taken, so that a command line of start can
// be tried as it is, and not shown.
var noDrainFlags = []string{
	"requestor", "additional-requestor", "reason", "ticket", "type", "priority", "no-cordon", "wait-for-pods",
	"wait-for-pods-timeout", "ready-timeout", "on-ready-timeout", "on-node-replaced", "preflight", "window",
	"expected-duration", "ignore-windows",
}

func newPreflight(a *invocation.App) *cobra.Command {
	o := &preflightOptions{app: a}
	cmd := &cobra.Command{
		Use:   "preflight (NODE... | --selector S)",
		Short: "See what a drain would meet, without changing anything",
		Long: `Show for one or more nodes what a drain would do with each pod, in which tier, and what would stop it: pods
for whose loss nobody has consented, budgets that can never allow an eviction or overlap, permissions that the worker
lacks, and pods for which the other nodes have no room. Nothing in the cluster is changed.

Room is found by placing the pods that a controller creates anew, the largest first, on the other nodes that are ready
and schedulable, without those named here. Requests, node selectors, required node affinity and taints count; affinity
between pods, topology spread and volumes do not, so a pod that has room here may still find none.

It takes the flags and files of "drydock start", and the worker's defaults hold as for start. Exit code 0 says that
nothing would stop the drain of any node, 5 that something would.`,
		Example: `  drydock preflight worker-01
  drydock preflight worker-01 worker-02 --force --delete-emptydir-data
  drydock preflight --selector pool=gpu -o json | jq '.[] | {node, problems}'`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd, args) },
	}
	o.spec.Register(cmd)
	o.output.Register(cmd)
	for _, name := range noDrainFlags {
		if f := cmd.Flags().Lookup(name); f != nil {
			f.Hidden = true
		}
	}
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "label selector of the nodes")
	invocation.DurationVar(cmd.Flags(), &o.timeout, "timeout", 5*time.Minute, "how long to wait for the answers")
	registerSkipCheck(cmd, &o.skipCheck)
	return cmd
}

func (o *preflightOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	a := o.app
	if err := o.check(args); err != nil {
		return err
	}
	fields, err := o.spec.Input(a.Env, a.Stdin)
	if err != nil {
		return err
	}
	names, err := o.nodes(ctx, args, fields)
	if err != nil {
		return err
	}
	orders, err := o.spec.OrdersFor(fields, names)
	if err != nil {
		return err
	}
	c, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if !o.skipCheck && o.selector == "" {
		if err := a.CheckNodes(ctx, names); err != nil {
			return err
		}
	}
	if err := c.HasWorker(ctx); err != nil {
		return err
	}
	ctx, cancel := exit.WithTimeout(ctx, o.timeout)
	defer cancel()
	reports, failures := o.checkAll(ctx, c, orders)
	err = o.output.Write(a.Stdout, reports, views.Preflights(reports, views.At(c.Clock())))
	return cmp.Or(err, exit.Joined(failures), invocation.WouldStop(reports))
}

func (o *preflightOptions) check(args []string) error {
	if o.timeout <= 0 {
		return exit.UsageError("--timeout %s: want more than 0", o.timeout)
	}
	if o.selector != "" && len(args) > 0 {
		return exit.UsageError("pass either --selector or names")
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return exit.UsageError("--selector: %q is not a label selector: %w", o.selector, err)
	}
	return nil
}

// nodes are those of the arguments, of the file, or of the selector.
func (o *preflightOptions) nodes(ctx context.Context, args []string, fields map[string]any) ([]string, error) {
	if o.selector == "" {
		return input.NodesOf(args, fields)
	}
	if _, ok := fields["node"]; ok {
		return nil, exit.UsageError("the file is for one node: leave node out of it, or leave out --selector")
	}
	k, err := o.app.Nodes(listTimeout)
	if err != nil {
		return nil, exit.Hint(fmt.Errorf("--selector needs Kubernetes: %w", err), "Set KUBECONFIG or --kubeconfig, or name the nodes.")
	}
	known, err := k.List(ctx, o.selector)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("no node matches the selector %q", o.selector)
	}
	return terminal.NamesOf(known, func(n invocation.Node) string { return n.Name }), nil
}

// checkAll looks at all nodes, a few at a time, and returns what it learned with the errors of the rest.
func (o *preflightOptions) checkAll(ctx context.Context, c *invocation.Connection, orders []input.Order) ([]preflight.Report, []error) {
	names := input.OrderNodes(orders)
	return invocation.Each(orders, preflightsAtOnce, func(order input.Order) (preflight.Report, error) {
		fields := maps.Clone(order.Input)
		if others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == order.Spec.Node }); len(others) > 0 {
			fields["together"] = others
		}
		report, err := c.Preflight(ctx, order.Spec.Node, fields, o.timeout)
		return report, c.Explain(exit.Waited(ctx, err, "the preflight of "+order.Spec.Node))
	})
}
