package tell

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
)

func newLeave(a *invocation.App) *cobra.Command {
	m := &membership{messageCommand: messageCommand{app: a}}
	cmd := &cobra.Command{
		Use:   "leave NODE",
		Short: "Stop sharing somebody else's maintenance of a node",
		Long: `No longer share a maintenance that you joined: it does not wait for you any more.

Leaving is for those who have done nothing to the node; who has, says "drydock done".`,
		Example: `  drydock leave worker-01
  drydock leave worker-01 --requestor network-team --of ops`,
		Args: invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.run(cmd.Context(), args[0], leaveMessage)
		},
	}
	m.register(cmd, "who leaves (env "+invocation.EnvRequestor+", default you)")
	return cmd
}

func leaveMessage(program, who string) invocation.Message {
	return invocation.Message{Message: client.Leave(who), Words: leaveWords{program: program, who: who}}
}

type leaveWords struct {
	invocation.Plain
	program string
	who     string
}

func (w leaveWords) Next(s *api.Status) string {
	return fmt.Sprintf(`To end it: "%s done %s", or cancel.`, w.program, s.Spec.Node)
}

func (w leaveWords) Said(*api.Status) string { return w.who + " no longer shares the maintenance" }
