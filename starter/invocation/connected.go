package invocation

import (
	"context"

	"github.com/spf13/cobra"
)

// Connected runs a command of Drydock's with its arguments over a connection, which it closes afterwards. Checks are of arguments and flags,
// before anything is connected.
func (a *App) Connected(
	run func(ctx context.Context, c *Connection, args []string) error, checks ...func(args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		for _, check := range checks {
			if err := check(args); err != nil {
				return err
			}
		}
		c, err := a.Connect(cmd.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		return run(cmd.Context(), c, args)
	}
}
