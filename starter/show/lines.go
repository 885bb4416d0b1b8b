// Package show has what the command line draws anew while it waits: a line for a maintenance or a plan, and the picture of a plan.
package show

import (
	"time"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// LineOf names the requestor too where it is not self, since a node can have maintenances of several.
func LineOf(v client.View, self string, now time.Time) terminal.Line {
	m := v.Known()
	l := terminal.Line{Label: v.Node, Text: terminal.Words(views.Progress(m), now), Style: views.PhaseStyle(m.Phase), Age: now.Sub(v.Started)}
	if v.Requestor != self {
		l.Label += " (" + v.Requestor + ")"
	}
	switch {
	case m.EndedAt != nil:
		l.Age = m.EndedAt.Sub(m.CreatedAt)
	case m.Since != nil:
		l.Age = now.Sub(*m.Since)
	}
	return l
}
