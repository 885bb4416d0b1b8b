package show

import (
	"fmt"
	"io"
	"time"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// PlanList shows a line for each plan; wide shows more of each.
func PlanList(w io.Writer, plans Plans, wide bool, now time.Time) {
	header := []string{"PLAN", "PHASE", "SINCE", "DONE", "RUNNING", "FAILED", "WAITING"}
	if wide {
		header = append(header, "CREATED", "TICKET", "REASON", "WORKFLOW")
	}
	r := terminal.OneLineEach(w, append(header, "WAITING FOR")...)
	for _, p := range plans {
		phase, since := string(p.Phase), p.CreatedAt
		if phase == "" {
			phase = "?"
		}
		if p.Since != nil {
			since = *p.Since
		}
		cells := []string{p.Name, phase, period.Age(now.Sub(since)), "", "", "", ""}
		if c := p.Counts; c != nil {
			cells[3], cells[4] = fmt.Sprintf("%d/%d", c.Done, c.Total), fmt.Sprint(c.Running)
			cells[5], cells[6] = fmt.Sprint(c.Failures()), fmt.Sprint(c.Waiting)
		}
		if wide {
			cells = append(cells, terminal.Clock(p.CreatedAt, now), p.Ticket, p.Reason, p.WorkflowID)
		}
		waiting := waitText(p, now)
		if p.Message != "" {
			waiting = terminal.Words(p.Message, now)
		}
		r.AddPainted(1, views.PlanStyle(p.Phase), append(cells, waiting)...)
	}
	r.Done()
}

// PlanLine says in one line where a plan is. Its text changes only when something has.
func PlanLine(v client.PlanView, now time.Time) terminal.Line {
	p := PlanSummaryOf(v, "")
	l := terminal.Line{Label: p.Name, Text: string(p.Phase), Style: views.PlanStyle(p.Phase), Age: now.Sub(p.CreatedAt)}
	if p.Since != nil {
		l.Age = now.Sub(*p.Since)
	}
	if p.EndedAt != nil {
		l.Age = p.EndedAt.Sub(p.CreatedAt)
	}
	if p.Counts != nil {
		l.Text += ": " + CountsText(*p.Counts)
	}
	switch {
	case p.Message != "":
		l.Text += "; " + terminal.Words(p.Message, now)
	case p.WaitingFor != "":
		l.Text += "; waits for " + terminal.Words(p.WaitingFor, now)
		if p.Until != nil {
			l.Text += ", until " + terminal.Clock(*p.Until, now)
		}
	}
	return l
}
