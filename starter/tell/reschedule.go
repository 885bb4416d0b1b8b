package tell

import (
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

func newReschedule(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	var notBefore string
	cmd := &cobra.Command{
		Use:   "reschedule NODE --not-before TIME",
		Short: "Move the time before which a maintenance does not begin",
		Long: `Move the time before which a maintenance does not begin, for as long as it waits for its time or for approval. Who was
told the old time is told the new one. With --not-before 0s it begins at once.`,
		Example: `  drydock reschedule worker-01 --not-before 2026-03-01T22:00:00Z --comment "the window moved"
  drydock reschedule worker-01 --not-before 48h`,
		Args: invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if notBefore == "" {
				return exit.UsageError("until when? Name a time with --not-before")
			}
			at, err := input.NotBefore(notBefore, a.Clock())
			if err != nil {
				return exit.UsageError("--not-before: %w", err)
			}
			if at.Before(a.Clock().Add(-spec.LateNotice)) {
				return exit.UsageError("--not-before: %s is over: name a time to come, or 0s to begin at once", notBefore)
			}
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return rescheduleMessage(at, a.Clock) })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	cmd.Flags().StringVar(&notBefore, "not-before", "", "a time such as 2026-03-01T22:00:00Z, or how long from now, such as 48h")
	return cmd
}

func rescheduleMessage(at time.Time, now func() time.Time) invocation.Message {
	return invocation.Message{Message: client.Reschedule(at), Words: rescheduleWords{at: at, now: now()}}
}

type rescheduleWords struct {
	invocation.Plain
	at  time.Time
	now time.Time
}

func (w rescheduleWords) Already(*api.Status, string) string {
	return "begins not before " + terminal.Clock(w.at, w.now) + " already"
}

func (w rescheduleWords) Said(*api.Status) string {
	return "begins not before " + terminal.Clock(w.at, w.now)
}
