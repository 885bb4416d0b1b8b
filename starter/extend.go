package starter

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/rules/spec"
)

func newExtend(a *app) *cobra.Command {
	t := &tell{app: a}
	var duration time.Duration
	cmd := &cobra.Command{
		Use:   "extend NODE",
		Short: "Hold a Ready node for longer",
		Long: `Move the end of a Ready node's ready timeout to --for from now, if that is later than it is.

Without --for it is the maintenance's own ready timeout, counted from now.`,
		Example: `  drydock extend worker-01 --for 2h --comment "BIOS takes longer"`,
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if duration < 0 || cmd.Flags().Changed("for") && duration == 0 {
				return usageError("--for %s: want a time to come", duration)
			}
			return t.run(cmd.Context(), args[0], func(found) message { return extendMessage(a.now, duration) })
		},
	}
	t.register(cmd, ofMaintenance)
	cmd.Flags().DurationVar(&duration, "for", 0, "how long from now, such as 2h (default the maintenance's ready timeout)")
	return cmd
}

func extendMessage(now func() time.Time, duration time.Duration) message {
	return message{
		name: api.MsgExtend,
		payload: func(to addressee) any {
			return api.Extend{Message: to.Message, For: spec.Duration(duration), Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			switch {
			case s.Phase != api.Ready:
				return "", fmt.Errorf("%s is %s: only a Ready node has a timeout to extend", s.Spec.Node, s.Phase)
			case s.ReadyDeadline == nil:
				return "may be held for ever: its ready timeout is 0", nil
			case duration > 0 && !now().Add(duration).After(*s.ReadyDeadline):
				return fmt.Sprintf("may be held until %s already", clock(*s.ReadyDeadline, now())), nil
			}
			return "", nil
		},
		effect: func(before, after *api.Status) bool {
			return after.ReadyDeadline != nil && after.ReadyDeadline.After(*before.ReadyDeadline)
		},
		said: func(after *api.Status) string {
			if after.ReadyDeadline == nil {
				return "is " + string(after.Phase)
			}
			return "may be held until " + clock(*after.ReadyDeadline, now())
		},
	}
}
