package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"drydock/client"
	"drydock/rules/preflight"
)

type preflightOptions struct {
	app       *app
	spec      specFlags
	output    output
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
	"wait-for-pods-timeout", "ready-timeout", "on-ready-timeout", "on-node-replaced", "preflight",
}

func newPreflight(a *app) *cobra.Command {
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
	o.spec.register(cmd)
	o.output.register(cmd)
	for _, name := range noDrainFlags {
		if f := cmd.Flags().Lookup(name); f != nil {
			f.Hidden = true
		}
	}
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "label selector of the nodes")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait for the answers")
	registerSkipCheck(cmd, &o.skipCheck)
	return cmd
}

func (o *preflightOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	a := o.app
	if err := o.check(args); err != nil {
		return err
	}
	input, err := o.spec.input(cmd.Flags(), a.env, a.Stdin)
	if err != nil {
		return err
	}
	names, err := o.nodes(ctx, args, input)
	if err != nil {
		return err
	}
	orders, err := ordersFor(input, names)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if !o.skipCheck && o.selector == "" {
		if err := a.checkNodes(ctx, names); err != nil {
			return err
		}
	}
	if err := c.HasWorker(ctx); err != nil {
		return err
	}
	ctx, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	reports, failures := o.checkAll(ctx, c, orders)
	err = o.output.write(a.Stdout, reports, func(w io.Writer) { renderPreflights(w, reports) })
	if err != nil {
		return err
	}
	if len(failures) > 0 {
		return joined(failures)
	}
	return withCodeUnlessOK(preflightCode(reports))
}

func (o *preflightOptions) check(args []string) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if o.timeout <= 0 {
		return usageError("--timeout %s: want more than 0", o.timeout)
	}
	if o.selector != "" && len(args) > 0 {
		return usageError("which nodes? Say --selector or their names, not both")
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return usageError("--selector: %q is not a label selector: %w", o.selector, err)
	}
	return nil
}

// nodes are those of the arguments, of the file, or of the selector.
func (o *preflightOptions) nodes(ctx context.Context, args []string, input map[string]any) ([]string, error) {
	if o.selector == "" {
		return nodesOf(args, input)
	}
	if _, ok := input["node"]; ok {
		return nil, usageError("the file is for one node: leave node out of it, or leave out --selector")
	}
	k, err := o.app.kubernetes(listTimeout)
	if err != nil {
		return nil, hint(fmt.Errorf("--selector needs Kubernetes: %w", err), "Set KUBECONFIG or --kubeconfig, or name the nodes.")
	}
	known, err := k.list(ctx, o.selector)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range known {
		names = append(names, n.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no node matches the selector %q", o.selector)
	}
	return names, nil
}

// preflightCode is what the command exits with.
func preflightCode(reports []preflight.Report) int {
	if slices.ContainsFunc(reports, func(r preflight.Report) bool { return r.ProblemCount() > 0 }) {
		return exitWouldStop
	}
	return exitOK
}

// checkAll looks at all nodes, a few at a time, and returns what it learned with the errors of the rest.
func (o *preflightOptions) checkAll(ctx context.Context, c *connection, orders []order) ([]preflight.Report, []error) {
	names := orderNodes(orders)
	found, errs := make([]preflight.Report, len(orders)), make([]error, len(orders))
	tokens := make(chan struct{}, preflightsAtOnce)
	var all sync.WaitGroup
	for i, order := range orders {
		tokens <- struct{}{}
		all.Go(func() {
			defer func() { <-tokens }()
			input := maps.Clone(order.input)
			if others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == order.spec.Node }); len(others) > 0 {
				input["together"] = others
			}
			found[i], errs[i] = c.preflight(ctx, order.spec.Node, input, o.timeout)
		})
	}
	all.Wait()
	reports, failures := []preflight.Report{}, []error(nil)
	for i := range orders {
		if errs[i] != nil {
			failures = append(failures, errs[i])
			continue
		}
		reports = append(reports, found[i])
	}
	return reports, failures
}

// preflight runs one preflight to its end.
func (c *connection) preflight(ctx context.Context, node string, input client.Input, within time.Duration) (preflight.Report, error) {
	report, err := c.Preflight(ctx, node, input, within)
	switch err = orStopped(ctx, err); {
	case errors.Is(err, errTimedOut):
		return report, withCode(exitTimedOut, fmt.Errorf("timed out waiting for the preflight of %s", node))
	case errors.Is(err, errInterrupted):
		return report, withCode(exitInterrupted, fmt.Errorf("no longer waiting for the preflight of %s", node))
	default:
		return report, c.explain(err)
	}
}

func renderPreflights(w io.Writer, reports []preflight.Report) {
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(w)
		}
		renderPreflight(w, r)
	}
}

func renderPreflight(w io.Writer, r preflight.Report) {
	switch n := r.ProblemCount(); n {
	case 0:
		fmt.Fprintf(w, "%s: nothing would stop a drain\n", r.Node)
	default:
		fmt.Fprintf(w, "%s: %s would stop a drain\n", r.Node, plural(n, "problem"))
	}
	renderFindings(w, "Problems", r.Problems, r.MoreProblems)
	renderFindings(w, "Warnings", r.Warnings, r.MoreWarnings)
	fmt.Fprintf(w, "Pods: %s\n", countsText(r.Counts))
	renderPods(w, r)
	renderBudgets(w, r)
	if r.Room != nil {
		fmt.Fprintf(w, "Room: %s to place on %s\n", plural(r.Room.Pods, "pod"), plural(r.Room.Nodes, "other node"))
	}
}

func renderFindings(w io.Writer, title string, findings []preflight.Finding, more int) {
	if len(findings) == 0 {
		return
	}
	fmt.Fprintf(w, "%s:\n", title)
	for _, f := range findings {
		fmt.Fprintf(w, "  %s\n", oneLine(f.String()))
	}
	if more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
}

func countsText(counts map[preflight.Action]int) string {
	var texts []string
	for _, action := range []preflight.Action{preflight.Evict, preflight.Delete, preflight.Wait, preflight.Refuse, preflight.Skip} {
		if n := counts[action]; n > 0 {
			texts = append(texts, fmt.Sprintf("%s %d", action, n))
		}
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

func renderPods(w io.Writer, r preflight.Report) {
	if len(r.Pods) == 0 {
		return
	}
	table := newRows(w, "TIER", "POD", "ACTION", "REASON", "BUDGET", "MESSAGE")
	for _, p := range r.Pods {
		tier := ""
		if p.Tier > 0 {
			tier = fmt.Sprint(p.Tier)
		}
		table.add(tier, p.Pod, string(p.Action), p.Reason, strings.Join(p.Budgets, ", "), p.Message)
	}
	table.done()
	if r.MorePods > 0 {
		fmt.Fprintf(w, "and %d more pods\n", r.MorePods)
	}
}

func renderBudgets(w io.Writer, r preflight.Report) {
	if len(r.Budgets) == 0 {
		return
	}
	table := newRows(w, "BUDGET", "ALLOWED", "HEALTHY", "DESIRED", "PODS", "ON NODE", "NOTE")
	for _, b := range r.Budgets {
		note := ""
		if b.Impossible {
			note = "impossible"
		}
		table.add(b.Budget, fmt.Sprint(b.Allowed), fmt.Sprint(b.Healthy), fmt.Sprint(b.Desired), fmt.Sprint(b.Pods), fmt.Sprint(b.OnNode), note)
	}
	table.done()
	if r.MoreBudgets > 0 {
		fmt.Fprintf(w, "and %d more budgets\n", r.MoreBudgets)
	}
}
