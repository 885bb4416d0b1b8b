package profile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type listOptions struct {
	question
	state string
	// in is what is asked for.
	in api.ProfileReportInput
}

func newList(a *invocation.App) *cobra.Command {
	o := &listOptions{question: question{app: a}}
	cmd := &cobra.Command{
		Use:     "list [PROFILE]",
		Aliases: []string{"ls"},
		Short:   "List nodes with the state of their profiles, and what each waits for",
		Long: `List the profiles of all nodes, or only those of one name and in one state: since when each is in its state, what is under way, what
has failed, and which checks do not hold that would lead out of it. The lines above count all nodes of the cluster. A worker answers; it
looks at the nodes and changes nothing.`,
		Example: `  drydock profile list
  drydock profile list os-patching --state in-maintenance
  drydock profile list -o json | jq -r '.nodes[] | select(.problem) | .node'`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Connected(o.run, o.checkTimeout, o.check),
	}
	o.output.Register(cmd, terminal.FormatName)
	o.output.RegisterNoHeaders(cmd)
	cmd.Flags().StringVar(&o.state, "state", "", "only profiles in this state: "+stateNames())
	invocation.DurationVar(cmd.Flags(), &o.timeout, "timeout", reportWithin, "how long to wait for each answer")
	terminal.CompleteFlag(cmd, "state", strings.Split(stateNames(), ", "))
	return cmd
}

func stateNames() string {
	return strings.Join(terminal.NamesOf(state.All(), func(s state.State) string { return string(s) }), ", ")
}

func (o *listOptions) run(ctx context.Context, c *invocation.Connection, _ []string) error {
	in := o.in
	if err := c.HasWorker(ctx); err != nil {
		return c.Explain(err)
	}
	all, err := pages(in, func(in api.ProfileReportInput) (api.ProfileReport, error) { return o.report(ctx, c, in) })
	if err != nil {
		return err
	}
	warn(o.app.Stderr, api.ProfileReport{Problem: all.Problem, Stopped: all.Stopped})
	if len(all.Nodes) == 0 && o.output.Table() {
		fmt.Fprintln(o.app.Stderr, nobody(in))
		return nil
	}
	shown := all
	if o.output.NoHeaders {
		shown.Counts = nil
	}
	return o.output.Write(o.app.Stdout, all, views.ProfileNodes(shown, in.Profile, views.At(c.Clock())))
}

// check makes the question of flags and arguments.
func (o *listOptions) check(args []string) error {
	o.in = api.ProfileReportInput{State: state.State(o.state), Limit: api.MaxProfileReport, Profile: strings.Join(args, "")}
	if o.state != "" && !o.in.State.Known() {
		return exit.UsageError("--state %q: want one of %s", o.state, stateNames())
	}
	if err := state.CheckName(o.in.Profile); len(args) > 0 && err != nil {
		return exit.UsageError("PROFILE: %w", err)
	}
	return nil
}

// pages asks for all nodes, one page after the other.
func pages(in api.ProfileReportInput, ask func(api.ProfileReportInput) (api.ProfileReport, error)) (api.ProfileNodes, error) {
	var all api.ProfileNodes
	for {
		page, err := ask(in)
		if err != nil {
			return all, err
		}
		if in.After == "" {
			all = api.ProfileNodes{At: page.At, Problem: page.Problem, Stopped: page.Stopped, Counts: page.Counts}
		}
		for _, n := range page.Nodes {
			if n, some := only(n, in); some {
				all.Nodes = append(all.Nodes, n)
			}
		}
		switch {
		case page.Next == "":
			return all, nil
		case page.Next <= in.After:
			return all, fmt.Errorf("a worker's answer does not get on: after %q it goes on with %q", in.After, page.Next)
		}
		in.After = page.Next
	}
}

// only leaves of a node's profiles those that were asked for; some is whether any is left.
func only(n api.ProfileNode, in api.ProfileReportInput) (left api.ProfileNode, some bool) {
	n.Profiles = slices.DeleteFunc(slices.Clone(n.Profiles), func(p api.NodeProfile) bool {
		return in.Profile != "" && p.Profile != in.Profile || in.State != "" && p.State != in.State
	})
	return n, len(n.Profiles) > 0 || n.Problem != "" || in.Profile == "" && in.State == ""
}

// nobody says that there is nothing to list.
func nobody(in api.ProfileReportInput) string {
	switch {
	case in.Profile != "" && in.State != "":
		return fmt.Sprintf("No node has the profile %s in %s.", in.Profile, in.State)
	case in.Profile != "":
		return fmt.Sprintf("No node has the profile %s.", in.Profile)
	case in.State != "":
		return fmt.Sprintf("No node has a profile in %s.", in.State)
	}
	return "No nodes."
}
