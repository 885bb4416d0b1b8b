package tell

import (
	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
)

func newApprove(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:   "approve NODE",
		Short: "Approve a maintenance that waits for approval",
		Long: `Approve a maintenance that was asked for with approval. Only then does it ask for a slot; until then nothing has been
done to its node.`,
		Example: `  drydock approve worker-01 --comment "window agreed with team search"`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return decisionMessage(client.Approve(), "approved") })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

func newDeny(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:     "deny NODE",
		Short:   "Deny a maintenance that waits for approval, which ends it",
		Long:    `Deny a maintenance that was asked for with approval. It ends Cancelled, and nothing has been done to its node.`,
		Example: `  drydock deny worker-01 --comment "not during the sale"`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return decisionMessage(client.Deny(), "denied") })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

func decisionMessage(m client.Message, word string) invocation.Message {
	return invocation.Message{Message: m, Words: decisionWords{word: word}}
}

type decisionWords struct {
	invocation.Plain
	word string
}

func (w decisionWords) Said(*api.Status) string { return "is " + w.word }
