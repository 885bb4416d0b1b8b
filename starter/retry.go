package starter

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
)

func newRetry(a *app) *cobra.Command {
	t := &tell{app: a}
	cmd := &cobra.Command{
		Use:   "retry NODE",
		Short: "Make a node whose work has failed Ready again, or validate it again",
		Long: `Make a RequestorFailed node Ready again, with a new ready timeout. Nothing changes on the node, which stayed out of
service. When the other try has worked, say "drydock done".

A node whose validation has failed is validated again; where a hook before the release failed, the hooks are called again.`,
		Example: `  drydock retry worker-01 --comment "cable replaced"`,
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(found) message { return retryMessage() })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

func retryMessage() message {
	return message{
		name:    api.MsgRetry,
		payload: func(to addressee) any { return api.Simple{Message: to.Message, Run: to.run} },
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Phase == api.RequestorFailed, undecided(s):
				return "", nil
			case s.Phase == api.Ready:
				return "is Ready already", nil
			default:
				return "", fmt.Errorf("%s is %s: only a RequestorFailed node, or one that has failed its validation, can be tried again", s.Spec.Node, s.Phase)
			}
		},
		effect: func(_, now *api.Status) bool { return now.Phase != api.RequestorFailed && !undecided(now) },
		said:   func(now *api.Status) string { return fmt.Sprintf("is %s", now.Phase) },
	}
}
