package show

import (
	"io"
	"time"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/terminal"
)

// PlanScheduleSummary is the schedule of a recurring plan in a list of them.
type PlanScheduleSummary struct {
	Name string `json:"name"`
	// Recurrence says when it runs; it has no fields where somebody else made a schedule of another form.
	Recurrence plan.Recurrence `json:"recurrence"`
	Paused     bool            `json:"paused"`
	// Note says who paused or resumed it last, and why.
	Note string `json:"note,omitempty"`
	// NextAt is when it runs next; absent while it is paused, and where it never does.
	NextAt *time.Time `json:"nextAt,omitempty"`
	// LastStartedAt is when a run was last begun; absent where none was.
	LastStartedAt *time.Time `json:"lastStartedAt,omitempty"`
	ScheduleID    string     `json:"scheduleId"`
}

// PlanSchedules are the schedules of recurring plans.
type PlanSchedules []PlanScheduleSummary

// Names are what -o name prints.
func (s PlanSchedules) Names() []string {
	names := make([]string, len(s))
	for i, one := range s {
		names[i] = one.Name
	}
	return names
}

// PlanScheduleSummaryOf is a schedule in a list.
func PlanScheduleSummaryOf(v client.RecurringView, id string) PlanScheduleSummary {
	s := PlanScheduleSummary{Name: v.Name, Recurrence: v.When, Paused: v.Paused, Note: v.Note, ScheduleID: id}
	if !v.Paused && len(v.Next) > 0 {
		next := v.Next[0].UTC()
		s.NextAt = &next
	}
	if n := len(v.Runs); n > 0 {
		last := v.Runs[n-1].Began.UTC()
		s.LastStartedAt = &last
	}
	return s
}

// PlanScheduleList shows a line for each schedule.
func PlanScheduleList(w io.Writer, schedules PlanSchedules, now time.Time) {
	r := terminal.OneLineEach(w, "PLAN", "RUNS", "NEXT", "LAST BEGUN", "NOTE")
	for _, s := range schedules {
		next, last := "never", "-"
		switch {
		case s.Paused:
			next = "paused"
		case s.NextAt != nil:
			next = terminal.Clock(*s.NextAt, now)
		}
		if s.LastStartedAt != nil {
			last = terminal.Clock(*s.LastStartedAt, now)
		}
		r.Add(s.Name, RecurrenceText(s.Recurrence), next, last, s.Note)
	}
	r.Done()
}
