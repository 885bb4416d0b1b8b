// Package show has what the command line draws anew while it waits: a line for a maintenance or a plan, and the picture of a plan.
package show

import (
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// LineOf names the requestor too where it is not self, since a node can have maintenances of several.
func LineOf(v client.View, self string, now time.Time) terminal.Line {
	m := v.Known()
	l := terminal.Line{Label: v.Node, Text: terminal.Words(views.Progress(m), now), Style: views.PhaseStyle(m.Phase), Age: ageOf(m.Execution, m.Since, now)}
	if v.Requestor != self {
		l.Label += " (" + v.Requestor + ")"
	}
	return l
}

// PlanLine says in one line where a plan is.
func PlanLine(p api.PlanSummary, now time.Time) terminal.Line {
	return terminal.Line{
		Label: p.Name, Text: views.PlanProgress(p, views.At(now)), Style: views.PlanStyle(p.Phase), Age: ageOf(p.Execution, p.Since, now),
	}
}

// ageOf is how long something has been in its phase, or how long it took where it has ended.
func ageOf(e api.Execution, since *time.Time, now time.Time) time.Duration {
	switch {
	case e.EndedAt != nil:
		return e.EndedAt.Sub(e.CreatedAt)
	case since != nil:
		return now.Sub(*since)
	default:
		return now.Sub(e.CreatedAt)
	}
}
