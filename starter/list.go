package starter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/heldby"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type listOptions struct {
	app       *invocation.App
	output    terminal.Output
	all       bool
	requestor string
	phases    []string
	sortBy    string
	limit     int
}

func newList(a *invocation.App) *cobra.Command {
	o := &listOptions{app: a}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the maintenances that are running",
		Long: `List the maintenances that are running, with what each waits for.

Below the table are the nodes that profiles hold in maintenance, and those whose slot no maintenance holds: a profile takes
the node into maintenance, or a health check remediates a node of the control plane.

With --all those that ended are listed too, the newest first, as far back as the Temporal namespace keeps them; a --phase
that is an end lists them as well. A maintenance appears here a moment after it was started.

In a terminal each maintenance has one line, cut where it is too long; -o wide shows all of it, and more. -o name prints
the names of the nodes alone.`,
		Example: `  drydock list
  drydock list --all --requestor ops --sort-by since
  drydock list --phase Ready,RequestorFailed -o name
  drydock list -o json | jq -r '.[] | select(.phase == "Ready") | .node'`,
		Args: invocation.NoArgs,
		RunE: a.Connected(o.run, o.check),
	}
	o.output.Register(cmd, terminal.FormatName)
	o.output.RegisterNoHeaders(cmd)
	f := cmd.Flags()
	f.BoolVarP(&o.all, "all", "a", false, "list those that ended too")
	f.StringVarP(&o.requestor, "requestor", "r", "", "list those of one requestor")
	f.StringSliceVar(&o.phases, "phase", nil, "list those in this phase (repeatable)")
	f.StringVar(&o.sortBy, "sort-by", "", "order: "+strings.Join(listOrders, ", ")+" (default by node, those that ended last)")
	f.IntVar(&o.limit, "limit", 500, "list at most this many; 0 is no limit")
	terminal.CompleteFlag(cmd, "phase", phaseNames())
	terminal.CompleteFlag(cmd, "sort-by", listOrders)
	return cmd
}

func (o *listOptions) run(ctx context.Context, c *invocation.Connection, _ []string) error {
	found, err := o.views(ctx, c)
	if err != nil {
		return err
	}
	var unanswered error
	for _, v := range found {
		unanswered = cmp.Or(unanswered, v.Unanswered)
	}
	o.app.WarnUnanswered(unanswered)
	summaries := client.Summaries(found)
	holders, held := o.beside(ctx, c, summaries)
	if len(found) == 0 && o.output.Table() {
		fmt.Fprintln(o.app.Stderr, o.nothing())
		if len(holders) == 0 && len(held.Nodes) == 0 {
			return nil
		}
	}
	reader := views.At(c.Clock())
	return o.output.Write(o.app.Stdout, summaries,
		views.Maintenances(summaries, o.output.Wide(), reader), views.HeldByProfiles(held, reader), views.OtherHolders(holders))
}

// beside are the nodes out of service without a maintenance, for people who did not ask for certain maintenances: the holders of slots that
// are no maintenances, and the nodes that profiles hold. The list does not depend on a worker that answers.
func (o *listOptions) beside(ctx context.Context, c *invocation.Connection, all api.Maintenances) (others []api.Holder, held api.HeldByProfiles) {
	if !o.output.Table() || o.requestor != "" || len(o.phases) > 0 {
		return nil, held
	}
	state, err := c.SchedulerState(ctx, 1)
	switch {
	case exit.Has[*client.NoSchedulerError](err): // as before the first worker has started
		return nil, held
	case err != nil:
		why := terminal.OneLine(invocation.WithoutKeys(err).Error())
		fmt.Fprintf(o.app.Stderr, "Warning: it is not known who else holds slots: %s\n", why)
		return nil, held
	}
	return slices.DeleteFunc(state.Holders, api.Holder.IsMarked), heldby.Profiles(ctx, c, "", all, o.app.Stderr)
}

func (o *listOptions) check([]string) error {
	if o.limit < 0 {
		return exit.UsageError("--limit %d: want 0 or more", o.limit)
	}
	for i, name := range o.phases {
		at := slices.IndexFunc(api.Phases, func(p api.Phase) bool { return strings.EqualFold(string(p), name) })
		if at < 0 {
			return exit.UsageError("--phase %q: want one of %s", name, strings.Join(phaseNames(), ", "))
		}
		o.phases[i] = string(api.Phases[at])
	}
	if o.sortBy != "" && !slices.Contains(listOrders, o.sortBy) {
		return exit.UsageError("--sort-by %q: want one of %s", o.sortBy, strings.Join(listOrders, ", "))
	}
	return nil
}

func (o *listOptions) nothing() string {
	switch {
	case len(o.phases) > 0:
		return "No maintenances are " + strings.Join(o.phases, " or ") + "."
	case o.all:
		return "No maintenances."
	default:
		return "No maintenances are running."
	}
}

func phaseNames() []string {
	return terminal.NamesOf(api.Phases, func(p api.Phase) string { return string(p) })
}

func (o *listOptions) views(ctx context.Context, c *invocation.Connection) ([]client.View, error) {
	ended := o.all || slices.ContainsFunc(o.phases, func(p string) bool { return api.Phase(p).Ended() })
	// Requestor and phase are not a part of the query, so the limit cannot be either.
	limit := o.limit
	if o.requestor != "" || len(o.phases) > 0 {
		limit = 0
	}
	chosen, err := c.List(ctx, client.ListOptions{Running: !ended, Limit: limit})
	if err != nil {
		return nil, c.Explain(err)
	}
	chosen = slices.DeleteFunc(chosen, func(t client.Maintenance) bool { return o.requestor != "" && t.Requestor != o.requestor })
	if o.limit > 0 && len(o.phases) == 0 {
		chosen = chosen[:min(o.limit, len(chosen))]
	}
	views, err := c.ObserveAll(ctx, chosen)
	views = slices.DeleteFunc(views, func(v client.View) bool {
		return len(o.phases) > 0 && !slices.Contains(o.phases, string(v.Phase()))
	})
	if o.limit > 0 {
		views = views[:min(o.limit, len(views))]
	}
	slices.SortStableFunc(views, byDefault)
	if order := listOrder[o.sortBy]; order != nil {
		slices.SortStableFunc(views, order)
	}
	return views, c.Explain(err)
}

// listOrder are the orders of a list: since and created begin with the oldest, attempts with the most.
var listOrder = map[string]func(a, b client.View) int{
	"attempt":   func(a, b client.View) int { return cmp.Compare(b.Summary().Attempt, a.Summary().Attempt) },
	"created":   func(a, b client.View) int { return a.Started.Compare(b.Started) },
	"node":      func(a, b client.View) int { return terminal.CompareNames(a.Node, b.Node) },
	"phase":     func(a, b client.View) int { return cmp.Compare(rank(a), rank(b)) },
	"requestor": func(a, b client.View) int { return cmp.Compare(a.Requestor, b.Requestor) },
	"since":     func(a, b client.View) int { return since(a).Compare(since(b)) },
}

var listOrders = slices.Sorted(maps.Keys(listOrder))

func rank(v client.View) int { return slices.Index(api.Phases, v.Phase()) }

func since(v client.View) time.Time {
	if at := v.Summary().Since; at != nil {
		return *at
	}
	return v.Started
}

// byDefault has those that run by node, then those that ended, newest first.
func byDefault(a, b client.View) int {
	switch {
	case a.Running() && b.Running():
		return cmp.Or(terminal.CompareNames(a.Node, b.Node), cmp.Compare(a.Requestor, b.Requestor))
	case a.Running():
		return -1
	case b.Running():
		return 1
	default:
		return b.Closed.Compare(a.Closed)
	}
}
