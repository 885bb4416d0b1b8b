package invocation

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/starter/exit"
)

// OfMaintenance is the help of --requestor where it finds a maintenance.
const OfMaintenance = "whose maintenance of the node it is (env " + EnvRequestor + ", default yours, or the only one)"

// OneNode is the argument of the commands that are about one maintenance.
func OneNode(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		use, _, _ := strings.Cut(cmd.Use, " --")
		return fmt.Errorf("missing NODE: %s", use)
	default:
		return fmt.Errorf("one node at a time, not %s", strings.Join(args, ", "))
	}
}

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
