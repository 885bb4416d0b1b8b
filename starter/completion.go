package starter

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock/client"
	"drydock/rules/spec"
	"drydock/starter/invocation"
	"drydock/starter/terminal"
)

// completionTimeout keeps a key press from hanging on a server that is away.
const completionTimeout = 2 * time.Second

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// registerCompletions teaches the shell which words can follow.
func registerCompletions(a *invocation.App, root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "start", "exec", "rollout", "status", "preflight", "history":
			c.ValidArgsFunction = complete(a, knownNodes, c.Name() == "start" || c.Name() == "rollout" || c.Name() == "preflight")
		case "done", "failed", "retry", "cancel", "extend", "started", "drained", "join", "leave", "escalate", "skip-pod", "retry-now",
			"approve", "deny", "validated", "validation-failed", "hook-done", "skip-hook":
			c.ValidArgsFunction = complete(a, nodesInMaintenance, false)
		case "watch":
			c.ValidArgsFunction = complete(a, nodesInMaintenance, true)
		}
	}
	words := map[string][]string{
		"output":            terminal.Formats,
		"drain-mode":        {spec.ModeEvict, spec.ModeWait, spec.ModeExternal, spec.ModeNone},
		"via":               {spec.ViaEviction, spec.ViaEvictionRequest},
		"on-node-not-ready": {spec.WaitForKubelet, spec.IgnoreStuck},
		"preflight":         {spec.PreflightOff, spec.PreflightWait, spec.PreflightFail},
		"do":                spec.Rungs,
		"type":              {spec.Planned, spec.Unplanned},
		"on-ready-timeout":  {spec.FailOnTimeout, spec.ReleaseOnTimeout},
		"on-node-replaced":  {spec.AdoptReplacement, spec.EndOnReplacement},
		"escalation":        {"1h=" + spec.GiveBack, "1h=" + spec.Fail, "30m=" + spec.Notify, "none"},
	}
	completeFlags(root, words)
}

func completeFlags(c *cobra.Command, words map[string][]string) {
	for flag, values := range words {
		if c.Flags().Lookup(flag) != nil {
			// It fails only for a flag that does not exist or was registered before.
			_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, sub := range c.Commands() {
		completeFlags(sub, words)
	}
}

// complete offers the names that are not there yet.
func complete(a *invocation.App, names func(context.Context, *invocation.App) []string, many bool) completer {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		var fitting []string
		for _, name := range names(ctx, a) {
			if strings.HasPrefix(name, prefix) && !slices.Contains(args, name) {
				fitting = append(fitting, name)
			}
		}
		return fitting, cobra.ShellCompDirectiveNoFileComp
	}
}

// knownNodes are the cluster's nodes, or where Kubernetes does not answer those in maintenance.
func knownNodes(ctx context.Context, a *invocation.App) []string {
	k, err := a.Nodes(completionTimeout)
	if err != nil {
		return nodesInMaintenance(ctx, a)
	}
	nodes, err := k.List(ctx, "")
	if err != nil {
		// The time may be used up; what is left of it is worth a try.
		return nodesInMaintenance(ctx, a)
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return names
}

func nodesInMaintenance(ctx context.Context, a *invocation.App) []string {
	c, err := a.Connect(ctx)
	if err != nil {
		return nil
	}
	defer c.Close()
	running, err := c.List(ctx, client.ListOptions{Running: true})
	if err != nil {
		return nil
	}
	return invocation.NodeNames(running)
}
