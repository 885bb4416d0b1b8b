package health

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// messageOptions are what the commands that send a check a message have in common.
type messageOptions struct {
	app         *invocation.App
	output      terminal.Output
	by, comment string
}

// register adds the flags, with the help of the comment.
func (o *messageOptions) register(cmd *cobra.Command, usage string) *cobra.Command {
	o.output.Register(cmd)
	cmd.Flags().StringVar(&o.by, "by", "", "who says it, recorded with the message (default user@host)")
	cmd.Flags().StringVar(&o.comment, "comment", "", usage)
	return cmd
}

func newPause(a *invocation.App) *cobra.Command {
	o := &messageOptions{app: a}
	return o.register(&cobra.Command{
		Use:   "pause NAME --comment TEXT",
		Short: "Begin no more remediations until the check is resumed",
		Long: `Begin no more remediations, and no further steps of those under way, until "drydock health resume". What is at work goes on, and
the remediation of a node that recovers is cleared away. A pause belongs to the person who asked for it, and everybody's has to be taken back.`,
		Example: `  drydock health pause workers --comment "storage moves"`,
		Args:    oneCheck,
		RunE: a.Connected(func(ctx context.Context, c *invocation.Connection, args []string) error {
			return o.run(ctx, c, args[0], api.MsgPause, api.HealthMessage{})
		}, func([]string) error {
			if o.comment == "" {
				return exit.UsageError("missing --comment: say why: the check shows it to those who wait")
			}
			return nil
		}),
	}, "why, shown by the check")
}

func newResume(a *invocation.App) *cobra.Command {
	o := &messageOptions{app: a}
	var (
		of  string
		all bool
	)
	cmd := o.register(&cobra.Command{
		Use:   "resume NAME",
		Short: "Take a pause back",
		Long: `Take your pause of a health check back, or with --of somebody else's, or with --all everybody's. A pauseRequest of the check's
own specification is taken back where that is written: in the worker's configuration, or with "drydock health apply".`,
		Example: `  drydock health resume workers
  drydock health resume workers --of bob@bastion --comment "agreed with bob"`,
		Args: oneCheck,
		RunE: a.Connected(func(ctx context.Context, c *invocation.Connection, args []string) error {
			return o.run(ctx, c, args[0], api.MsgResume, api.ResumeHealth{Of: of, All: all})
		}, func([]string) error {
			if all && of != "" {
				return exit.UsageError("pass either --of or --all")
			}
			return nil
		}),
	}, "why, recorded with the message")
	cmd.Flags().StringVar(&of, "of", "", "whose pause it is (default yours)")
	cmd.Flags().BoolVar(&all, "all", false, "take everybody's back")
	return cmd
}

func newRemove(a *invocation.App) *cobra.Command {
	o := &messageOptions{app: a}
	return o.register(&cobra.Command{
		Use:        "remove NAME",
		SuggestFor: []string{"delete"},
		Short:      "End a health check",
		Long: `End a health check. It is refused while the check remediates a node. One that the worker's configuration has is started again
within half a minute: take it out of the configuration first, and start the worker with that.`,
		Example: `  drydock health remove workers --comment "replaced by one for each pool"`,
		Args:    oneCheck,
		RunE: a.Connected(func(ctx context.Context, c *invocation.Connection, args []string) error {
			return o.run(ctx, c, args[0], api.MsgRemove, api.HealthMessage{})
		}),
	}, "why, recorded with the message")
}

// comesBack says whether a worker may start a removed check again. It is no error that this is not known.
func (o *messageOptions) comesBack(ctx context.Context, h *client.HealthCheck) string {
	v, err := h.Observe(ctx, api.HealthStatusRequest{Limit: 1})
	if err != nil || !v.Configured {
		return ""
	}
	return "; a worker had started it: one whose configuration still has it (healthChecks) starts it again within half a minute"
}

// run sends a check a message, and shows its status afterwards for programs. A confirmation without a check is for the one that remediates
// the node.
func (o *messageOptions) run(ctx context.Context, c *invocation.Connection, name, message string, payload any) (err error) {
	if confirmed, ok := payload.(api.ConfirmHealthy); ok && name == "" {
		if name, err = remediatedBy(ctx, c, confirmed.Node); err != nil {
			return err
		}
	}
	h := client.HealthCheckOf(c.Client, name).As(o.by)
	sent, err := h.Send(ctx, message, payload, o.comment)
	if err != nil {
		return explain(c, name, err)
	}
	effect := sent.Effect
	if message == api.MsgRemove {
		effect += o.comesBack(ctx, h)
	}
	fmt.Fprintf(o.app.Messages(&o.output), "%s: %s\n", name, terminal.OneLine(terminal.Words(effect, c.Clock())))
	if o.output.Table() {
		return nil
	}
	v, err := h.Observe(ctx, api.HealthStatusRequest{Limit: 1})
	if err != nil {
		return explain(c, name, err)
	}
	return o.output.Write(o.app.Stdout, v.Summary())
}

func newConfirm(a *invocation.App) *cobra.Command {
	o := &messageOptions{app: a}
	var check string
	cmd := o.register(&cobra.Command{
		Use:   "confirm NODE --comment TEXT",
		Short: "Say that a recovered node is healthy, so that its remediation is cleared away now",
		Long: `Say that a recovered node is healthy: its remediation is cleared away now, whatever the check's healthyDelay. With a negative
one nothing else does it. The annotation remediation.medik8s.io/manually-confirmed-healthy on the node does the same.

A node that is still ill is refused: what it has is shown by "drydock health explain".`,
		Example: `  drydock health confirm worker-07 --comment "memory replaced, tested for an hour"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("missing NODE: confirm NODE")
			}
			return invocation.OneNode(cmd, args)
		},
		RunE: a.Connected(func(ctx context.Context, c *invocation.Connection, args []string) error {
			return o.run(ctx, c, check, api.MsgConfirm, api.ConfirmHealthy{Node: args[0]})
		}, func(args []string) error {
			if o.comment == "" {
				return exit.UsageError("missing --comment: say how it is known that %s is healthy", args[0])
			}
			return nil
		}),
	}, "how that is known, recorded with the message")
	cmd.Flags().StringVar(&check, "check", "", "the health check whose remediation it is (default the one that remediates the node)")
	return cmd
}

// remediatedBy is the one check that remediates a node.
func remediatedBy(ctx context.Context, c *invocation.Connection, node string) (string, error) {
	all, err := ask(ctx, c, node)
	if err != nil {
		return "", err
	}
	for _, one := range all {
		if one.remediates() {
			return one.Check, nil
		}
	}
	return "", exit.Hint(fmt.Errorf("no health check remediates %s", node), `"%s health explain %s" says how it stands.`, c.Program, node)
}
