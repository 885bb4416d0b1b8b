package starter

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
)

func newApprove(a *app) *cobra.Command {
	t := &tell{app: a}
	cmd := &cobra.Command{
		Use:   "approve NODE",
		Short: "Approve a maintenance that waits for approval",
		Long: `Approve a maintenance that was asked for with approval. Only then does it ask for a slot; until then nothing has been
done to its node.`,
		Example: `  drydock approve worker-01 --comment "window agreed with team search"`,
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(found) message { return decisionMessage(api.MsgApprove, false) })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

func newDeny(a *app) *cobra.Command {
	t := &tell{app: a}
	cmd := &cobra.Command{
		Use:     "deny NODE",
		Short:   "Deny a maintenance that waits for approval, which ends it",
		Long:    `Deny a maintenance that was asked for with approval. It ends Cancelled, and nothing has been done to its node.`,
		Example: `  drydock deny worker-01 --comment "not during the sale"`,
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(found) message { return decisionMessage(api.MsgDeny, true) })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

func decisionMessage(name string, denied bool) message {
	word := map[bool]string{true: "denied", false: "approved"}
	return message{
		name:    name,
		payload: func(to addressee) any { return api.Simple{Message: to.Message, Run: to.run} },
		check: func(s *api.Status) (string, error) {
			switch decided := s.Approval; {
			case decided != nil && decided.Denied == denied:
				return "is " + word[denied] + " already", nil
			case decided != nil:
				return "", fmt.Errorf("the maintenance of %s was %s already%s", s.Spec.Node, word[decided.Denied], colon(decided.Comment))
			case s.Phase != api.AwaitingApproval:
				return "", fmt.Errorf("%s is %s: its maintenance does not wait for approval", s.Spec.Node, s.Phase)
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool { return now.Approval != nil },
		said:   func(*api.Status) string { return "is " + word[denied] },
	}
}
