package invocation

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
)

// OfMaintenance is the help of --requestor where it finds a maintenance.
const OfMaintenance = "whose maintenance of the node it is (env " + EnvRequestor + ", default yours, or the only one)"

// One is the argument of the commands that are about one thing, which the usage of a command has as a word. Check is of its name.
func One(word, thing string, check func(name string) error) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
			if err := check(args[0]); err != nil {
				return exit.UsageError("%w", err)
			}
			return nil
		case 0:
			return fmt.Errorf("missing %s: %s", word, cmd.Use)
		default:
			return fmt.Errorf("one %s at a time, not %s", thing, strings.Join(args, ", "))
		}
	}
}

// OneNode is the argument of the commands that are about one node.
var OneNode = One("NODE", "node", spec.NodeName)

// NoArgs is for the commands that take none.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, not %s", cmd.Name(), strings.Join(args, ", "))
}

// CheckTimeout checks a --timeout, which is of no use where nothing is waited for.
func CheckTimeout(timeout time.Duration, waits bool) error {
	switch {
	case timeout < 0:
		return exit.UsageError("--timeout %s: want 0 or more", timeout)
	case timeout > 0 && !waits:
		return exit.UsageError("--timeout needs --wait")
	}
	return nil
}
