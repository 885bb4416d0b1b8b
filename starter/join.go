package starter

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/client"
	"drydock/rules/spec"
)

// membership is what join and leave have in common: the requestor they are about is not the one whose maintenance
// it is.
type membership struct {
	tell
	of string
}

func (m *membership) register(cmd *cobra.Command, requestorHelp string) {
	m.tell.register(cmd, requestorHelp)
	cmd.Flags().StringVar(&m.of, "of", "", "whose maintenance of the node, where several wait for it")
}

func newJoin(a *app) *cobra.Command {
	m := &membership{tell: tell{app: a}}
	cmd := &cobra.Command{
		Use:   "join NODE",
		Short: "Share somebody else's maintenance of a node",
		Long: `Share a maintenance that runs: the node is put back only when you too have said "drydock done".

One drain serves both, where two maintenances of one node would run one after the other.`,
		Example: `  drydock join worker-01 --comment "swapping the NIC while it is down"
  drydock join worker-01 --requestor network-team --of ops`,
		Args: oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.run(cmd.Context(), args[0], joinMessage)
		},
	}
	m.register(cmd, "who joins (env "+envRequestor+", default you)")
	return cmd
}

// run addresses the maintenance by its owner rather than by who joins or leaves.
func (m *membership) run(ctx context.Context, node string, build func(program, who string) message) error {
	who := cmp.Or(m.requestor, m.app.env.requestor())
	if err := spec.RequestorName(who); err != nil {
		return usageError("requestor: %w", err)
	}
	m.requestor = m.of
	return m.tell.run(ctx, node, func(client.Found) message { return build(m.app.name, who) })
}

func joinMessage(program, who string) message {
	return message{
		Message: client.Join(who),
		next: func(s *api.Status) string {
			return fmt.Sprintf(`Start one of your own: "%s start %s".`, program, s.Spec.Node)
		},
		said: func(now *api.Status) string {
			return fmt.Sprintf("%s shares the maintenance of %s, which is %s", who, now.Spec.Requestor, now.Phase)
		},
	}
}
