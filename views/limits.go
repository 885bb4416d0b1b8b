package views

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/schedule"
)

// Scheduler is the limits, the freezes, the slots in use and who waits for one.
func Scheduler(s api.Scheduler, r Reader) document.Document {
	d := Limits(s.Limits, r)
	if s.ObservedAt != nil {
		d.Fact("Nodes", nodesText(s.Nodes, s.Unavailable, s.HeldNodes(), s.UnavailableOthers)+" (seen "+r.ago(*s.ObservedAt)+")")
	}
	maintenances := holders("In maintenance", s.Holders, schedule.KindMaintenance, r)
	d.Fact("Slots", slotsText(len(maintenances.Rows), s.PendingAll))
	if s.Rebuilding {
		d.Paragraph("The scheduler grants no slots until it knows again who holds them.")
	}
	d.Table(freezes(s.Freezes, r))
	d.Table(maintenances)
	d.Table(holders("Control-plane nodes that are remediated, one at a time", s.Holders, schedule.KindControlPlane, r))
	d.Table(holders("Nodes that profiles take into maintenance", s.Holders, schedule.KindProfile, r))
	d.Table(Pending(s.Pending, s.PendingAll, r))
	return d
}

// nodesText counts the cluster's nodes, and says which are unavailable.
func nodesText(all, unavailable, held int, others []schedule.UnavailableNode) string {
	return fmt.Sprintf("%d, %d of them unavailable%s", all, unavailable, colon(Unavailable(unavailable, held, others)))
}

func slotsText(inUse, waiting int) string {
	return fmt.Sprintf("%d in use, %d waited for", inUse, waiting)
}

// holders are those of a kind.
func holders(title string, all []api.Holder, kind schedule.HolderKind, r Reader) document.Table {
	t := document.Table{Title: title, Header: []string{"node", "requestor", "granted"}}
	for _, h := range all {
		if h.Kind == kind {
			t.Add(h.Node, h.Requestor, r.age(h.GrantedAt))
		}
	}
	return t
}

// Pending are the first of those that wait for a slot; all counts them.
func Pending(first []api.PendingRequest, all int, r Reader) document.Table {
	t := document.Table{
		Title: "Waiting for a slot", Header: []string{"node", "requestor", "priority", "waits", "reason"}, More: document.AndMore(all - len(first)),
	}
	for _, p := range first {
		t.Add(p.Node, p.Requestor, strconv.Itoa(p.Priority), r.age(p.Created), r.words(p.Reason))
	}
	return t
}

// Freezes has a line for each freeze, below what was done about them.
func Freezes(done string, all []schedule.Freeze, r Reader) (d document.Document) {
	d.Line("%s", done)
	d.Table(freezes(all, r))
	return d
}

func freezes(all []schedule.Freeze, r Reader) document.Table {
	t := document.Table{Header: []string{"frozen by", "since", "running too", "reason"}}
	for _, f := range all {
		t.Add(f.By, r.age(f.At), yesNo(f.Running), f.Reason)
	}
	return t
}

// Limits are the limits in force, with who set them.
func Limits(l api.LimitsInForce, r Reader) (d document.Document) {
	t := document.Table{Header: []string{"limit", "max parallel", "max unavailable", "nodes"}}
	if len(l.Windows) > 0 || slices.ContainsFunc(l.Groups, func(g schedule.Group) bool { return len(g.Windows) > 0 }) {
		t.Header = append(t.Header, "windows")
	}
	add := func(name string, parallel, unavailable schedule.Amount, nodes string, windows []string) {
		cells := []string{name, cmp.Or(parallel.String(), "-"), cmp.Or(unavailable.String(), "-"), nodes, strings.Join(windows, ", ")}
		t.Add(cells[:len(t.Header)]...)
	}
	add("cluster", l.MaxParallel, l.MaxUnavailable, "all", l.Windows)
	for _, g := range l.Groups {
		add(g.Name, g.MaxParallel, g.MaxUnavailable, g.Nodes(), g.Windows)
	}
	d.Table(t)
	d.Table(quotas(l.Quotas))
	d.Fact("Remediations", l.Limits.WithDefaults().Remediations.String()+", of health checks, in slots of their own")
	by := cmp.Or(l.SetBy, "nobody")
	if !l.SetAt.IsZero() {
		by += ", " + r.ago(l.SetAt)
	}
	d.Fact("Set by", by+colon(l.Comment))
	return d
}

// quotas are what single requestors may have, where that is bounded.
func quotas(q schedule.Quotas) document.Table {
	t := document.Table{Header: []string{"requestor", "max pending", "max held"}}
	if q.PendingPerRequestor != nil || q.HeldPerRequestor != nil {
		t.Add("each", most(q.PendingPerRequestor), most(q.HeldPerRequestor))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Requestors)) {
		own := q.Of(name)
		t.Add(name, most(own.Pending), most(own.Held))
	}
	return t
}

func most(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}

// LimitDifferences has a line for each limit that is not the same in force and in a file.
func LimitDifferences(all []api.LimitDifference, file string) (d document.Document) {
	t := document.Table{Header: []string{"limit", "in force", "file"}}
	for _, one := range all {
		t.Add(one.Limit, cmp.Or(one.InForce, "-"), cmp.Or(one.File, "-"))
	}
	if d.Table(t); len(all) == 0 {
		d.Line("The limits in force are those of %s.", file)
	}
	return d
}
