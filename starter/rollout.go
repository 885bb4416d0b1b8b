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
)

type rolloutOptions struct {
	app                 *app
	spec                specFlags
	output              output
	selector            string
	all                 bool
	parallel            int
	continueOnError     bool
	includeControlPlane bool
	yes                 bool
	killAfter           time.Duration
}

func newRollout(a *app) *cobra.Command {
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
	o.spec.register(cmd)
	o.output.register(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.selector, "selector", "l", "", "label selector of the nodes")
	f.BoolVar(&o.all, "all", false, "all nodes")
	f.IntVar(&o.parallel, "max-parallel", 1, "how many nodes to work on at a time")
	f.BoolVar(&o.continueOnError, "continue-on-error", false, "go on when a node has failed")
	f.BoolVar(&o.includeControlPlane, "include-control-plane", false, "include control-plane nodes")
	registerYes(f, &o.yes)
	registerKillAfter(cmd, &o.killAfter)
	return cmd
}

func (o *rolloutOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	a := o.app
	names, argv, err := splitAtDash(args, cmd.ArgsLenAtDash())
	if err != nil {
		return usageError("%w", err)
	}
	if err := o.check(names); err != nil {
		return err
	}
	input, err := o.spec.input(cmd.Flags(), a.env, a.Stdin)
	if err != nil {
		return err
	}
	if _, ok := input["node"]; ok {
		return usageError("the file is for one node: leave node out of it")
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	names, skipped, err := o.nodes(ctx, names)
	if err != nil {
		return err
	}
	orders, err := ordersFor(input, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := findCommand(replaceNode(argv, name)); err != nil {
			return err
		}
	}
	if err := o.confirm(names, skipped); err != nil {
		return err
	}
	outcomes := append(o.roll(ctx, c, orders, argv), skipped...)
	err = o.output.write(a.Stdout, outcomes, func(w io.Writer) { renderOutcomes(w, outcomes) })
	if err != nil {
		return err
	}
	if slices.ContainsFunc(outcomes, func(o outcome) bool { return o.Result == resultFailed && o.ExitStatus != nil }) {
		fmt.Fprintf(a.Stderr, "Failed nodes stay out of service until you say \"%s done NODE\" after their repair, retry, or cancel --release.\n", a.name)
	}
	return withCodeUnlessOK(rolloutCode(outcomes))
}

func (o *rolloutOptions) check(names []string) error {
	if err := o.output.check(); err != nil {
		return err
	}
	ways := 0
	for _, given := range []bool{o.selector != "", o.all, len(names) > 0} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return usageError("which nodes? Say one of --selector, --all, or their names")
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return usageError("--selector: %q is not a label selector: %w", o.selector, err)
	}
	if o.parallel < 1 {
		return usageError("--max-parallel %d: want 1 or more", o.parallel)
	}
	return nil
}

// listTimeout bounds the listing of nodes, without which a rollout by labels cannot be.
const listTimeout = 30 * time.Second

// nodes are the nodes to work on, and those that are left out.
func (o *rolloutOptions) nodes(ctx context.Context, names []string) (chosen []string, skipped []outcome, err error) {
	k, err := o.app.kubernetes(listTimeout)
	if err != nil && len(names) > 0 {
		return unique(names), nil, nil
	}
	if err != nil {
		return nil, nil, hint(fmt.Errorf("--selector and --all need Kubernetes: %w", err), "Set KUBECONFIG or --kubeconfig, or name the nodes.")
	}
	known, err := k.list(ctx, o.selector)
	if err != nil && len(names) > 0 {
		fmt.Fprintf(o.app.Stderr, "Warning: control-plane nodes cannot be told: %v\n", err)
		return unique(names), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	byName := map[string]node{}
	for _, n := range known {
		byName[n.Name] = n
		if len(names) == 0 {
			chosen = append(chosen, n.Name)
		}
	}
	for _, name := range unique(names) {
		if _, ok := byName[name]; !ok {
			return nil, nil, hint(k.errNoNode(ctx, name), "Nothing was started.")
		}
		chosen = append(chosen, name)
	}
	chosen = slices.DeleteFunc(chosen, func(name string) bool {
		leaveOut := byName[name].controlPlane() && !o.includeControlPlane
		if leaveOut {
			skipped = append(skipped, outcome{Node: name, Result: resultSkipped, Note: "control plane; --include-control-plane includes it"})
		}
		return leaveOut
	})
	switch {
	case len(chosen) == 0 && len(skipped) == 0:
		return nil, nil, fmt.Errorf("no node matches the selector %q", o.selector)
	case len(chosen) == 0:
		return nil, nil, fmt.Errorf("no nodes to work on: %s left out as control plane (--include-control-plane includes them)", plural(len(skipped), "node"))
	}
	return chosen, skipped, nil
}

// confirm shows what is about to happen and asks, where somebody is there to answer.
func (o *rolloutOptions) confirm(names []string, skipped []outcome) error {
	out := o.app.Stderr
	fmt.Fprintf(out, "Rollout over %s, %d at a time: %s\n", plural(len(names), "node"), min(o.parallel, len(names)), someOf(names, 10))
	for _, s := range skipped {
		fmt.Fprintf(out, "Left out: %s (%s)\n", s.Node, s.Note)
	}
	return o.app.confirm("Take these nodes out of service?", "nothing was started", o.yes)
}

func (o *rolloutOptions) roll(ctx context.Context, c *connection, orders []order, argv []string) []outcome {
	a := o.app
	stop := a.interrupts(ctx)
	defer stop.stop()
	show := newDisplay(a.Stderr, a.now)
	go o.sayInterrupts(stop, show)
	byNode := map[string]order{}
	for _, order := range orders {
		byNode[order.spec.Node] = order
	}
	return roller{
		nodes: orderNodes(orders), parallel: o.parallel, continueOnError: o.continueOnError, abandon: stop.reached(1),
		work: func(abandon context.Context, node string) outcome {
			stdout := &prefixer{to: show.writer(a.messages(&o.output)), prefix: "[" + node + "] "}
			stderr := &prefixer{to: show.writer(a.Stderr), prefix: "[" + node + "] "}
			defer stdout.flush()
			defer stderr.flush()
			s := &session{
				desk: &temporalDesk{conn: c, show: show}, program: a.name, order: byNode[node], now: a.now,
				command: func(t client.Maintenance) command {
					return command{
						argv: replaceNode(argv, node), environ: nodeEnvironment(a.env, t),
						stdout: stdout, stderr: stderr, killAfter: o.killAfter,
					}
				},
			}
			result := s.work(stops{ //nolint:contextcheck // each of the stops is a context
				abandon: abandon, abort: stop.reached(2), giveUp: stop.reached(3),
				leave: func() context.Context { return stop.reached(3) }, signal: stop.last,
			})
			show.note("%s: %s%s", node, result.Result, colon(result.Note))
			return result
		},
	}.run() //nolint:contextcheck // it has abandon
}

// sayInterrupts confirms that an interrupt was understood, and says what the next one would do.
func (o *rolloutOptions) sayInterrupts(stop *interrupts, show *display) {
	for n, text := range []string{
		"interrupted: cancelling the nodes that are not ready and finishing those that are; again to stop the commands",
		"interrupted again: stopping the commands; once more to leave without telling Temporal",
	} {
		select {
		case <-stop.reached(n + 1).Done():
			show.note("%s", text)
		case <-stop.quit:
			return
		}
	}
}
