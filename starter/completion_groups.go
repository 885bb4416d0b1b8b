package starter

import (
	"context"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// argumentWords complete the arguments of commands; VERB stands for the verbs of a noun that are not listed. The names of profiles are those
// of the file that a command is given.
func argumentWords(a *invocation.App) map[string]completer {
	nodes, runningPlans := offer(a, knownNodes), plansBy(true)
	return map[string]completer{
		"start": nodes, "rollout": nodes, "preflight": nodes, "doctor": nodes, "watch": offer(a, nodesInMaintenance),
		"exec": inTurn(a, knownNodes), "status": inTurn(a, knownNodes), "history": inTurn(a, knownNodes),

		"plan create": afterName(nodes, cobra.NoFileCompletions), "plan schedule": afterName(nodes, cobra.NoFileCompletions),
		"plan skip": afterName(offer(a, nodesOfPlan), offer(a, runningPlans)), "plan retry": afterName(offer(a, nodesOfPlan), offer(a, runningPlans)),
		"plan set-stage": inTurn(a, runningPlans, stages), "plan set-selector": afterName(nodes, offer(a, runningPlans)),
		"plan status": inTurn(a, plansBy(false)), "plan list": nil, "plan VERB": inTurn(a, runningPlans),

		"health explain": inTurn(a, knownNodes), "health confirm": inTurn(a, knownNodes),
		"health start": cobra.NoFileCompletions, "health apply": cobra.NoFileCompletions,
		"health list": nil, "health VERB": inTurn(a, healthChecks),

		"profile explain": inTurn(a, knownNodes), "profile list": cobra.NoFileCompletions,
	}
}

// afterName completes a name, and the arguments that follow it.
func afterName(rest, name completer) completer {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return rest(cmd, args, prefix)
		}
		return name(cmd, args, prefix)
	}
}

func stages(context.Context, *invocation.App, []string) []string {
	return []string{"Cordon", "Drain", "Complete"}
}

// plansBy completes the names of the plans that run, or of all.
func plansBy(running bool) candidates {
	return func(ctx context.Context, a *invocation.App, _ []string) []string {
		return namesFrom(ctx, a, func(c *invocation.Connection) ([]string, error) {
			runs, err := client.ListPlans(ctx, c.Client, running)
			return terminal.NamesOf(runs, func(run client.Run) string { return run.Name }), err
		})
	}
}

// nodesOfPlan are the nodes of the plan that is named first: as many as one answer has, those with something to say among
// them.
func nodesOfPlan(ctx context.Context, a *invocation.App, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	return namesFrom(ctx, a, func(c *invocation.Connection) ([]string, error) {
		status, err := client.PlanOf(c.Client, args[0]).Status(ctx, api.PlanStatusRequest{Limit: 1000})
		return terminal.NamesOf(status.Nodes, func(n api.PlanNode) string { return n.Node }), err
	})
}

// healthChecks are those that run.
func healthChecks(ctx context.Context, a *invocation.App, _ []string) []string {
	return namesFrom(ctx, a, func(c *invocation.Connection) ([]string, error) {
		runs, err := client.ListHealthChecks(ctx, c.Client, true)
		return terminal.NamesOf(runs, func(run client.HealthCheckRun) string { return run.Name }), err
	})
}
