package tell

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

func newExtend(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	var duration time.Duration
	cmd := &cobra.Command{
		Use:   "extend NODE",
		Short: "Hold a Ready node for longer",
		Long: `Move the end of a Ready node's ready timeout to --for from now, if that is later than it is.

Without --for it is the maintenance's own ready timeout, counted from now.`,
		Example: `  drydock extend worker-01 --for 2h --comment "BIOS takes longer"`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if duration < 0 || cmd.Flags().Changed("for") && duration == 0 {
				return exit.UsageError("--for %s: want a time to come", duration)
			}
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return extendMessage(a.Clock, duration) })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	invocation.DurationVar(cmd.Flags(), &duration, "for", 0, "how long from now, such as 2h (default the maintenance's ready timeout)")
	return cmd
}

func extendMessage(now func() time.Time, duration time.Duration) invocation.Message {
	return invocation.Message{Message: client.Extend(duration, now), Words: extendWords{now: now()}}
}

type extendWords struct {
	invocation.Plain
	now time.Time
}

func (w extendWords) Already(s *api.Status, text string) string {
	if s.ReadyDeadline == nil {
		return text
	}
	return fmt.Sprintf("may be held until %s already", terminal.Clock(*s.ReadyDeadline, w.now))
}

func (w extendWords) Said(after *api.Status) string {
	if after.ReadyDeadline == nil {
		return "is " + string(after.Phase)
	}
	return "may be held until " + terminal.Clock(*after.ReadyDeadline, w.now)
}
