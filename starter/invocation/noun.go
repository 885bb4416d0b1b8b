package invocation

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Noun makes a command stand for what the verbs below it are about. By itself it shows its help; what stands where a verb
// would is an error that suggests one, and so is a flag of another program.
func Noun(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(verbs...)
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = noVerb
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if err = c.Root().FlagErrorFunc()(c, err); c != cmd {
			return err // verbs inherit this, and have flags of their own
		}
		return noFlag(cmd, err)
	})
	return cmd
}

func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	suggested := ""
	if verbs := cmd.SuggestionsFor(args[0]); len(verbs) > 0 {
		suggested = fmt.Sprintf("; did you mean %s?", strings.Join(verbs, " or "))
	}
	return fmt.Errorf("unknown command %q for %q%s%s", args[0], cmd.CommandPath(), suggested, toDrain(cmd, args[0]))
}

// noFlag refuses a flag that the noun does not have.
func noFlag(cmd *cobra.Command, err error) error {
	// What stands before the flag says more of what was meant than the flags of another program.
	if args := cmd.Flags().Args(); len(args) > 0 {
		return noVerb(cmd, args)
	}
	// What stands behind it may be its value, or a node.
	return fmt.Errorf("%w%s", err, toDrain(cmd, "NODE"))
}

// toDrain is the command for what "drain", a noun here, is to others.
func toDrain(cmd *cobra.Command, node string) string {
	if cmd.Name() != "drain" {
		return ""
	}
	return fmt.Sprintf("; to drain a node: %s start %s", cmd.Root().DisplayName(), node)
}
