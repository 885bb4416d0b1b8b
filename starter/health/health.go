// Package health has the commands about health checks: which nodes are ill, and what is done about it.
package health

import (
	"errors"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

// New is the group of the commands about health checks.
func New(a *invocation.App) *cobra.Command {
	return invocation.Noun(&cobra.Command{
		Use:   "health",
		Short: "Have ill nodes remediated, and see why one is or is not",
		Long: `Health checks watch the conditions of nodes. If one has lasted too long, the node is remediated: by an object made of a
template, for a remediator such as those of medik8s, or by a maintenance of Drydock's own. While fewer nodes are healthy than have to be,
nothing new begins.

A check is kept in the worker's configuration (healthChecks), from which the worker starts it, or is started here. A NodeHealthCheck
of medik8s is read as it is.`,
		Example: `  drydock health list
  drydock health explain worker-07
  drydock health pause workers --comment "storage moves"
  drydock health start --file nodehealthcheck.yaml --paused "moving over"`,
	}, newList(a), newStatus(a), newExplain(a), newPause(a), newResume(a), newConfirm(a), newStart(a), newApply(a), newRemove(a))
}

// oneCheck is the argument of the commands that are about one check.
var oneCheck = invocation.One("NAME", "health check", health.CheckName)

// explain turns an error about a check into one that says what to do next.
func explain(c *invocation.Connection, name string, err error) error {
	switch {
	case exit.Has[*client.NoneError](err), errors.Is(err, client.ErrEnded):
		return exit.Hint(err, `"%s health list" shows those that run; "%s health start --file FILE" starts one.`, c.Program, c.Program)
	case exit.Has[*client.RunsError](err):
		return exit.Hint(err, `See it with "%s health status %s", change it with "%s health apply --file FILE", or choose another name.`, c.Program, name, c.Program)
	case exit.Has[*client.RefusedError](err):
		return exit.Hint(err, `"%s health status %s" shows what it does.`, c.Program, name)
	default:
		return c.ExplainSent(err, "health status "+name)
	}
}
