package starter

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
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
			return t.run(cmd.Context(), args[0], func(found) message { return startedMessage(a.name) })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

func startedMessage(program string) message {
	return message{
		name:    api.MsgStarted,
		payload: func(to addressee) any { return api.Simple{Message: to.Message, Run: to.run} },
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Phase != api.Ready:
				return "", notIn(s, "not Ready, so no work can have begun", `Wait for it with "%s watch %s".`, program, s.Spec.Node)
			case s.StartedAt != nil:
				return fmt.Sprintf("the work has begun already, at %s", s.StartedAt.Format("15:04:05 MST")), nil
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool { return now.StartedAt != nil },
		said:   func(*api.Status) string { return "the work has begun" },
	}
}
