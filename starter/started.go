package starter

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/client"
)

func newStarted(a *app) *cobra.Command {
	t := &tell{app: a}
	cmd := &cobra.Command{
		Use:   "started NODE",
		Short: "Record that the work on a Ready node has begun",
		Long: `Record that the work on a Ready node has begun. It changes nothing but the record, where auditors look for it;
exec and rollout send it by themselves.`,
		Example: `  drydock started worker-01`,
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) message { return startedMessage(a.name) })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

func startedMessage(program string) message {
	return message{
		Message: client.Started(),
		next: func(s *api.Status) string {
			return fmt.Sprintf(`Wait for it with "%s watch %s".`, program, s.Spec.Node)
		},
		said: func(*api.Status) string { return "the work has begun" },
	}
}
