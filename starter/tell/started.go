package tell

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
)

func newStarted(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:   "started NODE",
		Short: "Record that the work on a Ready node has begun",
		Long: `Record that the work on a Ready node has begun. It changes nothing but the record, where auditors look for it;
exec and rollout send it by themselves.`,
		Example: `  drydock started worker-01`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return startedMessage(a.Name) })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

func startedMessage(program string) invocation.Message {
	return invocation.Message{Message: client.Started(), Words: startedWords{program: program}}
}

type startedWords struct {
	invocation.Plain
	program string
}

func (w startedWords) Next(s *api.Status) string {
	return fmt.Sprintf(`Wait for it with "%s watch %s".`, w.program, s.Spec.Node)
}

func (startedWords) Said(*api.Status) string { return "the work has begun" }
