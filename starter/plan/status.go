package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// states are those of a plan's nodes, in words.
var states = []string{
	plan.Waiting.Word(), plan.Running.Word(), plan.Held.Word(), plan.Done.Word(), plan.Failed.Word(),
	plan.Skipped.Word(), plan.Gone.Word(),
}

// formatKEP is the shape of KEP-4212's NodeMaintenance, in YAML.
const formatKEP = "kep"

type statusOptions struct {
	app    *invocation.App
	output terminal.Output
	all    bool
	states []string
	watch  bool
}

func newStatus(a *invocation.App) *cobra.Command {
	o := &statusOptions{app: a}
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show where a plan is, and what it waits for",
		Long: `Show a plan: its phase, its nodes by their states, what it waits for and until when, the nodes with something to say, and
what is in the way of those that have been running for the longest. With -o kep it is KEP-4212's NodeMaintenance, for plans of
strategy all-at-once.

With --watch it goes on until the plan has ended: in a terminal as a picture with a sign for each node (# done,
> running, ! held, x failed, . waiting, - skipped), in a pipe as a line whenever something has changed.`,
		Example: `  drydock plan status kernel-6.12
  drydock plan status kernel-6.12 --watch
  drydock plan status firmware -o kep
  drydock plan status kernel-6.12 --state failed,held -o json | jq -r '.nodes[].node'`,
		Args: onePlan,
		RunE: a.Connected(o.run, o.check),
	}
	o.output.Register(cmd, formatKEP)
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "show all nodes, not only those with something to say")
	f.StringSliceVar(&o.states, "state", nil, "show the nodes in this state (repeatable): "+strings.Join(states, ", "))
	f.BoolVarP(&o.watch, "watch", "w", false, "go on until the plan has ended")
	terminal.CompleteFlag(cmd, "state", states)
	return cmd
}

func (o *statusOptions) check([]string) error {
	for _, state := range o.states {
		if !slices.Contains(states, state) {
			return exit.UsageError("--state %q: want one of %s", state, strings.Join(states, ", "))
		}
	}
	switch {
	case o.all && len(o.states) > 0:
		return exit.UsageError("pass either --all or --state")
	case o.watch && !o.output.Table():
		return exit.UsageError("--watch is for people: leave out -o %s", o.output.Format)
	case o.watch && (o.all || len(o.states) > 0):
		return exit.UsageError("--watch shows all nodes: leave out --all and --state")
	}
	return nil
}

func (o *statusOptions) run(ctx context.Context, c *invocation.Connection, args []string) error {
	name := args[0]
	p := client.PlanOf(c.Client, name)
	if o.watch {
		return watch(ctx, o.app, c, p)
	}
	v, err := p.Observe(ctx, api.PlanStatusRequest{States: o.states})
	if err != nil {
		return Explain(c, name, err)
	}
	o.app.WarnUnanswered(v.Unanswered)
	shown := v.Known()
	if v.Status != nil && (o.all || len(o.states) > 0) {
		status, err := p.AllNodesIn(ctx, o.states)
		if err != nil {
			return Explain(c, name, err)
		}
		shown.MoreNodes, shown.Nodes = 0, append([]api.PlanNode{}, status.Nodes...)
	}
	if o.output.Format == formatKEP {
		return o.kep(v, shown)
	}
	shown.Slowest, shown.Pace = slowest(ctx, c, p, v), p.Pace(ctx, v)
	shown.Warnings = append(shown.Warnings, aheadOfStatus(ctx, o.app, c, p, v.Status)...)
	return o.output.Write(o.app.Stdout, shown, views.Plan(shown, views.At(c.Clock())))
}

// kep shows a plan of strategy allAtOnce as the KEP would.
func (o *statusOptions) kep(v client.PlanView, shown api.Plan) error {
	switch {
	case v.Status == nil:
		return fmt.Errorf("-o kep needs the plan's own answer: %w", v.Unanswered)
	case v.Status.Stages == nil:
		return exit.UsageError("-o kep is for plans of strategy all-at-once, and %s is rolling", v.Name)
	}
	yaml := terminal.Output{Format: terminal.FormatYAML}
	return yaml.Write(o.app.Stdout, api.KEPOf(shown))
}

// waitsForPlan reports whether a node of a staged plan is as far as its stage takes it: it waits for nothing but the plan, and its other nodes.
func waitsForPlan(n api.PlanNode) bool {
	d := n.Drain
	return d != nil && (d.Phase == api.Cordoned || d.Drained && (d.Phase == api.Draining || d.Phase == api.Ready))
}

// maxSlowest bounds the nodes whose maintenances are asked.
const maxSlowest = 5

// slowest are the nodes that have been running for the longest, with the status of their maintenances. A maintenance that does not answer
// is left out: the plan's own status has the node, too.
func slowest(ctx context.Context, c *invocation.Connection, p *client.Plan, v client.PlanView) []api.SlowNode {
	if v.Status == nil || v.Status.Counts.Running == 0 {
		return nil
	}
	var running []api.PlanNode
	for _, n := range v.Status.Nodes {
		if n.State == plan.Running.Word() && n.RunID != "" && !waitsForPlan(n) {
			running = append(running, n)
		}
	}
	slices.SortStableFunc(running, func(a, b api.PlanNode) int { return a.Since.Compare(b.Since) })
	running = running[:min(maxSlowest, len(running))]
	maintenances := make([]client.Maintenance, len(running))
	for i, n := range running {
		maintenances[i] = p.MaintenanceIn(*v.Status, n)
	}
	observed, err := c.ObserveAll(ctx, maintenances)
	if err != nil {
		return nil
	}
	var all []api.SlowNode
	for _, one := range observed {
		if one.Running() {
			all = append(all, views.SlowNode(one.Known()))
		}
	}
	return all
}
