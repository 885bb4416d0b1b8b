package starter

import (
	"fmt"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/rules/validation"
)

func newValidated(a *app) *cobra.Command {
	t := &tell{app: a}
	cmd := &cobra.Command{
		Use:   "validated NODE",
		Short: "Say that a node that is being validated may return to production",
		Long: `Say that a node is good: for a maintenance whose validation waits for somebody's word, and for one whose validation
has failed, which is overruled by it. Who said so and why is on record.`,
		Example: `  drydock validated worker-01 --comment "burn-in passed, run 8812"`,
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(found) message { return validatedMessage(a.name) })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

func newValidationFailed(a *app) *cobra.Command {
	t := &tell{app: a}
	cmd := &cobra.Command{
		Use:   "validation-failed NODE",
		Short: "Say that a node that is being validated may not return to production",
		Long: `Say that a node is not good, for a maintenance whose validation waits for somebody's word. The node stays out of
service with its slot until somebody says "drydock retry", "drydock validated" or "drydock cancel --release".`,
		Example: `  drydock validation-failed worker-01 --comment "GPU 3 throttles"`,
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(found) message { return validationFailedMessage(a.name) })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

// awaitsWord tells why a maintenance does not wait for anybody's word on its node.
func awaitsWord(program string, s *api.Status) error {
	switch {
	case s.Phase != api.Validating:
		return notIn(s, "not being validated", `"%s status %s" says what it waits for.`, program, s.Spec.Node)
	case !undecided(s) && (s.Spec.Validation == nil || !s.Spec.Validation.Signal):
		return notIn(s, "validated by its checks alone (validation.signal is not set), and they have not failed", `"%s status %s" says what does not hold yet.`,
			program, s.Spec.Node)
	}
	return nil
}

func undecided(s *api.Status) bool {
	return s.Phase == api.Validating && s.Validation != nil && s.Validation.State == validation.Failed
}

func validatedMessage(program string) message {
	return message{
		name:    api.MsgValidated,
		payload: func(to addressee) any { return api.Simple{Message: to.Message, Run: to.run} },
		check:   func(s *api.Status) (string, error) { return "", awaitsWord(program, s) },
		effect: func(before, now *api.Status) bool {
			return len(now.Messages) != len(before.Messages) || now.Phase != before.Phase
		},
		said: func(now *api.Status) string { return fmt.Sprintf("counts as validated, and is %s", now.Phase) },
	}
}

func validationFailedMessage(program string) message {
	return message{
		name:    api.MsgValidationFailed,
		payload: func(to addressee) any { return api.Simple{Message: to.Message, Run: to.run} },
		check: func(s *api.Status) (string, error) {
			if undecided(s) {
				return "has failed its validation already", nil
			}
			return "", awaitsWord(program, s)
		},
		effect: func(_, now *api.Status) bool { return undecided(now) },
		said:   func(*api.Status) string { return "has failed its validation, and stays out of service" },
	}
}
