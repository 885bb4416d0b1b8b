package starter

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// completionTimeout keeps a key press from hanging on a server that is away.
const completionTimeout = 2 * time.Second

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// candidates are the words that can follow the arguments that are there.
type candidates func(ctx context.Context, a *invocation.App, args []string) []string

func registerCompletions(a *invocation.App, root *cobra.Command) {
	words := argumentWords(a)
	for _, c := range root.Commands() {
		if c.GroupID == "tell" {
			completeMessages(a, c)
		}
		if complete := words[c.Name()]; complete != nil {
			c.ValidArgsFunction = complete
		}
		for _, verb := range c.Commands() {
			complete, own := words[c.Name()+" "+verb.Name()]
			if !own {
				complete = words[c.Name()+" VERB"]
			}
			if complete != nil {
				verb.ValidArgsFunction = complete
			}
		}
	}
	fixed := func(words ...string) completer {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	completeFlags(root, map[string]completer{
		"do": fixed(spec.Rungs...), "escalation": fixed("1h="+spec.GiveBack, "1h="+spec.Fail, "30m="+spec.Notify, "none"),
		"notify": offer(a, channels), "hook": offer(a, hooksToCall), "work": offer(a, worksToDo), "requestor": offer(a, requestors),
		"of": offer(a, requestors), "by": offer(a, freezers), "pod": offer(a, podsOnNode), "check": offer(a, healthChecks),
	})
}

// completeMessages teaches the shell the arguments of a command that sends a message, and of those below it.
func completeMessages(a *invocation.App, c *cobra.Command) {
	words := []candidates{nodesInMaintenance}
	switch {
	case strings.HasSuffix(c.Use, " POD"):
		words = append(words, podsOnNode)
	case strings.HasSuffix(c.Use, " HOOK"):
		words = append(words, openHooks)
	}
	for _, sub := range c.Commands() {
		completeMessages(a, sub)
	}
	if !c.HasSubCommands() {
		c.ValidArgsFunction = inTurn(a, words...)
	}
}

func completeFlags(c *cobra.Command, flags map[string]completer) {
	for flag, complete := range flags {
		if c.Flags().Lookup(flag) != nil {
			// It fails only for a flag that does not exist or was registered before.
			_ = c.RegisterFlagCompletionFunc(flag, complete)
		}
	}
	for _, sub := range c.Commands() {
		completeFlags(sub, flags)
	}
}

// inTurn offers words of its own for each argument.
func inTurn(a *invocation.App, words ...candidates) completer {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(words) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(a, words[len(args)])(cmd, args, prefix)
	}
}

// offer is a completer that offers the words that are not there yet.
func offer(a *invocation.App, words candidates) completer {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		var fitting []string
		for _, word := range words(ctx, a, args) {
			if strings.HasPrefix(word, prefix) && !slices.Contains(args, word) {
				fitting = append(fitting, word)
			}
		}
		return fitting, cobra.ShellCompDirectiveNoFileComp
	}
}

// knownNodes are the cluster's nodes, or where Kubernetes does not answer those in maintenance.
func knownNodes(ctx context.Context, a *invocation.App, args []string) []string {
	k, err := a.Nodes(completionTimeout)
	if err != nil {
		return nodesInMaintenance(ctx, a, args)
	}
	nodes, err := k.List(ctx, "")
	if err != nil {
		// The time may be used up; what is left of it is worth a try.
		return nodesInMaintenance(ctx, a, args)
	}
	return terminal.NamesOf(nodes, func(n invocation.Node) string { return n.Name })
}

func nodesInMaintenance(ctx context.Context, a *invocation.App, _ []string) []string {
	views := running(ctx, a, client.ListOptions{Running: true}, false)
	return terminal.InOrder(terminal.NamesOf(views, func(v client.View) string { return v.Node }))
}

// running are the maintenances that run, and what they say of themselves where they are asked.
func running(ctx context.Context, a *invocation.App, which client.ListOptions, ask bool) []client.View {
	c, err := a.Connect(ctx)
	if err != nil {
		return nil
	}
	defer c.Close()
	all, err := c.List(ctx, which)
	if err != nil {
		return nil
	}
	if !ask {
		views := make([]client.View, len(all))
		for i, m := range all {
			views[i].Maintenance = m
		}
		return views
	}
	views, err := c.ObserveAll(ctx, all)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(views, func(v client.View) bool { return v.Status == nil })
}

// namesFrom are the names that find gets over a connection, in order; none if it gets no answer.
func namesFrom(ctx context.Context, a *invocation.App, find func(c *invocation.Connection) ([]string, error)) []string {
	c, err := a.Connect(ctx)
	if err != nil {
		return nil
	}
	defer c.Close()
	names, err := find(c)
	if err != nil {
		return nil
	}
	return terminal.InOrder(names)
}

// ofNode are the statuses of the node that the arguments name.
func ofNode(ctx context.Context, a *invocation.App, args []string) []*api.Status {
	var all []*api.Status
	if len(args) > 0 && spec.NodeName(args[0]) == nil {
		for _, v := range running(ctx, a, client.ListOptions{Node: args[0], Running: true}, true) {
			all = append(all, v.Status)
		}
	}
	return all
}

// podsOnNode are the pods on the node, or where Kubernetes does not answer those that block its drain.
func podsOnNode(ctx context.Context, a *invocation.App, args []string) []string {
	if k, err := a.Nodes(completionTimeout); err == nil && len(args) > 0 {
		if pods, err := k.PodsOn(ctx, args[0]); err == nil {
			return terminal.InOrder(pods)
		}
	}
	var names []string
	for _, s := range ofNode(ctx, a, args) {
		if s.Drain != nil {
			for _, b := range s.Drain.Blockers {
				names = append(names, b.Pod)
			}
		}
	}
	return terminal.InOrder(names)
}

// openHooks are those that a maintenance of the node waits for.
func openHooks(ctx context.Context, a *invocation.App, args []string) []string {
	var names []string
	for _, s := range ofNode(ctx, a, args) {
		names = append(names, s.OpenHooks...)
		if w := s.RunningWork(); w != nil && w.Kind == validation.KindSignal {
			names = append(names, w.Name)
		}
	}
	return terminal.InOrder(names)
}

// channels are those of the worker's configuration where it is at hand, and those that running maintenances notify.
func channels(ctx context.Context, a *invocation.App, _ []string) []string {
	names := input.NamesIn(a.Env.Get(invocation.EnvConfig), "channels")
	for _, v := range running(ctx, a, client.ListOptions{Running: true, Limit: 50}, true) {
		names = append(names, v.Status.Tells...)
	}
	return append(terminal.InOrder(names), "none")
}

var hookTimes = []string{"beforeCordon", "afterDrain", "beforeRelease"}

// hooksToCall are those of the worker's configuration, each with every time at which it can be called.
func hooksToCall(_ context.Context, a *invocation.App, _ []string) []string {
	var all []string
	names := input.NamesIn(a.Env.Get(invocation.EnvConfig), "hooks")
	for _, when := range hookTimes {
		if len(names) == 0 {
			all = append(all, when+"=")
		}
		for _, name := range names {
			all = append(all, when+"="+name)
		}
	}
	return all
}

func worksToDo(_ context.Context, a *invocation.App, _ []string) []string {
	return terminal.InOrder(input.NamesIn(a.Env.Get(invocation.EnvConfig), "work"))
}

// requestors are those of the maintenances that run, of the named node where there is one.
func requestors(ctx context.Context, a *invocation.App, args []string) []string {
	which := client.ListOptions{Running: true}
	if len(args) > 0 && spec.NodeName(args[0]) == nil {
		which.Node = args[0]
	}
	return terminal.InOrder(terminal.NamesOf(running(ctx, a, which, false), func(v client.View) string { return v.Requestor }))
}

// freezers are those whose freezes are in force.
func freezers(ctx context.Context, a *invocation.App, _ []string) []string {
	return namesFrom(ctx, a, func(c *invocation.Connection) ([]string, error) {
		state, err := c.SchedulerState(ctx, 1)
		return terminal.NamesOf(state.Freezes, func(f schedule.Freeze) string { return f.By }), err
	})
}
