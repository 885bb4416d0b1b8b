package starter

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/client"
	"drydock/rules/spec"
)

func newDrained(a *app) *cobra.Command {
	t := &tell{app: a}
	cmd := &cobra.Command{
		Use:   "drained NODE",
		Short: "Say that a node with drain mode external is empty",
		Long: `Say that a node is empty, where somebody else than Drydock drains it: a maintenance with --drain-mode external waits
for this and then becomes Ready.`,
		Example: `  drydock drained worker-01`,
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) message { return drainedMessage(a.name) })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

func drainedMessage(program string) message {
	return message{
		Message: client.Drained(),
		next: func(s *api.Status) string {
			if s.Spec.Drain.Mode != spec.ModeExternal {
				return ""
			}
			return fmt.Sprintf(`Wait for it with "%s watch %s".`, program, s.Spec.Node)
		},
		said: func(now *api.Status) string { return fmt.Sprintf("is %s", now.Phase) },
	}
}
