package tell

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

// membership is what join and leave have in common: the requestor they are about is not the one whose maintenance
// it is.
type membership struct {
	messageCommand
	owner string
}

func (m *membership) register(cmd *cobra.Command, requestorHelp string) {
	m.messageCommand.register(cmd, requestorHelp)
	cmd.Flags().StringVar(&m.owner, "of", "", "whose maintenance of the node, where several wait for it")
}

func newJoin(a *invocation.App) *cobra.Command {
	m := &membership{messageCommand: messageCommand{app: a}}
	cmd := &cobra.Command{
		Use:   "join NODE",
		Short: "Share somebody else's maintenance of a node",
		Long: `Share a maintenance that runs: the node is put back only when you too have said "drydock done".

One drain serves both, where two maintenances of one node would run one after the other.`,
		Example: `  drydock join worker-01 --comment "swapping the NIC while it is down"
  drydock join worker-01 --requestor network-team --of ops`,
		Args: invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.run(cmd.Context(), args[0], joinMessage)
		},
	}
	m.register(cmd, "who joins (env "+invocation.EnvRequestor+", default you)")
	return cmd
}

// run addresses the maintenance by its owner rather than by who joins or leaves.
func (m *membership) run(ctx context.Context, node string, build func(program, who string) invocation.Message) error {
	who := cmp.Or(m.requestor, m.app.Env.Requestor())
	if err := spec.RequestorName(who); err != nil {
		return exit.UsageError("requestor: %w", err)
	}
	m.requestor, m.of = m.owner, "--of"
	return m.messageCommand.run(ctx, node, func(client.Found) invocation.Message { return build(m.app.Name, who) })
}

func joinMessage(program, who string) invocation.Message {
	return invocation.Message{Message: client.Join(who), Words: joinWords{program: program, who: who}}
}

type joinWords struct {
	invocation.Plain
	program string
	who     string
}

func (w joinWords) Next(s *api.Status) string {
	return fmt.Sprintf(`Start one of your own: "%s start %s".`, w.program, s.Spec.Node)
}

func (w joinWords) Said(now *api.Status) string {
	return fmt.Sprintf("%s shares the maintenance of %s, which is %s", w.who, now.Spec.Requestor, now.Phase)
}
