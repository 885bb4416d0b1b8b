package record

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
)

// How many failures and blockers are shown to people; JSON has all of them.
const (
	shownFailures = 20
	shownBlockers = 10
)

// View is the report, with times in the zone of now.
func (r Report) View(now time.Time) document.Document {
	full := func(t time.Time) string { return t.In(now.Location()).Format("2006-01-02 15:04:05 MST") }
	return r.describe(clock(now), full)
}

// Markdown is the report for a ticket or a page, with dates and times in the zone of now. All text of a record is
// escaped.
func (r Report) Markdown(now time.Time) string {
	return document.Markdown(r.describe(dated(now), dated(now)))
}

// describe writes the period with its dates, of which one is often today's.
func (r Report) describe(when, dated func(time.Time) string) document.Document {
	span := dated(r.Since) + " to " + dated(r.Until)
	d := document.Document{Title: "Maintenances from " + span}
	d.Fact("Ended", fmt.Sprintf("%s of %s, from %s", number.Of(r.Maintenances, "maintenance"), number.Of(r.Nodes, "node"), span))
	for _, e := range r.Ends {
		d.Fact(e.Phase, fmt.Sprintf("%s %d (%s)", document.Bar(e.Maintenances, r.Maintenances), e.Maintenances, share(e.Maintenances, r.Maintenances)))
	}
	if r.Maintenances > 0 && len(r.Ended) > 1 {
		d.Fact("Pace", fmt.Sprintf("%s maintenances in each %s, %d at most", document.Sparks(r.Ended), inWords(r.Every.Std()), slices.Max(r.Ended)))
	}
	if r.WithFailures > 0 {
		d.Fact("Failed on the way", fmt.Sprintf("%d (%s)", r.WithFailures, share(r.WithFailures, r.Maintenances)))
	}
	if n := len(r.Refused); n > 0 {
		d.Fact("Refused", fmt.Sprintf("%d, not counted: nothing was done", n))
	}
	durations := document.Table{Title: "Durations", Header: []string{"phase", "maintenances", "half within", "95% within", "longest"}}
	spreads := slices.Clone(r.Phases)
	if r.Total != nil {
		all := *r.Total
		all.Phase = "all phases together"
		spreads = append(spreads, all)
	}
	for _, s := range spreads {
		durations.Add(s.Phase, count(s.Maintenances), period.Age(s.P50.Std()), period.Age(s.P95.Std()), period.Age(s.Longest.Std()))
	}
	d.Table(durations)
	none := ""
	if r.Maintenances > 0 {
		none = "none"
	}
	d.Table(failureTable("Failures", none, r.Failures, when))
	d.Table(onTheWayTable(r.FailuresOnTheWay, when))
	d.Table(failureTable("Refused", "", r.Refused, when))
	d.Table(blockerTable("In the way for the longest time", r.Blockers))
	// The other order says more only where there is a choice.
	if often := slices.SortedFunc(slices.Values(r.Blockers), mostOften); !slices.Equal(often, r.Blockers) {
		d.Table(blockerTable("In the way most often", often))
	}
	return d
}

// inWords is an hour, a day, or several days.
func inWords(every time.Duration) string {
	switch days := int(every / (24 * time.Hour)); days {
	case 0:
		return "hour"
	case 1:
		return "day"
	default:
		return fmt.Sprintf("%d days", days)
	}
}

func failureTable(title, none string, failures []Failure, when func(time.Time) string) document.Table {
	t := document.Table{Title: title, None: none, Header: []string{"ended", "node", "requestor", "phase", "reason"}}
	for _, f := range failures[:min(len(failures), shownFailures)] {
		t.Add(when(f.EndedAt), joined("/", f.Cluster, f.Node), f.Requestor, f.Phase, moment.InText(f.Reason, when))
	}
	t.More = document.AndMore(len(failures) - len(t.Rows))
	return t
}

func onTheWayTable(failures []FailureOnTheWay, when func(time.Time) string) document.Table {
	t := document.Table{Title: "Failures on the way", Header: []string{"at", "node", "requestor", "phase", "reason", "end"}}
	for _, f := range failures[:min(len(failures), shownFailures)] {
		t.Add(when(f.At), joined("/", f.Cluster, f.Node), f.Requestor, f.Phase, moment.InText(f.Reason, when), f.End)
	}
	t.More = document.AndMore(len(failures) - len(t.Rows))
	return t
}

func blockerTable(title string, blockers []BlockerTotal) document.Table {
	t := document.Table{Title: title, Header: []string{"what", "maintenances", "time in all", "reason"}}
	for _, b := range blockers[:min(len(blockers), shownBlockers)] {
		t.Add(b.What, count(b.Maintenances), period.Age(b.Blocked.Std()), b.Reason)
	}
	t.More = document.AndMore(len(blockers) - len(t.Rows))
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
