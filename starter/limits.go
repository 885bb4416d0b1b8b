package starter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/client"
	"drydock/rules/period"
	"drydock/rules/schedule"
)

func newLimits(a *app) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Show and change how many nodes may be out of service at a time",
		Long: `Show the limits in force with who set them and why, the freezes, the slots in use with their holders, and what waits
for a slot with the reason.

The worker's configuration sets the limits only when the scheduler is first started. From then on they are the
scheduler's own, changed by "drydock limits set".`,
		Example: `  drydock limits
  drydock limits set --max-parallel 2 --comment "two crews tonight"
  drydock limits diff --config worker.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return showLimits(cmd.Context(), a, &out) },
	}
	out.register(cmd)
	cmd.AddCommand(newLimitsSet(a), newLimitsDiff(a))
	return cmd
}

func showLimits(ctx context.Context, a *app, out *output) error {
	if err := out.check(); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	pending := firstPending
	if !out.table() {
		pending = client.AllPending
	}
	state, err := c.schedulerState(ctx, pending)
	if err != nil {
		return err
	}
	return out.write(a.Stdout, state, func(w io.Writer) { renderState(w, state, c.now()) })
}

// firstPending is how many of those that wait are shown to people.
const firstPending = 20

func renderState(w io.Writer, s api.State, now time.Time) {
	renderLimits(w, s.Limits, now)
	if s.Rebuilding {
		fmt.Fprintln(w, "\nThe scheduler is finding out who holds slots; until then it grants none.")
	}
	if len(s.Freezes) > 0 {
		fmt.Fprintln(w)
		renderFreezes(w, s.Freezes, now)
	}
	fmt.Fprintln(w)
	if s.ObservedAt != nil {
		fmt.Fprintf(w, "Nodes: %d, %d of them unavailable (%s ago)\n", s.Nodes, s.Unavailable, period.Age(now.Sub(*s.ObservedAt)))
	}
	fmt.Fprintf(w, "Slots in use: %d\n", len(s.Holders))
	if len(s.Holders) > 0 {
		r := newRows(w, "  NODE", "REQUESTOR", "GRANTED")
		for _, h := range s.Holders {
			r.add("  "+h.Node, h.Requestor, period.Age(now.Sub(h.GrantedAt)))
		}
		r.done()
	}
	fmt.Fprintf(w, "Waiting for a slot: %d\n", s.PendingAll)
	if len(s.Pending) == 0 {
		return
	}
	r := newRows(w, "  NODE", "REQUESTOR", "PRIORITY", "WAITS", "REASON")
	for _, p := range s.Pending[:min(firstPending, len(s.Pending))] {
		r.add("  "+p.Node, p.Requestor, fmt.Sprint(p.Priority), period.Age(now.Sub(p.Created)), p.Reason)
	}
	r.done()
	if more := s.PendingAll - firstPending; more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
}

func renderLimits(w io.Writer, l api.LimitsInForce, now time.Time) {
	r := newRows(w, "LIMIT", "MAX PARALLEL", "MAX UNAVAILABLE", "NODES")
	r.add("cluster", amount(l.MaxParallel), amount(l.MaxUnavailable), "all")
	for _, g := range l.Groups {
		r.add(g.Name, amount(g.MaxParallel), amount(g.MaxUnavailable), groupNodes(g))
	}
	r.done()
	by := "Set by " + cmp.Or(l.SetBy, "nobody")
	if !l.SetAt.IsZero() {
		by += ", " + period.Age(now.Sub(l.SetAt)) + " ago"
	}
	fmt.Fprintln(w, by+colon(oneLine(l.Comment)))
}

func amount(a schedule.Amount) string { return cmp.Or(a.String(), "-") }

func groupNodes(g schedule.Group) string {
	var parts []string
	if g.NodeSelector != "" {
		parts = append(parts, g.NodeSelector)
	}
	if len(g.GroupBy) > 0 {
		parts = append(parts, "each "+strings.Join(g.GroupBy, "+"))
	}
	return strings.Join(parts, ", ")
}
