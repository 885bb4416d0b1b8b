package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
)

// Plans has a line for each plan; wide has more of each.
func Plans(all api.Plans, wide bool, r Reader) document.Document {
	t := document.Table{Header: []string{"plan", "phase", "since", "done", "running", "failed", "waiting"}, OneLine: true}
	if wide {
		t.Header = append(t.Header, "created", "ticket", "reason", "workflow")
	}
	t.Header = append(t.Header, lastColumn(slices.ContainsFunc(all, func(p api.PlanSummary) bool { return p.EndedAt != nil })))
	for _, p := range all {
		since, waiting := p.CreatedAt, waitText(p, r, r.in)
		if p.Since != nil {
			since = *p.Since
		}
		if p.Message != "" {
			waiting = r.words(p.Message)
		}
		cells := []string{p.Name, cmp.Or(string(p.Phase), "?"), r.age(since), "", "", "", ""}
		if c := p.Counts; c != nil {
			cells[3], cells[4] = fmt.Sprintf("%d/%d", c.Done, c.Total), strconv.Itoa(c.Running)
			cells[5], cells[6] = strconv.Itoa(c.Failures()), strconv.Itoa(c.Waiting)
		}
		if wide {
			cells = append(cells, r.at(p.CreatedAt), p.Ticket, p.Reason, p.WorkflowID)
		}
		t.AddPainted(1, PlanStyle(p.Phase), append(cells, waiting)...)
	}
	return listed(t)
}

// PlanSchedules has a line for each schedule of a recurring plan.
func PlanSchedules(all api.PlanSchedules, r Reader) document.Document {
	t := document.Table{Header: []string{"plan", "runs", "next", "last begun", "note"}, OneLine: true}
	for _, s := range all {
		next, last := "never", "-"
		switch {
		case s.Paused:
			next = "paused"
		case s.NextAt != nil:
			next = r.at(*s.NextAt)
		}
		if s.LastStartedAt != nil {
			last = r.at(*s.LastStartedAt)
		}
		t.Add(s.Name, RecurrenceText(s.Recurrence), next, last, s.Note)
	}
	return listed(t)
}

// PlanSchedule is a schedule of a recurring plan, with its next times and its last runs.
func PlanSchedule(s api.PlanSchedule, r Reader) (d document.Document) {
	d.Fact("Plan", s.Name)
	d.Fact("Runs", RecurrenceText(s.Recurrence))
	next := "never"
	if s.Paused {
		next = cmp.Or(s.Note, "paused")
	}
	for i, at := range s.Next[:min(3, len(s.Next))] {
		if i == 0 {
			next = r.at(at)
		} else {
			next += ", " + r.at(at)
		}
	}
	d.Fact("Next", next)
	if s.Plan != nil {
		d.Fact("Reason", s.Plan.Reason)
	}
	if s.Overlapped > 0 || s.Missed > 0 {
		d.Fact("Skipped", fmt.Sprintf("%d while a run went on, %d while Temporal was away", s.Overlapped, s.Missed))
	}
	d.Fact("Schedule", s.ScheduleID)
	t := document.Table{Header: []string{"began", "ago", "end", "message"}}
	for _, run := range s.Runs {
		end := string(run.Phase)
		switch {
		case run.Running:
			end = "runs"
		case run.Skipped:
			end = "skipped"
		}
		t.AddPainted(2, PlanStyle(run.Phase), r.at(run.StartedAt), r.age(run.StartedAt), end, r.words(run.Message))
	}
	if d.Table(t); len(s.Runs) == 0 {
		d.Paragraph("It has not run yet.")
	}
	return d
}

// RecurrenceText says in words when a recurring plan runs.
func RecurrenceText(r plan.Recurrence) string {
	switch {
	case r.Cron != "":
		return r.Cron + " in " + cmp.Or(r.Timezone, "UTC")
	case r.Every != 0:
		return "every " + period.InDays(r.Every.Std())
	default:
		return "by a schedule of another form: see the Temporal UI"
	}
}
