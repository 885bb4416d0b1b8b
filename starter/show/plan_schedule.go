package show

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// PlanSchedule is the schedule of a recurring plan for programs.
type PlanSchedule struct {
	Name string `json:"name"`
	// Recurrence says when it runs; it has no fields where somebody else made a schedule of another form.
	Recurrence plan.Recurrence `json:"recurrence"`
	Paused     bool            `json:"paused"`
	// Note says who paused or resumed it last, and why.
	Note string `json:"note,omitempty"`
	// Next are the next times, at most ten; none while it is paused.
	Next []time.Time `json:"next"`
	// Runs are the last ones, at most ten, the oldest first.
	Runs []PlanScheduleRun `json:"runs"`
	// Overlapped counts the times that were skipped because a run went on, Missed those at which Temporal was away.
	Overlapped int `json:"overlapped"`
	Missed     int `json:"missed"`
	// Plan is the input of each run's plan; absent where it cannot be read.
	Plan       *plan.Plan `json:"plan,omitempty"`
	ScheduleID string     `json:"scheduleId"`
	CreatedAt  time.Time  `json:"createdAt"`
}

// PlanScheduleRun is one run of a recurring plan.
type PlanScheduleRun struct {
	DueAt      time.Time `json:"dueAt"`
	StartedAt  time.Time `json:"startedAt"`
	WorkflowID string    `json:"workflowId"`
	Running    bool      `json:"running"`
	// Phase is the end of its plan, Failed where that ended without a word of its own; absent while it runs, and of a run
	// that was skipped.
	Phase api.PlanPhase `json:"phase,omitempty"`
	// Skipped: a plan of that name ran already, which no run of the schedule had begun.
	Skipped bool   `json:"skipped,omitempty"`
	Message string `json:"message,omitempty"`
}

// PlanScheduleOf is a schedule for programs.
func PlanScheduleOf(v client.RecurringView, id string) PlanSchedule {
	s := PlanSchedule{
		Name: v.Name, Recurrence: v.When, Paused: v.Paused, Note: v.Note, Next: []time.Time{}, Runs: []PlanScheduleRun{},
		Overlapped: v.Overlapped, Missed: v.Missed, Plan: v.Plan, ScheduleID: id, CreatedAt: v.Created.UTC(),
	}
	if !v.Paused {
		for _, at := range v.Next {
			s.Next = append(s.Next, at.UTC())
		}
	}
	for _, run := range v.Runs {
		one := PlanScheduleRun{DueAt: run.Due.UTC(), StartedAt: run.Began.UTC(), WorkflowID: run.WorkflowID, Running: run.Running, Message: run.Failure}
		if run.Result != nil {
			one.Phase, one.Skipped = run.Result.Phase, run.Result.Skipped
			if one.Message == "" {
				one.Message = run.Result.Message
			}
		}
		if one.Phase == "" && !one.Running && !one.Skipped {
			one.Phase = api.PlanFailed
		}
		s.Runs = append(s.Runs, one)
	}
	return s
}

// PlanScheduleStatus shows a schedule, its next times and its last runs.
func PlanScheduleStatus(w io.Writer, s PlanSchedule, now time.Time) {
	head := terminal.NewRows(w)
	head.Add("Plan:", s.Name)
	head.Add("Runs:", RecurrenceText(s.Recurrence))
	switch {
	case s.Paused:
		head.Add("Next:", cmp.Or(s.Note, "paused"))
	case len(s.Next) == 0:
		head.Add("Next:", "never")
	default:
		text := terminal.Clock(s.Next[0], now)
		for _, at := range s.Next[1:min(3, len(s.Next))] {
			text += ", " + terminal.Clock(at, now)
		}
		head.Add("Next:", text)
	}
	if s.Plan != nil && s.Plan.Reason != "" {
		head.Add("Reason:", s.Plan.Reason)
	}
	if s.Overlapped > 0 || s.Missed > 0 {
		head.Add("Skipped:", fmt.Sprintf("%d while a run went on, %d while Temporal was away", s.Overlapped, s.Missed))
	}
	head.Add("Schedule:", s.ScheduleID)
	head.Done()
	if len(s.Runs) == 0 {
		fmt.Fprintln(w, "\nIt has not run yet.")
		return
	}
	fmt.Fprintln(w)
	r := terminal.NewRows(w, "BEGAN", "AGO", "END", "MESSAGE")
	for _, run := range s.Runs {
		end := string(run.Phase)
		switch {
		case run.Running:
			end = "runs"
		case run.Skipped:
			end = "skipped"
		}
		r.AddPainted(2, views.PlanStyle(run.Phase), terminal.Clock(run.StartedAt, now), period.Age(now.Sub(run.StartedAt)), end, terminal.Words(run.Message, now))
	}
	r.Done()
}

// RecurrenceText says in words when a recurring plan runs.
func RecurrenceText(r plan.Recurrence) string {
	switch {
	case r.Cron != "" && r.Timezone != "":
		return r.Cron + " in " + r.Timezone
	case r.Cron != "":
		return r.Cron + " in UTC"
	case r.Every != 0:
		return "every " + period.InDays(r.Every.Std())
	default:
		return "by a schedule of another form: see the Temporal UI"
	}
}
