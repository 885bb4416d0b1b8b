package starter

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
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
			return t.run(cmd.Context(), args[0], func(found) message { return drainedMessage(a.name) })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

func drainedMessage(program string) message {
	return message{
		name:    api.MsgDrained,
		payload: func(to addressee) any { return api.Simple{Message: to.Message, Run: to.run} },
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Spec.Drain.Mode != spec.ModeExternal:
				return "", fmt.Errorf("%s is drained by Drydock (drain mode %s), which sees by itself when it is empty", s.Spec.Node, s.Spec.Drain.Mode)
			case s.Phase == api.Ready:
				return "is Ready already", nil
			case s.Phase != api.Draining:
				return "", notIn(s, "not Draining yet", `Wait for it with "%s watch %s".`, program, s.Spec.Node)
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool { return now.Phase != api.Draining },
		said:   func(now *api.Status) string { return fmt.Sprintf("is %s", now.Phase) },
	}
}
