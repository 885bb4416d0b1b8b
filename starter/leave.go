package starter

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
)

func newLeave(a *app) *cobra.Command {
	m := &membership{tell: tell{app: a}}
	cmd := &cobra.Command{
		Use:   "leave NODE",
		Short: "No longer share somebody else's maintenance of a node",
		Long: `No longer share a maintenance that you joined: it does not wait for you any more.

Leaving is for those who have done nothing to the node; who has, says "drydock done".`,
		Example: `  drydock leave worker-01
  drydock leave worker-01 --requestor network-team --of ops`,
		Args: oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.run(cmd.Context(), args[0], leaveMessage)
		},
	}
	m.register(cmd, "who leaves (env "+envRequestor+", default you)")
	return cmd
}

func leaveMessage(program, who string) message {
	return message{
		name:    api.MsgLeave,
		payload: func(to addressee) any { return api.Membership{Message: to.Message, Requestor: who} },
		check: func(s *api.Status) (string, error) {
			switch {
			case who == s.Spec.Requestor:
				return "", hint(fmt.Errorf("the maintenance of %s is %s's own, who cannot leave it", s.Spec.Node, who),
					`To end it: "%s done %s", or cancel.`, program, s.Spec.Node)
			case !isMember(s, who):
				return who + " does not share the maintenance", nil
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool { return !isMember(now, who) },
		said:   func(*api.Status) string { return who + " no longer shares the maintenance" },
	}
}
