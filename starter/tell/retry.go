package tell

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
)

func newRetry(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:   "retry NODE",
		Short: "Make a node whose work has failed Ready again, or validate it again",
		Long: `Make a RequestorFailed node Ready again, with a new ready timeout. Nothing changes on the node, which stayed out of
service. When the other try has worked, say "drydock done".

A node whose validation has failed is validated again; where a hook before the release failed, the hooks are called again.`,
		Example: `  drydock retry worker-01 --comment "cable replaced"`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return retryMessage() })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

func retryMessage() invocation.Message {
	return invocation.Message{Message: client.Retry(), Words: retryWords{}}
}

type retryWords struct{ invocation.Plain }

func (w retryWords) Said(now *api.Status) string { return fmt.Sprintf("is %s", now.Phase) }
