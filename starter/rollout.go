package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/nodework"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type rolloutOptions struct {
	attending
	spec                input.Flags
	selector            string
	all                 bool
	maxParallel         string
	parallel            schedule.Amount
	includeControlPlane bool
	yes                 bool

	// What it asks of its plan.
	name, resume string
	canary       int
	maxFailures  string
}

func newRollout(a *invocation.App) *cobra.Command {
	o := &rolloutOptions{attending: attending{app: a}}
	cmd := &cobra.Command{
		Use:   "rollout (--selector S | --all | NODE...) [flags] -- COMMAND [ARG...]",
		Short: "Run a command on many nodes, each taken out of service for it",
		Long: `Do for many nodes what exec does for one: take the node out of service, run the command, put the node back. In the
command's arguments {node} stands for the node's name; no shell is involved.

At most --max-parallel nodes are asked for at a time, and the next one only when one is finished; the cluster's limits
hold besides. The first node that fails stops the rollout, or the one after --max-failures: nodes that are not Ready yet
are cancelled, commands that run are finished. With --continue-on-error the rollout goes on. A failed node stays out of
service and keeps its slot until "drydock retry", done or cancel --release.

The nodes are those of a plan (--name), which outlives the terminal: its nodes then wait, Ready, for "drydock plan attach".
With --resume NAME, nodes that an earlier plan has done are left out; without nodes of its own, such a rollout takes the
others of that plan.

Interrupted once, it cancels what is not Ready and finishes what runs; the second time it stops the commands too.

Control-plane nodes are left out unless --include-control-plane is given. It ends with a table of all nodes, and exits
with 0 if all went well, 1 if a node failed, 3 if it was cancelled. A node that somebody skips is neither.`,
		Example: `  drydock rollout --selector pool=gpu --max-parallel 2 -- ./patch.sh {node}
  drydock rollout --all --yes --reason "kernel 6.12" -- ssh root@{node} /usr/local/bin/update
  drydock rollout worker-01 worker-02 --continue-on-error -- ansible-playbook patch.yaml --limit {node}`,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd, args) },
	}
	o.spec.Register(cmd)
	cmd.Flags().Lookup("work").Hidden = true // the command is the work
	o.output.Register(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.selector, "selector", "l", "", "label selector of the nodes")
	f.BoolVar(&o.all, "all", false, "all nodes")
	f.StringVar(&o.maxParallel, "max-parallel", "1", "how many nodes to work on at a time, or a percentage of them, rounded up")
	f.BoolVar(&o.continueOnError, "continue-on-error", false, "go on when a node has failed")
	f.BoolVar(&o.includeControlPlane, "include-control-plane", false, "include control-plane nodes")
	f.StringVar(&o.name, "name", "", "name of the rollout's plan (default rollout- and the time)")
	f.StringVar(&o.resume, "resume", "", "take the nodes that the plan of this name has not done")
	f.IntVar(&o.canary, "canary", 0, "how many nodes go first: the others follow when all of them are back")
	f.StringVar(&o.maxFailures, "max-failures", "0", "how many nodes may fail, or a percentage of them, before the rollout stops")
	invocation.RegisterYes(f, &o.yes)
	registerKillAfter(cmd, &o.killAfter)
	return cmd
}

func (o *rolloutOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	a := o.app
	names, argv, err := nodework.SplitAtDash(args, cmd.ArgsLenAtDash())
	if err != nil {
		return exit.UsageError("%w", err)
	}
	if err := o.check(names); err != nil {
		return err
	}
	fields, err := o.spec.Input(a.Env, a.Stdin)
	if err != nil {
		return err
	}
	if _, ok := fields["node"]; ok {
		return exit.UsageError("the file is for one node: leave node out of it")
	}
	if err := input.RefuseWork(fields); err != nil {
		return err
	}
	c, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	before, names, err := o.resumed(ctx, c, names)
	if err != nil {
		return err
	}
	if len(names) == 0 && o.selector == "" && !o.all {
		return o.report(before.busy)
	}
	names, skipped, err := o.nodes(ctx, names)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, before.leavesOut)
	skipped = append(skipped, before.busy...)
	if len(names) == 0 {
		return o.report(skipped)
	}
	orders, err := o.spec.OrdersFor(fields, names)
	if err != nil {
		return err
	}
	fields["requestor"] = orders[0].Spec.Requestor
	for _, name := range names {
		if err := nodework.FindProgram(nodework.ReplaceNode(argv, name)); err != nil {
			return err
		}
	}
	if err := o.confirm(names, skipped); err != nil {
		return err
	}
	outcomes, err := o.roll(ctx, c, fields, names, argv)
	if err != nil {
		return err
	}
	return o.report(append(outcomes, skipped...))
}

func (o *rolloutOptions) report(outcomes []api.NodeOutcome) error {
	a, shown := o.app, showOutcomes(o.app, &o.output, outcomes)
	if slices.ContainsFunc(outcomes, func(o api.NodeOutcome) bool { return o.Result == api.OutcomeFailed && o.ExitStatus != nil }) {
		fmt.Fprintf(a.Stderr, "Failed nodes stay out of service: after their repair run \"%s done NODE\", or retry, or cancel --release.\n", a.Name)
	}
	return shown
}

// showOutcomes shows what became of nodes; the error is the exit code that follows.
func showOutcomes(a *invocation.App, output *terminal.Output, outcomes []api.NodeOutcome) error {
	if output.Table() {
		fmt.Fprintln(a.Stdout) // what commands have written stands above
	}
	code := nodework.RolloutCode(outcomes)
	return cmp.Or(output.Write(a.Stdout, outcomes, views.NodeOutcomes(outcomes)), exit.Unless(code == exit.OK, code))
}

func (o *rolloutOptions) check(names []string) error {
	ways := 0
	for _, given := range []bool{o.selector != "", o.all, len(names) > 0} {
		if given {
			ways++
		}
	}
	if ways != 1 && (ways > 1 || o.resume == "") {
		return exit.UsageError("missing nodes: pass --selector, --all, or names")
	}
	if o.canary < 0 {
		return exit.UsageError("--canary %d: want 0 or more", o.canary)
	}
	if _, err := schedule.ParseAmount(o.maxFailures); err != nil {
		return exit.UsageError("--max-failures: %w", err)
	}
	for _, name := range []string{o.name, o.resume} {
		if err := plan.CheckName(cmp.Or(name, "any")); err != nil {
			return exit.UsageError("--name, --resume: %w", err)
		}
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return exit.UsageError("--selector: %q is not a label selector: %w", o.selector, err)
	}
	var err error
	if o.parallel, err = parseParallel(o.maxParallel); err != nil {
		return exit.UsageError("--max-parallel: %w", err)
	}
	if o.parallel.Of(100) == 0 {
		return exit.UsageError("--max-parallel %s: want 1 or more", o.parallel)
	}
	return nil
}

// listTimeout bounds the listing of nodes, without which a rollout by labels cannot be.
const listTimeout = 30 * time.Second

// nodes are the nodes to work on, and those that are left out.
func (o *rolloutOptions) nodes(ctx context.Context, names []string) (chosen []string, skipped []api.NodeOutcome, err error) {
	k, err := o.app.Nodes(listTimeout)
	if err != nil && len(names) > 0 {
		return input.Unique(names), nil, nil
	}
	if err != nil {
		return nil, nil, exit.Hint(fmt.Errorf("--selector and --all need Kubernetes: %w", err), "Set KUBECONFIG or --kubeconfig, or name the nodes.")
	}
	known, err := k.List(ctx, o.selector)
	if err != nil && len(names) > 0 {
		fmt.Fprintf(o.app.Stderr, "Warning: which nodes are control-plane nodes is not known: %s\n", terminal.OneLine(err.Error()))
		return input.Unique(names), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	byName := map[string]invocation.Node{}
	for _, n := range known {
		byName[n.Name] = n
		if len(names) == 0 {
			chosen = append(chosen, n.Name)
		}
	}
	for _, name := range input.Unique(names) {
		if _, ok := byName[name]; !ok {
			return nil, nil, exit.Hint(k.ErrNoNode(ctx, name), "Nothing was started.")
		}
		chosen = append(chosen, name)
	}
	chosen = slices.DeleteFunc(chosen, func(name string) bool {
		leaveOut := byName[name].ControlPlane() && !o.includeControlPlane
		if leaveOut {
			skipped = append(skipped, api.NodeOutcome{Node: name, Result: api.OutcomeSkipped, Note: "control plane; --include-control-plane includes it"})
		}
		return leaveOut
	})
	switch {
	case len(chosen) == 0 && len(skipped) == 0:
		return nil, nil, fmt.Errorf("no node matches the selector %q", o.selector)
	case len(chosen) == 0:
		return nil, nil, fmt.Errorf("no nodes to work on: %s left out as control plane (--include-control-plane includes them)", number.Of(len(skipped), "node"))
	}
	return chosen, skipped, nil
}

// confirm shows what is about to happen and asks, where somebody is there to answer.
func (o *rolloutOptions) confirm(names []string, skipped []api.NodeOutcome) error {
	out := o.app.Stderr
	atOnce := min(o.parallel.Of(len(names)), len(names))
	fmt.Fprintf(out, "Rollout over %s, %d at a time: %s\n", number.Of(len(names), "node"), atOnce, terminal.SomeOf(names, 10))
	for _, s := range skipped {
		fmt.Fprintf(out, "Left out: %s (%s)\n", s.Node, s.Note)
	}
	return o.app.Confirm("Take these nodes out of service?", "nothing was started", o.yes)
}

func (o *rolloutOptions) roll(ctx context.Context, c *invocation.Connection, fields map[string]any, names, argv []string) ([]api.NodeOutcome, error) {
	plan := client.PlanOf(c.Client, cmp.Or(o.name, rolloutName(o.app.Clock())))
	planned, err := o.input(fields, names)
	if err != nil {
		return nil, err
	}
	if _, err := plan.Start(ctx, planned); err != nil {
		return nil, exit.Hint(c.Explain(err), "Nothing was started.")
	}
	fmt.Fprintf(o.app.Stderr, "Plan %s: \"%s plan attach %s -- COMMAND\" goes on with it where this terminal is lost.\n", plan.Name, o.app.Name, plan.Name)
	o.c, o.plan, o.argv = c, plan, argv
	outcomes, _, err := o.work(ctx, names)
	return outcomes, err
}

func rolloutName(now time.Time) string {
	return "rollout-" + now.UTC().Format("20060102-150405") + "-" + uuid.NewString()[:4]
}

// input is that of the rollout's plan: the nodes, and what the maintenances share.
func (o *rolloutOptions) input(fields map[string]any, names []string) (json.RawMessage, error) {
	strategy := map[string]any{"maxParallel": o.parallel.String(), "maxFailures": o.maxFailures}
	if o.continueOnError {
		strategy["maxFailures"] = "100%"
	}
	if o.canary > 0 {
		strategy["canary"] = map[string]any{"nodes": o.canary}
	}
	shared := maps.Clone(fields)
	plan := map[string]any{"nodes": names, "strategy": strategy, "requestor": fields["requestor"], "maintenance": shared}
	delete(shared, "node")
	delete(shared, "requestor")
	for _, field := range []string{"reason", "ticket", "owner", "notify"} {
		if value, given := shared[field]; given {
			plan[field] = value
			delete(shared, field)
		}
	}
	return json.Marshal(plan)
}
