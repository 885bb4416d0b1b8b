package invocation

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// AsNoun makes a command stand for what its subcommands are about. By itself it shows its help; what stands where a verb
// would is an error that suggests one, whatever flags are beside it.
func AsNoun(cmd *cobra.Command) {
	cmd.FParseErrWhitelist = cobra.FParseErrWhitelist{UnknownFlags: true}
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = noVerb
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := ""
	if verbs := cmd.SuggestionsFor(args[0]); len(verbs) > 0 {
		meant = fmt.Sprintf("; did you mean %s?", strings.Join(verbs, " or "))
	}
	if cmd.Name() == "drain" { // which is a verb to others
		meant += fmt.Sprintf("; to drain a node: %s start %s", cmd.Root().DisplayName(), args[0])
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), meant)
}
