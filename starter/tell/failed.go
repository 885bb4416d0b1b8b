package tell

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
)

func newFailed(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	var reason string
	cmd := &cobra.Command{
		Use:   "failed NODE",
		Short: "Mark the work on a node failed, so that it stays out of service",
		Long: `Say that the work on a node has failed.

A Ready node becomes RequestorFailed: it stays cordoned and keeps its slot until somebody decides. Then "drydock retry"
makes it Ready for another try, "drydock done" puts it back, and "drydock cancel --release" gives it back as it is.

` + asksFirst,
		Example: `  drydock failed worker-01 --reason "firmware update stopped at 40%"`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(f client.Found) invocation.Message { return FailedMessage(a.Name, f.For, reason) })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	t.registerOwned(cmd, api.MsgFailed, true)
	cmd.Flags().StringVar(&reason, "reason", "", "what failed, shown everywhere")
	return cmd
}

// FailedMessage says that the work of a requestor has failed.
func FailedMessage(program, requestor, reason string) invocation.Message {
	return invocation.Message{Message: client.Failed(requestor, reason), Words: failedWords{program: program}}
}

type failedWords struct {
	invocation.Plain
	program string
}

func (w failedWords) Next(s *api.Status) string {
	return fmt.Sprintf(`To undo the maintenance: "%s cancel %s".`, w.program, s.Spec.Node)
}

func (w failedWords) Said(now *api.Status) string {
	return fmt.Sprintf(`is %s and stays out of service; next: "%s retry %s", or done, or cancel --release`, now.Phase, w.program, now.Spec.Node)
}
