package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	planrules "drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/nodework"
	"drydock.dev/drydock/starter/plan"
	"drydock.dev/drydock/starter/terminal"
)

// attending is a terminal that works on the nodes of a plan.
type attending struct {
	app             *invocation.App
	c               *invocation.Connection
	plan            *client.Plan
	argv            []string
	killAfter       time.Duration
	output          terminal.Output
	continueOnError bool
	rerun           bool
	// leaves: what is given up here is left to the plan, which goes on.
	leaves bool
}

// work goes on until the plan has ended, or the user has enough.
func (w attending) work(ctx context.Context, names []string) ([]api.NodeOutcome, api.PlanStatus, error) {
	a := w.app
	stop := nodework.NewInterrupts(ctx, a.Notify)
	defer stop.Stop()
	show := a.Progress(a.Stderr)
	go sayInterrupts(stop, show, w.leaves)
	attendant := nodework.Attendant{
		Plan: w.plan, ContinueOnError: w.continueOnError, Leaves: w.leaves, Abandon: stop.Reached(1), GiveUp: stop.Reached(3),
		Worker: nodeWorker{attending: w, Display: show, stop: stop},
	}
	return attendant.Run(names) //nolint:contextcheck // it has abandon
}

type nodeWorker struct {
	attending
	*terminal.Display
	stop *nodework.Interrupts
}

// Work runs the command on one node.
func (w nodeWorker) Work(abandon context.Context, requestor string, node api.PlanNode) api.NodeOutcome {
	a, name, stop, show := w.app, node.Node, w.stop, w.Display
	stdout := &terminal.Prefixer{To: show.Writer(a.Messages(&w.output)), Prefix: "[" + name + "] "}
	stderr := &terminal.Prefixer{To: show.Writer(a.Stderr), Prefix: "[" + name + "] "}
	defer stdout.Flush()
	defer stderr.Flush()
	s := &nodework.Session{
		Maintenances: &nodework.PlanClient{TemporalClient: nodework.TemporalClient{Conn: w.c, Show: show}, RunID: node.RunID, Rerun: w.rerun},
		Program:      a.Name, Order: input.Order{Spec: spec.Maintenance{Node: name, Requestor: requestor}}, Shared: true, Leaves: w.leaves, Now: a.Clock,
		Command: nodework.Command{Argv: nodework.ReplaceNode(w.argv, name), Stdout: stdout, Stderr: stderr, KillAfter: w.killAfter},
		Env:     a.Env,
	}
	result := s.Work(nodework.Stops{ //nolint:contextcheck // each of the stops is a context
		Abandon: abandon, Abort: stop.Reached(2), GiveUp: stop.Reached(3),
		Leave: func() context.Context { return stop.Reached(3) }, Interrupts: stop,
	})
	show.Note("%s: %s%s", name, result.Result, terminal.Colon(result.Note))
	return result
}

// sayInterrupts confirms that an interrupt was understood, and says what the next one would do.
func sayInterrupts(stop *nodework.Interrupts, show *terminal.Display, leaves bool) {
	first := "interrupted: cancelling the nodes that are not ready and finishing those that are; again to stop the commands"
	if leaves {
		first = "interrupted: finishing the commands that run, and leaving the other nodes to the plan, which goes on; again to stop the commands"
	}
	for n, text := range []string{
		first,
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

type attachOptions struct {
	attending
	yes bool
}

func newAttach(a *invocation.App) *cobra.Command {
	o := &attachOptions{attending: attending{app: a, leaves: true}}
	cmd := &cobra.Command{
		Use:   "attach NAME [flags] -- COMMAND [ARG...]",
		Short: "Run a command on the nodes of a plan that runs",
		Long: `Run a command on each node of a plan as it becomes Ready, and say done or failed by its exit status. In the command's
arguments {node} stands for the node's name; no shell is involved.

It takes up a rollout whose terminal is gone, and ends with the plan. Interrupted, or with more nodes failed than the plan's
maxFailures, it finishes the commands that run and leaves: the plan itself goes on, or is paused, and its nodes wait, Ready,
for the next one. "drydock plan cancel" ends the plan.

The command is not run again on a node where it has ended. A node where it began, and nobody reported how it ended, becomes
RequestorFailed; --rerun runs the command on it once more. Attach when the other terminal is gone: of
two, the later one takes the nodes of the earlier one for lost. If the command does not exist, nothing is begun at all.`,
		Example: `  drydock plan attach kernel -- ./patch.sh {node}
  drydock plan attach rollout-20260301-220000-1a2b --rerun -- ./patch.sh {node}`,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd, args) },
	}
	o.output.Register(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.continueOnError, "continue-on-error", false, "do not leave when nodes have failed")
	f.BoolVar(&o.rerun, "rerun", false, "run the command again where one was begun and its end is not known")
	invocation.RegisterYes(f, &o.yes)
	registerKillAfter(cmd, &o.killAfter)
	return cmd
}

func (o *attachOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	a := o.app
	names, argv, err := nodework.SplitAtDash(args, cmd.ArgsLenAtDash())
	if err != nil {
		return exit.UsageError("%w", err)
	}
	if len(names) != 1 {
		return exit.UsageError("name one plan before the --")
	}
	c, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	p := client.PlanOf(c.Client, names[0])
	o.c, o.plan, o.argv = c, p, argv
	status, err := p.AllNodes(ctx)
	if err == nil && status.Phase.Ended() {
		err = fmt.Errorf("plan %s %w", p.Name, client.ErrEnded)
	}
	if err != nil {
		return plan.Explain(c, p.Name, err)
	}
	if status.Stages != nil {
		return exit.Hint(fmt.Errorf("plan %s holds its nodes together: the end of a command would give back one alone", p.Name),
			`Work on them when "%s plan status %s" says that they are drained, and then "%s plan set-stage %s Complete".`, a.Name, p.Name, a.Name, p.Name)
	}
	for _, n := range status.Nodes {
		if err := nodework.FindProgram(nodework.ReplaceNode(argv, n.Node)); err != nil {
			return err
		}
	}
	if err := o.leftBehind(ctx, c, status); err != nil {
		return err
	}
	outcomes, status, err := o.work(ctx, nil)
	if err != nil {
		return c.Explain(err)
	}
	if !status.Phase.Ended() {
		fmt.Fprintf(a.Stderr, "Plan %s is %s: \"%s plan attach %s -- COMMAND\" goes on with it, \"%s plan cancel %s\" ends it.\n",
			p.Name, status.Phase, a.Name, p.Name, a.Name, p.Name)
	}
	return showOutcomes(a, &o.output, outcomes)
}

// leftBehind decides about the nodes on which somebody has begun to work and said no end.
func (o *attachOptions) leftBehind(ctx context.Context, c *invocation.Connection, status api.PlanStatus) error {
	var left []client.View
	for _, n := range status.Nodes {
		if planrules.State(n.State) != planrules.Running || n.RunID == "" {
			continue
		}
		m, found, err := c.Latest(ctx, n.Node, status.Plan.Requestor)
		if err != nil {
			return c.Explain(err)
		}
		if !found {
			continue
		}
		v, err := c.Observe(ctx, m)
		if err != nil {
			return c.Explain(err)
		}
		if v.Phase() == api.Ready && v.Status.StartedAt != nil {
			left = append(left, v)
		}
	}
	if len(left) == 0 || o.rerun {
		return nil
	}
	for _, v := range left {
		fmt.Fprintf(o.app.Stderr, "%s: a command was begun at %s, and its end is not known.\n", v.Node, terminal.Clock(*v.Status.StartedAt, c.Clock()))
	}
	fmt.Fprintf(o.app.Stderr, "With --rerun the command is run on %s once more.\n", map[bool]string{true: "it", false: "them"}[len(left) == 1])
	if err := o.app.Confirm("Take its terminal for lost, so that these nodes become RequestorFailed?", "nothing was changed", o.yes); err != nil {
		return err
	}
	for _, v := range left {
		failed := api.FailedMessage{Requestor: v.Requestor, Reason: "a command was begun on the node, and its end is not known"}
		if _, err := c.Send(ctx, v.Maintenance, api.MsgFailed, failed, ""); err != nil && !errors.Is(err, client.ErrEnded) {
			return c.ExplainSent(err, "status "+v.Node)
		}
	}
	return nil
}
