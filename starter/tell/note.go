package tell

import (
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

func newNote(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:   "note NODE --comment TEXT",
		Short: "Put a comment on record",
		Long: `Put a comment on a maintenance's record, in any phase: what was found, which part was replaced, a ticket. The status shows
it, and the audit record keeps it with who said it and when. Nothing else changes.`,
		Example: `  drydock note worker-01 --comment "DIMM B2 replaced, INC-4711"`,
		Args:    invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(t.comment) == "" {
				return exit.UsageError("missing --comment: it is what goes on record")
			}
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message {
				return invocation.Message{Message: client.Note(), Words: noteWords{}}
			})
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

type noteWords struct{ invocation.Plain }

func (noteWords) Said(*api.Status) string { return "the comment is on record" }
