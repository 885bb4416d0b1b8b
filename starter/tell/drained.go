package tell

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/invocation"
)

func newDrained(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:   "drained NODE",
		Short: "Declare a node with drain mode external empty",
		Long: `Say that a node is empty, where somebody else than Drydock drains it: a maintenance with --drain-mode external waits
for this and then becomes Ready.`,
		Example: `  drydock drained worker-01`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return drainedMessage(a.Name) })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

func drainedMessage(program string) invocation.Message {
	return invocation.Message{Message: client.Drained(), Words: drainedWords{program: program}}
}

type drainedWords struct {
	invocation.Plain
	program string
}

func (w drainedWords) Next(s *api.Status) string {
	if s.Spec.Drain.Mode != spec.ModeExternal {
		return ""
	}
	return fmt.Sprintf(`Wait for it with "%s watch %s".`, w.program, s.Spec.Node)
}

func (w drainedWords) Said(now *api.Status) string { return fmt.Sprintf("is %s", now.Phase) }
