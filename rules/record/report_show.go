package record

import (
	"fmt"
	"slices"
	"time"

	"drydock/rules/period"
)

// How many failures and blockers are shown to people; JSON has all of them.
const (
	shownFailures = 20
	shownBlockers = 10
)

// Text is the report for a terminal, with times in the zone of now.
func (r Report) Text(now time.Time) string {
	dated := func(t time.Time) string { return t.In(now.Location()).Format(time.DateTime) }
	return r.describe(clock(now), dated).text()
}

// Markdown is the report for a ticket or a page, with times in UTC. Nothing that a record holds is taken for Markdown.
func (r Report) Markdown() string { return r.describe(inUTC, inUTC).markdown() }

// JSON is the report, indented.
func (r Report) JSON() ([]byte, error) { return indented(r) }

// describe writes the period with its dates, of which one is often today's.
func (r Report) describe(when, dated func(time.Time) string) document {
	span := dated(r.Since) + " to " + dated(r.Until)
	d := document{title: "Maintenances from " + span}
	d.fact("Ended", fmt.Sprintf("%s of %s, from %s", plural(r.Maintenances, "maintenance"), plural(r.Nodes, "node"), span))
	for _, e := range r.Ends {
		d.fact(e.Phase, fmt.Sprintf("%d (%s)", e.Maintenances, share(e.Maintenances, r.Maintenances)))
	}
	durations := table{title: "Durations", header: []string{"phase", "maintenances", "half within", "95% within", "longest"}}
	spreads := slices.Clone(r.Phases)
	if r.Total != nil {
		all := *r.Total
		all.Phase = "all phases together"
		spreads = append(spreads, all)
	}
	for _, s := range spreads {
		durations.rows = append(durations.rows, []string{s.Phase, count(s.Maintenances), period.Age(s.P50.Std()), period.Age(s.P95.Std()), period.Age(s.Longest.Std())})
	}
	d.table(durations)
	failures := table{title: "Failures", header: []string{"ended", "node", "requestor", "phase", "reason"}}
	if r.Maintenances > 0 {
		failures.none = "none"
	}
	for _, f := range r.Failures[:min(len(r.Failures), shownFailures)] {
		node := joined("/", f.Cluster, f.Node)
		failures.rows = append(failures.rows, []string{when(f.EndedAt), node, f.Requestor, f.Phase, f.Reason})
	}
	failures.more = more(len(r.Failures) - len(failures.rows))
	d.table(failures)
	d.table(blockerTable("In the way for the longest time", r.Blockers))
	// The other order says more only where there is a choice.
	if often := slices.SortedFunc(slices.Values(r.Blockers), mostOften); !slices.Equal(often, r.Blockers) {
		d.table(blockerTable("In the way most often", often))
	}
	return d
}

func blockerTable(title string, blockers []BlockerTotal) table {
	t := table{title: title, header: []string{"what", "maintenances", "time in all", "reason"}}
	for _, b := range blockers[:min(len(blockers), shownBlockers)] {
		t.rows = append(t.rows, []string{b.What, count(b.Maintenances), period.Age(b.Blocked.Std()), b.Reason})
	}
	t.more = more(len(blockers) - len(t.rows))
	return t
}

// share is a part of the whole in percent, which is never shown as all or nothing where it is not.
func share(part, whole int) string {
	if whole == 0 {
		return "0%"
	}
	percent := (100*part + whole/2) / whole
	switch {
	case percent == 0 && part > 0:
		return "under 1%"
	case percent == 100 && part < whole:
		return "over 99%"
	}
	return fmt.Sprintf("%d%%", percent)
}
