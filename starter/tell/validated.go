package tell

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

func newValidated(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:   "validated NODE --comment WHY",
		Short: "Declare a node validated: it may return to production",
		Long: `Say that a node is good: for a maintenance whose validation waits for somebody's word, and for one whose validation
has failed, which is overruled by it. Who said so and why is on record.

` + asksFirst,
		Example: `  drydock validated worker-01 --comment "burn-in passed, run 8812"`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(t.comment) == "" {
				return exit.UsageError("say with --comment why the node is good: it is recorded")
			}
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return validatedMessage(a.Name) })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	t.registerOwned(cmd, api.MsgValidated, false)
	return cmd
}

func newValidationFailed(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:   "validation-failed NODE",
		Short: "Declare a node's validation failed: it stays out of service",
		Long: `Say that a node is not good, for a maintenance whose validation waits for somebody's word. The node stays out of
service with its slot until somebody says "drydock retry", "drydock validated" or "drydock cancel --release".`,
		Example: `  drydock validation-failed worker-01 --comment "GPU 3 throttles"`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return validationFailedMessage(a.Name) })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

func validatedMessage(program string) invocation.Message {
	return invocation.Message{Message: client.Validated(), Words: validatedWords{program: program}}
}

type validatedWords struct {
	invocation.Plain
	program string
}

func (w validatedWords) Next(s *api.Status) string { return whatHoldsItUp(w.program, s) }

func (w validatedWords) Said(now *api.Status) string {
	return fmt.Sprintf("validated; now %s", now.Phase)
}

func validationFailedMessage(program string) invocation.Message {
	return invocation.Message{Message: client.ValidationFailed(), Words: validationFailedWords{program: program}}
}

type validationFailedWords struct {
	invocation.Plain
	program string
}

func (w validationFailedWords) Next(s *api.Status) string { return whatHoldsItUp(w.program, s) }

func (validationFailedWords) Said(*api.Status) string {
	return "validation failed; it stays out of service"
}

// whatHoldsItUp says where to see why nobody's word on the node is waited for.
func whatHoldsItUp(program string, s *api.Status) string {
	if s.Phase == api.Validating {
		return fmt.Sprintf(`"%s status %s" says what does not hold yet.`, program, s.Spec.Node)
	}
	return fmt.Sprintf(`"%s status %s" says what it waits for.`, program, s.Spec.Node)
}
