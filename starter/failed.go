package starter

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
)

func newFailed(a *app) *cobra.Command {
	t := &tell{app: a}
	var reason string
	cmd := &cobra.Command{
		Use:   "failed NODE",
		Short: "Say that the work on a node has failed, so that it stays out of service",
		Long: `Say that the work on a node has failed.

A Ready node becomes RequestorFailed: it stays cordoned and keeps its slot until somebody decides. Then "drydock retry"
makes it Ready for another try, "drydock done" puts it back, and "drydock cancel --release" gives it back as it is.`,
		Example: `  drydock failed worker-01 --reason "firmware update stopped at 40%"`,
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(f found) message { return failedMessage(a.name, f.requestor, reason) })
		},
	}
	t.register(cmd, ofMaintenance)
	cmd.Flags().StringVar(&reason, "reason", "", "what failed, shown everywhere")
	return cmd
}

func failedMessage(program, requestor, reason string) message {
	return message{
		name: api.MsgFailed,
		payload: func(to addressee) any {
			return api.FailedMessage{Message: to.Message, Requestor: requestor, Run: to.run, Reason: reason}
		},
		check: func(s *api.Status) (string, error) {
			switch s.Phase {
			case api.Ready:
				return "", nil
			case api.RequestorFailed:
				return "is RequestorFailed already" + colon(s.Failure), nil
			default:
				return "", notIn(s, "not Ready, so no work of yours can have failed", `To undo the maintenance: "%s cancel %s".`, program, s.Spec.Node)
			}
		},
		effect: func(_, now *api.Status) bool { return now.Phase != api.Ready },
		said: func(now *api.Status) string {
			return fmt.Sprintf(`is %s and stays out of service; next: "%s retry %s", or done, or cancel --release`, now.Phase, program, now.Spec.Node)
		},
	}
}
