package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// message declares the command of a message to a plan, or to some of its nodes.
type message struct {
	use, name string
	// says is what the arguments after the plan's name make of the message.
	says                       arguments
	short, long, example, ends string
	// denies: it is for a plan that asks for approval. replaces: it has the flag --replace.
	denies, replaces bool
}

var messages = []message{{
	use: "pause NAME", name: api.MsgPause, says: always{api.Simple{}}, short: "Begin no more nodes of a plan until it is resumed",
	long:    `Begin no more nodes of a plan until "drydock plan resume". What runs goes on.`,
	example: `  drydock plan pause kernel-6.12 --comment "incident 4711"`,
}, {
	use: "resume NAME", name: api.MsgResume, says: always{api.Simple{}}, short: "Go on with a plan that is paused",
	long:    `Go on with a plan that is paused. Failures that are known by now do not pause it again.`,
	example: `  drydock plan resume kernel-6.12 --comment "the disk was bad, not the kernel"`,
}, {
	use: "approve NAME", name: api.MsgApprove, says: always{api.Simple{}}, short: "Let a plan go on after its canary",
	long:    `Let a plan go on after its canary, where its strategy asks for somebody's approval. It may be given before the canary is done.`,
	example: `  drydock plan approve kernel-6.12 --comment "the canary looks good"`,
}, {
	use: "deny NAME", name: api.MsgCancel, says: always{api.Cancel{}}, ends: "deny", denies: true, short: "End a plan that asks for approval after its canary",
	long:    `End a plan whose strategy asks for somebody's approval, as "drydock plan cancel" ends any plan.`,
	example: `  drydock plan deny kernel-6.12 --comment "the canary has lost its disks"`,
}, {
	use: "cancel NAME", name: api.MsgCancel, says: always{api.Cancel{}}, ends: "cancel",
	short: "End a plan: give back the nodes that are not Ready, finish those that are",
	long: `End a plan. Nothing more is begun; nodes that are not Ready yet are given back, and those that are Ready are finished:
the plan ends when they are.

If the plan is neither for you nor started by you, it asks first; --yes answers yes, and is needed
where nobody is there to give one.`,
	example: `  drydock plan cancel kernel-6.12 --comment "change postponed"`,
}, {
	use: "skip NAME NODE...", name: api.MsgSkip, says: eachNode{}, short: "Leave nodes of a plan out",
	long: `Leave nodes of a plan out. One that is not Ready yet is given back; one that is Ready is finished, and one that waits for
a decision needs that first.`,
	example: `  drydock plan skip kernel-6.12 worker-07 worker-08 --comment "to be scrapped"`,
}, {
	use: "retry NAME NODE...", name: api.MsgRetry, says: eachNode{}, short: "Try nodes of a plan again that failed or were skipped",
	long: `Try nodes of a plan again, in their turn, that failed or were skipped. The maintenance of one that waits for a decision is
told to try again.`,
	example: `  drydock plan retry kernel-6.12 worker-07 --comment "disk replaced"`,
}, {
	use: "set-pace NAME AMOUNT", name: api.MsgSetPace, says: toPace{}, short: "Have a plan work on more nodes at a time, or on fewer",
	long: `Have a plan work on so many nodes at a time from now on, a number or a percentage of its nodes, whatever its strategy said.
What runs goes on, also where it is more. The plan's status has the new pace as strategy.maxParallel, and the one before among
its events. To begin no node at all: "drydock plan pause".`,
	example: `  drydock plan set-pace kernel-6.12 1 --comment "the storage is slow"
  drydock plan set-pace kernel-6.12 10%`,
}, {
	use: "set-stage NAME STAGE", name: api.MsgSetStage, says: toStage{}, short: "Have a plan of strategy all-at-once go on to a stage",
	long: `Have a plan of strategy all-at-once go on to another stage: Cordon makes its nodes unschedulable, Drain empties them too,
tier by tier, and Complete gives them back and ends the plan. The order is Idle, Cordon, Drain, Complete: Cordon and Drain
can be skipped, and no plan goes back. Complete undoes what Drydock did, and no cordon of somebody else's.

If another plan that shares a node has other settings for its maintenance, the stage is refused, and the plan is in the one
before again. Nodes that are more than the limits let go at a time wait, all of them, until limits are raised: the plan's status
has the command.`,
	example: `  drydock plan set-stage firmware Drain --comment "window is open"
  drydock plan set-stage firmware Complete`,
}, {
	use: "report-to NAME WORKFLOW:NAME", name: api.MsgReportTo, says: toWorkflow{}, replaces: true, short: "Have a plan report to a workflow of yours",
	long: `Have a rolling plan signal a workflow of the same namespace: now, and when the plan ends. Maintenances that it begins from now
on report there too, as "drydock report-to" has one do that runs. "drydock plan create" asks for it with reportTo of its input.

A plan reports to one workflow. If that is another one, it goes on unless --replace is set.`,
	example: `  drydock plan report-to kernel-6.12 kernel-rollout:report
  drydock plan report-to kernel-6.12 kernel-rollout-2:report --replace`,
}}

// Messages are the commands that send a plan a message and print its summary.
func Messages() []string {
	return terminal.NamesOf(messages, func(m message) string {
		verb, _, _ := strings.Cut(m.use, " ")
		return "plan " + verb
	})
}

// arguments are what stands after the name of the plan in a command that sends it messages.
type arguments interface {
	// payloads are those of the messages, one or more.
	payloads(use string, args []string) ([]any, error)
}

// always is a payload that no argument changes.
type always struct{ payload any }

func (a always) payloads(_ string, args []string) ([]any, error) {
	if len(args) > 0 {
		return nil, fmt.Errorf("one plan at a time, and no more than its name: not %s", strings.Join(args, ", "))
	}
	return []any{a.payload}, nil
}

// eachNode takes names of nodes, each of which makes a message.
type eachNode struct{}

func (eachNode) payloads(use string, args []string) ([]any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("missing NODE: %s", use)
	}
	all := make([]any, len(args))
	for i, node := range args {
		all[i] = api.NodeOfPlan{Node: node}
	}
	return all, nil
}

type toStage struct{}

func (toStage) payloads(use string, args []string) ([]any, error) {
	text, err := only("STAGE, one of "+strings.Join(namesOf(plan.Stages), ", "), use, args)
	if err != nil {
		return nil, err
	}
	s, err := stageOf(text, plan.Stages)
	return []any{api.SetStage{Stage: s}}, err
}

type toWorkflow struct{}

func (toWorkflow) payloads(use string, args []string) ([]any, error) {
	text, err := only("WORKFLOW:NAME, a workflow ID and the name of a signal", use, args)
	if err != nil {
		return nil, err
	}
	to, err := input.ReportTo(text)
	return []any{api.ReportTo{Workflow: to.Workflow, Signal: to.Signal}}, err
}

type toPace struct{}

func (toPace) payloads(use string, args []string) ([]any, error) {
	text, err := only("AMOUNT, such as 5 or 10%", use, args)
	if err != nil {
		return nil, err
	}
	most, err := schedule.ParseAmount(text)
	return []any{api.SetPace{MaxParallel: most}}, err
}

func only(what, use string, args []string) (string, error) {
	switch len(args) {
	case 0:
		return "", fmt.Errorf("missing %s: %s", what, use)
	case 1:
		return args[0], nil
	default:
		return "", fmt.Errorf("want one %s: %s", what, use)
	}
}

func (m message) command(a *invocation.App) *cobra.Command {
	o := &messageOptions{app: a, denies: m.denies}
	cmd := o.register(&cobra.Command{
		Use: m.use, Short: m.short, Long: m.long, Example: m.example,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := onePlan(cmd, args[:min(1, len(args))]); err != nil {
				return err
			}
			_, err := m.says.payloads(cmd.Use, args[1:])
			return err
		},
		RunE: a.Connected(func(ctx context.Context, c *invocation.Connection, args []string) error {
			payloads, err := m.says.payloads(m.use, args[1:])
			if err != nil {
				return err
			}
			if to, is := payloads[0].(api.ReportTo); is {
				to.Replace = o.replace
				payloads[0] = to
			}
			return o.run(ctx, c, args[0], m.name, payloads...)
		}),
	})
	if m.ends != "" {
		o.owned = &invocation.Owned{Says: m.ends}
		cmd.Flags().BoolVarP(&o.owned.Yes, "yes", "y", false, "do not ask where the plan is somebody else's")
	}
	if m.replaces {
		cmd.Flags().BoolVar(&o.replace, "replace", false, "report to this workflow instead of the one that it reports to")
	}
	return cmd
}

// messageOptions are what the commands that send a plan a message have in common.
type messageOptions struct {
	app         *invocation.App
	output      terminal.Output
	by, comment string
	// owned says how to ask before the message ends what is somebody else's; nil if it may.
	owned *invocation.Owned
	// denies: the message is for a plan that asks for approval, and no other.
	denies  bool
	replace bool
}

func (o *messageOptions) register(cmd *cobra.Command) *cobra.Command {
	o.output.Register(cmd)
	cmd.Flags().StringVar(&o.by, "by", "", "who says it, recorded with the message (default user@host)")
	cmd.Flags().StringVar(&o.comment, "comment", "", "why, recorded with the message")
	return cmd
}

// run finds the plan, sends the message with each payload, and shows the plan's status afterwards for programs.
func (o *messageOptions) run(ctx context.Context, c *invocation.Connection, name, message string, payloads ...any) error {
	p := client.PlanOf(c.Client, name).As(o.by)
	if o.owned != nil {
		if err := o.agree(ctx, c, p); err != nil {
			return err
		}
	}
	var failures []error
	for _, payload := range payloads {
		sent, err := p.Send(ctx, message, payload, o.comment)
		if err != nil {
			failures = append(failures, Explain(c, name, err))
			continue
		}
		fmt.Fprintf(o.app.Messages(&o.output), "%s: %s\n", name, terminal.OneLine(terminal.Words(sent.Effect, c.Clock())))
	}
	if o.output.Table() || len(failures) > 0 {
		return exit.Joined(failures)
	}
	v, err := p.Observe(ctx, api.PlanStatusRequest{Limit: 1})
	if err != nil {
		return Explain(c, name, err)
	}
	return o.output.Write(o.app.Stdout, v.Summary())
}

// agree asks where the plan is somebody else's.
func (o *messageOptions) agree(ctx context.Context, c *invocation.Connection, p *client.Plan) error {
	v, err := p.Observe(ctx, api.PlanStatusRequest{Limit: 1})
	if err != nil {
		return Explain(c, p.Name, err)
	}
	if v.Status == nil || !v.Running() {
		return nil // the message's own error says why nobody answers, or that the plan has ended
	}
	if c := v.Status.Plan.Strategy.Canary; o.denies && (c == nil || !c.Approval) {
		return exit.Hint(fmt.Errorf("plan %s asks for no approval", p.Name), `To end it: "%s plan cancel %s".`, o.app.Name, p.Name)
	}
	starter := ""
	if v.Status.Starter != nil {
		starter = v.Status.Starter.Identity
	}
	return o.app.AgreeOnPlan(c, p.Name, v.Status.Plan.Requestor, starter, *o.owned)
}
