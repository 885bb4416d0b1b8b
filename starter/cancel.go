package starter

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
)

func newCancel(a *app) *cobra.Command {
	t := &tell{app: a, end: api.Cancelled}
	var release bool
	cmd := &cobra.Command{
		Use:   "cancel NODE",
		Short: "Cancel a maintenance, and undo it while the node is not Ready yet",
		Long: `Cancel a maintenance.

Before the node is Ready everything is undone and the maintenance ends Cancelled. From Ready on the node may be half
worked on, so it becomes RequestorFailed and stays out of service; with --release it is given back as it is, and the
maintenance ends Cancelled. With --wait the command waits for the end.`,
		Example: `  drydock cancel worker-01 --comment "change postponed"
  drydock cancel worker-01 --release --wait`,
		Args: oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(found) message { return cancelMessage(a.name, release, t.wait) })
		},
	}
	t.register(cmd, ofMaintenance)
	t.registerWait(cmd)
	cmd.Flags().BoolVar(&release, "release", false, "give the node back even if it was Ready already")
	return cmd
}

func cancelMessage(program string, release, wait bool) message {
	return message{
		name:   api.MsgCancel,
		unseen: true,
		payload: func(to addressee) any {
			return api.Cancel{Message: to.Message, Release: release, Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			switch s.Phase {
			case api.Releasing:
				return "is Releasing already", nil
			case api.Ready:
				if wait && !release {
					return "", notIn(s, "cancelling it would leave it RequestorFailed, which has no end to wait for", "Add --release to give the node back.")
				}
			case api.RequestorFailed, api.Validating:
				if !release {
					return "", notIn(s, "cancelling it changes nothing", `"%s cancel %s --release" gives the node back as it is.`, program, s.Spec.Node)
				}
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool {
			if now.Phase == api.Releasing || now.Phase.Ended() {
				return true
			}
			return !release && now.Phase == api.RequestorFailed
		},
		said: func(now *api.Status) string {
			if now.Phase == api.RequestorFailed {
				return fmt.Sprintf(`was Ready, is RequestorFailed now and stays out of service; "%s cancel %s --release" gives it back`, program, now.Spec.Node)
			}
			return "is cancelled and being put back"
		},
	}
}
