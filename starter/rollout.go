package starter

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"drydock/client"
	"drydock/rules/schedule"
	"drydock/starter/exit"
	"drydock/starter/input"
	"drydock/starter/invocation"
	"drydock/starter/nodework"
	"drydock/starter/terminal"
)

type rolloutOptions struct {
	app                 *invocation.App
	spec                input.Flags
	output              terminal.Output
	selector            string
	all                 bool
	maxParallel         string
	parallel            schedule.Amount
	continueOnError     bool
	includeControlPlane bool
	yes                 bool
	killAfter           time.Duration
}

func newRollout(a *invocation.App) *cobra.Command {
	o := &rolloutOptions{app: a}
	cmd := &cobra.Command{
		Use:   "rollout (--selector S | --all | NODE...) [flags] -- COMMAND [ARG...]",
		Short: "Run a command on many nodes, each taken out of service for it",
		Long: `Do for many nodes what exec does for one: take the node out of service, run the command, put the node back. In the
command's arguments {node} stands for the node's name; no shell is involved.

At most --max-parallel nodes are asked for at a time, and the next one only when one is finished; the cluster's limits
hold besides. The first node that fails stops the rollout: nodes that are not Ready yet are cancelled, commands that
run are finished. With --continue-on-error the rollout goes on. A failed node stays out of service and keeps its slot
until "drydock retry", done or cancel --release, and starting the same rollout again skips nothing.

Interrupted once, it cancels what is not Ready and finishes what runs; the second time it stops the commands too.

Control-plane nodes are left out unless --include-control-plane is given. It ends with a table of all nodes, and exits
with 0 if all went well, 1 if a node failed, 3 if it was cancelled.`,
		Example: `  drydock rollout --selector pool=gpu --max-parallel 2 -- ./patch.sh {node}
  drydock rollout --all --yes --reason "kernel 6.12" -- ssh root@{node} /usr/local/bin/update
  drydock rollout worker-01 worker-02 --continue-on-error -- ansible-playbook patch.yaml --limit {node}`,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd, args) },
	}
	o.spec.Register(cmd)
	o.output.Register(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.selector, "selector", "l", "", "label selector of the nodes")
	f.BoolVar(&o.all, "all", false, "all nodes")
	f.StringVar(&o.maxParallel, "max-parallel", "1", "how many nodes to work on at a time, or a percentage of them, rounded up")
	f.BoolVar(&o.continueOnError, "continue-on-error", false, "go on when a node has failed")
	f.BoolVar(&o.includeControlPlane, "include-control-plane", false, "include control-plane nodes")
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
	fields, err := o.spec.Input(cmd.Flags(), a.Env, a.Stdin)
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
	names, skipped, err := o.nodes(ctx, names)
	if err != nil {
		return err
	}
	orders, err := input.OrdersFor(fields, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := nodework.FindProgram(nodework.ReplaceNode(argv, name)); err != nil {
			return err
		}
	}
	if err := o.confirm(names, skipped); err != nil {
		return err
	}
	outcomes := append(o.roll(ctx, c, orders, argv), skipped...)
	err = o.output.Write(a.Stdout, outcomes, func(w io.Writer) { nodework.RenderOutcomes(w, outcomes) })
	if err != nil {
		return err
	}
	if slices.ContainsFunc(outcomes, func(o nodework.Outcome) bool { return o.Result == nodework.ResultFailed && o.ExitStatus != nil }) {
		fmt.Fprintf(a.Stderr, "Failed nodes stay out of service: after their repair run \"%s done NODE\", or retry, or cancel --release.\n", a.Name)
	}
	return withCodeUnlessOK(nodework.RolloutCode(outcomes))
}

func (o *rolloutOptions) check(names []string) error {
	if err := o.output.Check(); err != nil {
		return err
	}
	ways := 0
	for _, given := range []bool{o.selector != "", o.all, len(names) > 0} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return exit.UsageError("missing nodes: pass --selector, --all, or names")
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

// atOnce is how many of the nodes are worked on at a time.
func (o *rolloutOptions) atOnce(nodes int) int { return min(o.parallel.Of(nodes), nodes) }

// listTimeout bounds the listing of nodes, without which a rollout by labels cannot be.
const listTimeout = 30 * time.Second

// nodes are the nodes to work on, and those that are left out.
func (o *rolloutOptions) nodes(ctx context.Context, names []string) (chosen []string, skipped []nodework.Outcome, err error) {
	k, err := o.app.Nodes(listTimeout)
	if err != nil && len(names) > 0 {
		return input.Unique(names), nil, nil
	}
	if err != nil {
		return nil, nil, exit.Hint(fmt.Errorf("--selector and --all need Kubernetes: %w", err), "Set KUBECONFIG or --kubeconfig, or name the nodes.")
	}
	known, err := k.List(ctx, o.selector)
	if err != nil && len(names) > 0 {
		fmt.Fprintf(o.app.Stderr, "Warning: control-plane nodes cannot be told: %v\n", err)
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
			skipped = append(skipped, nodework.Outcome{Node: name, Result: nodework.ResultSkipped, Note: "control plane; --include-control-plane includes it"})
		}
		return leaveOut
	})
	switch {
	case len(chosen) == 0 && len(skipped) == 0:
		return nil, nil, fmt.Errorf("no node matches the selector %q", o.selector)
	case len(chosen) == 0:
		return nil, nil, fmt.Errorf("no nodes to work on: %s left out as control plane (--include-control-plane includes them)", terminal.Plural(len(skipped), "node"))
	}
	return chosen, skipped, nil
}

// confirm shows what is about to happen and asks, where somebody is there to answer.
func (o *rolloutOptions) confirm(names []string, skipped []nodework.Outcome) error {
	out := o.app.Stderr
	fmt.Fprintf(out, "Rollout over %s, %d at a time: %s\n", terminal.Plural(len(names), "node"), o.atOnce(len(names)), terminal.SomeOf(names, 10))
	for _, s := range skipped {
		fmt.Fprintf(out, "Left out: %s (%s)\n", s.Node, s.Note)
	}
	return o.app.Confirm("Take these nodes out of service?", "nothing was started", o.yes)
}

func (o *rolloutOptions) roll(ctx context.Context, c *invocation.Connection, orders []input.Order, argv []string) []nodework.Outcome {
	a := o.app
	stop := nodework.NewInterrupts(ctx, a.Notify)
	defer stop.Stop()
	show := a.Progress(a.Stderr)
	go o.sayInterrupts(stop, show)
	byNode := map[string]input.Order{}
	for _, order := range orders {
		byNode[order.Spec.Node] = order
	}
	return nodework.Roller{
		Nodes: input.OrderNodes(orders), Parallel: o.atOnce(len(orders)), ContinueOnError: o.continueOnError, Abandon: stop.Reached(1),
		Work: func(abandon context.Context, node string) nodework.Outcome {
			stdout := &terminal.Prefixer{To: show.Writer(a.Messages(&o.output)), Prefix: "[" + node + "] "}
			stderr := &terminal.Prefixer{To: show.Writer(a.Stderr), Prefix: "[" + node + "] "}
			defer stdout.Flush()
			defer stderr.Flush()
			s := &nodework.Session{
				Maintenances: &nodework.TemporalClient{Conn: c, Show: show}, Program: a.Name, Order: byNode[node], Now: a.Clock,
				Command: func(t client.Maintenance) nodework.Command {
					return nodework.Command{
						Argv: nodework.ReplaceNode(argv, node), Environ: nodework.NodeEnvironment(a.Env, t),
						Stdout: stdout, Stderr: stderr, KillAfter: o.killAfter,
					}
				},
			}
			result := s.Work(nodework.Stops{ //nolint:contextcheck // each of the stops is a context
				Abandon: abandon, Abort: stop.Reached(2), GiveUp: stop.Reached(3),
				Leave: func() context.Context { return stop.Reached(3) }, Signal: stop.Last,
			})
			show.Note("%s: %s%s", node, result.Result, terminal.Colon(result.Note))
			return result
		},
	}.Run() //nolint:contextcheck // it has abandon
}

// sayInterrupts confirms that an interrupt was understood, and says what the next one would do.
func (o *rolloutOptions) sayInterrupts(stop *nodework.Interrupts, show *terminal.Display) {
	for n, text := range []string{
		"interrupted: cancelling the nodes that are not ready and finishing those that are; again to stop the commands",
		"interrupted again: stopping the commands; once more to leave without telling Temporal",
	} {
		select {
		case <-stop.Reached(n + 1).Done():
			show.Note("%s", text)
		case <-stop.Quit:
			return
		}
	}
}
