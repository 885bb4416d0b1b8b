package show

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// FirstPending is how many of those that wait are shown to people.
const FirstPending = 20

// SchedulerState shows limits, freezes, slots in use and who waits for one.
func SchedulerState(w io.Writer, s api.State, now time.Time) {
	Limits(w, s.Limits, now)
	if s.Rebuilding {
		terminal.Print(w, "\nThe scheduler grants no slots until it knows again who holds them.\n")
	}
	if len(s.Freezes) > 0 {
		fmt.Fprintln(w)
		Freezes(w, s.Freezes, now)
	}
	fmt.Fprintln(w)
	if s.ObservedAt != nil {
		terminal.Print(w, "Nodes: %d, %d of them unavailable%s (%s ago)\n", s.Nodes, s.Unavailable, terminal.Colon(whoIsUnavailable(s)), period.Age(now.Sub(*s.ObservedAt)))
	}
	maintenances := ofKind(s.Holders, schedule.KindMaintenance)
	terminal.Print(w, "Slots in use: %d\n", len(maintenances))
	holders(w, "", maintenances, now)
	holders(w, "Control-plane nodes that are remediated, one at a time:\n", ofKind(s.Holders, schedule.KindControlPlane), now)
	holders(w, "Nodes that profiles take into maintenance:\n", ofKind(s.Holders, schedule.KindProfile), now)
	terminal.Print(w, "Waiting for a slot: %d\n", s.PendingAll)
	if len(s.Pending) == 0 {
		return
	}
	r := terminal.NewRows(w, "  NODE", "REQUESTOR", "PRIORITY", "WAITS", "REASON")
	for _, p := range s.Pending[:min(FirstPending, len(s.Pending))] {
		r.Add("  "+p.Node, p.Requestor, fmt.Sprint(p.Priority), period.Age(now.Sub(p.Created)), terminal.Words(p.Reason, now))
	}
	r.Done()
	if more := s.PendingAll - FirstPending; more > 0 {
		terminal.Print(w, "  and %d more\n", more)
	}
}

// ofKind are the holders of a kind.
func ofKind(all []api.Holder, kind schedule.HolderKind) (some []api.Holder) {
	for _, h := range all {
		if h.Kind == kind {
			some = append(some, h)
		}
	}
	return some
}

func holders(w io.Writer, title string, all []api.Holder, now time.Time) {
	if len(all) == 0 {
		return
	}
	terminal.Print(w, "%s", title)
	r := terminal.NewRows(w, "  NODE", "REQUESTOR", "GRANTED")
	for _, h := range all {
		r.Add("  "+h.Node, h.Requestor, period.Age(now.Sub(h.GrantedAt)))
	}
	r.Done()
}

// whoIsUnavailable says how many nodes are in maintenance, and which are out of service for another reason.
func whoIsUnavailable(s api.State) string {
	return views.Unavailable(s.Unavailable, s.HeldNodes(), s.UnavailableOthers)
}

// Limits shows the limits in force, with who set them.
func Limits(w io.Writer, l api.LimitsInForce, now time.Time) {
	columns := limitColumns(l.Limits)
	r := terminal.NewRows(w, columns...)
	add := func(cells ...string) { r.Add(cells[:len(columns)]...) }
	add("cluster", amount(l.MaxParallel), amount(l.MaxUnavailable), "all", WindowNames(l.Windows))
	for _, g := range l.Groups {
		add(g.Name, amount(g.MaxParallel), amount(g.MaxUnavailable), GroupNodes(g), WindowNames(g.Windows))
	}
	r.Done()
	terminal.Print(w, "Remediations of health checks, in slots of their own: %s\n", l.Limits.WithDefaults().Remediations)
	renderQuotas(w, l.Quotas)
	by := "Set by " + cmp.Or(l.SetBy, "nobody")
	if !l.SetAt.IsZero() {
		by += ", " + period.Age(now.Sub(l.SetAt)) + " ago"
	}
	terminal.Print(w, "%s\n", by+terminal.Colon(terminal.OneLine(l.Comment)))
}

// limitColumns has a column for windows where a limit names some.
func limitColumns(l schedule.Limits) []string {
	columns := []string{"LIMIT", "MAX PARALLEL", "MAX UNAVAILABLE", "NODES"}
	if len(l.Windows) > 0 || slices.ContainsFunc(l.Groups, func(g schedule.Group) bool { return len(g.Windows) > 0 }) {
		columns = append(columns, "WINDOWS")
	}
	return columns
}

// WindowNames are windows as people read them.
func WindowNames(names []string) string { return strings.Join(names, ", ") }

// renderQuotas shows what single requestors may have, where that is bounded.
func renderQuotas(w io.Writer, q schedule.Quotas) {
	if q.IsZero() {
		return
	}
	fmt.Fprintln(w)
	r := terminal.NewRows(w, "REQUESTOR", "MAX PENDING", "MAX HELD")
	if q.PendingPerRequestor != nil || q.HeldPerRequestor != nil {
		r.Add("each", cmp.Or(Quota(q.PendingPerRequestor), "-"), cmp.Or(Quota(q.HeldPerRequestor), "-"))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Requestors)) {
		own := q.Of(name)
		r.Add(name, cmp.Or(Quota(own.Pending), "-"), cmp.Or(Quota(own.Held), "-"))
	}
	r.Done()
	fmt.Fprintln(w)
}

// Quota is a quota as people read it; empty where there is none.
func Quota(most *int) string {
	if most == nil {
		return ""
	}
	return strconv.Itoa(*most)
}

func amount(a schedule.Amount) string { return cmp.Or(a.String(), "-") }

// GroupNodes says which nodes a group of limits is for.
func GroupNodes(g schedule.Group) string {
	var parts []string
	if g.NodeSelector != "" {
		parts = append(parts, g.NodeSelector)
	}
	if len(g.GroupBy) > 0 {
		parts = append(parts, "each "+strings.Join(g.GroupBy, "+"))
	}
	return strings.Join(parts, ", ")
}
