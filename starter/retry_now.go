package starter

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/rules/spec"
)

func newRetryNow(a *app) *cobra.Command {
	t := &tell{app: a}
	cmd := &cobra.Command{
		Use:   "retry-now NODE",
		Short: "Try again now what a maintenance would try again later",
		Long: `End the pause that a maintenance is in. Of a Draining node, evictions that were refused are tried again at once. A node
that was given back, because it did not empty, asks for its next slot at once.

It is about Drydock's own attempts. For another try at your work on a RequestorFailed node say "drydock retry NODE".`,
		Example: `  drydock retry-now worker-01 --comment "the budget is mended"`,
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(found) message { return retryNowMessage(a.name) })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

func retryNowMessage(program string) message {
	return message{
		name:    api.MsgRetryNow,
		payload: func(to addressee) any { return api.Simple{Message: to.Message, Run: to.run} },
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Phase == api.Draining && s.Spec.Drain.Mode != spec.ModeEvict:
				return "", notIn(s, fmt.Sprintf("its drain mode is %s, so there is no eviction to try again", s.Spec.Drain.Mode), `"%s status %s" says what it waits for.`, program, s.Spec.Node)
			case s.Phase == api.Draining, s.Phase == api.Pending && s.NextAttemptAt != nil:
				return "", nil
			case s.Phase == api.Pending:
				return "", notIn(s, "it waits for a slot, and not for its next attempt", `"%s status %s" says which limit it waits for.`, program, s.Spec.Node)
			case s.Phase == api.RequestorFailed:
				return "", notIn(s, "Drydock has nothing to try again", `For another try at your work say "%s retry %s".`, program, s.Spec.Node)
			default:
				return "", notIn(s, "there is no pause to end", `"%s status %s" says what it waits for.`, program, s.Spec.Node)
			}
		},
		effect: func(before, now *api.Status) bool {
			switch {
			case now.Phase != before.Phase:
				return true
			case now.Phase == api.Pending:
				return now.NextAttemptAt == nil
			default:
				return heeded(before, now, api.MsgRetryNow)
			}
		},
		said: func(now *api.Status) string {
			switch now.Phase {
			case api.Draining:
				return "evictions that were refused are tried again now"
			case api.Pending:
				return "asks for a slot now"
			default:
				return fmt.Sprintf("is %s", now.Phase)
			}
		},
	}
}

// heeded tells whether a message of this name has been received since before, and was not ignored.
func heeded(before, now *api.Status, name string) bool {
	return slices.ContainsFunc(now.Messages, func(r api.Received) bool {
		return r.Name == name && !ignored(r) && !receivedBefore(before, r)
	})
}
