package starter

import (
	"context"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// completePlans teaches the shell the names of plans that run, and the nodes of each.
func completePlans(a *invocation.App, plan *cobra.Command) {
	runningPlans, allPlans := plansBy(true), plansBy(false)
	for _, c := range plan.Commands() {
		switch c.Name() {
		case "create", "schedule":
			c.ValidArgsFunction = afterName(offer(a, knownNodes), cobra.NoFileCompletions)
		case "skip", "retry":
			c.ValidArgsFunction = afterName(offer(a, nodesOfPlan), offer(a, runningPlans))
		case "status":
			c.ValidArgsFunction = inTurn(a, allPlans)
		case "set-stage":
			c.ValidArgsFunction = afterName(stagesOf, offer(a, runningPlans))
		case "set-selector":
			c.ValidArgsFunction = afterName(offer(a, knownNodes), offer(a, runningPlans))
		case "list":
		default:
			c.ValidArgsFunction = inTurn(a, runningPlans)
		}
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

// stagesOf are the stages that a plan can be set to.
func stagesOf(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"Cordon", "Drain", "Complete"}, cobra.ShellCompDirectiveNoFileComp
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

// completeHealth teaches the shell the names of health checks, and nodes.
func completeHealth(a *invocation.App, health *cobra.Command) {
	for _, c := range health.Commands() {
		switch c.Name() {
		case "explain", "confirm":
			c.ValidArgsFunction = inTurn(a, knownNodes)
		case "start", "apply":
			c.ValidArgsFunction = cobra.NoFileCompletions
		case "list":
		default:
			c.ValidArgsFunction = inTurn(a, healthChecks)
		}
	}
}

// healthChecks are those that run.
func healthChecks(ctx context.Context, a *invocation.App, _ []string) []string {
	return namesFrom(ctx, a, func(c *invocation.Connection) ([]string, error) {
		runs, err := client.ListHealthChecks(ctx, c.Client, true)
		return terminal.NamesOf(runs, func(run client.HealthCheckRun) string { return run.Name }), err
	})
}

// completeProfiles teaches the shell nodes; the names of profiles are those of the file that a command is given.
func completeProfiles(a *invocation.App, profile *cobra.Command) {
	for _, c := range profile.Commands() {
		switch c.Name() {
		case "explain":
			c.ValidArgsFunction = inTurn(a, knownNodes)
		case "list":
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}
