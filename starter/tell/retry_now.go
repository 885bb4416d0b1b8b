package tell

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
)

func newRetryNow(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:   "retry-now NODE",
		Short: "End a pause: retry evictions, or ask for the next slot, now",
		Long: `End the pause that a maintenance is in. Of a Draining node, evictions that were refused are tried again at once. A node
that was given back, because it did not empty, asks for its next slot at once.

It is about Drydock's own attempts. For another try at your work on a RequestorFailed node say "drydock retry NODE".`,
		Example: `  drydock retry-now worker-01 --comment "the budget is mended"`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return retryNowMessage(a.Name) })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

func retryNowMessage(program string) invocation.Message {
	return invocation.Message{Message: client.RetryNow(), Words: retryNowWords{program: program}}
}

type retryNowWords struct {
	invocation.Plain
	program string
}

func (w retryNowWords) Next(s *api.Status) string {
	switch s.Phase {
	case api.Pending:
		if strings.HasPrefix(s.WaitingFor, "its time: ") {
			return fmt.Sprintf(`To begin now run "%s reschedule %s --not-before 0s".`, w.program, s.Spec.Node)
		}
		return fmt.Sprintf(`"%s status %s" says which limit it waits for.`, w.program, s.Spec.Node)
	case api.RequestorFailed:
		return fmt.Sprintf(`For another try at your work run "%s retry %s".`, w.program, s.Spec.Node)
	default:
		return fmt.Sprintf(`"%s status %s" says what it waits for.`, w.program, s.Spec.Node)
	}
}

func (w retryNowWords) Said(now *api.Status) string {
	switch now.Phase {
	case api.Draining:
		return "evictions that were refused are tried again now"
	case api.Pending:
		return "asks for a slot now"
	default:
		return fmt.Sprintf("is %s", now.Phase)
	}
}
