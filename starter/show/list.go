package show

import (
	"fmt"
	"io"
	"time"

	"drydock/client"
	"drydock/rules/period"
	"drydock/starter/terminal"
)

// List shows a line for each maintenance.
func List(w io.Writer, views []client.View, all bool, now time.Time) {
	if len(views) == 0 {
		if all {
			fmt.Fprintln(w, "No maintenances.")
		} else {
			fmt.Fprintln(w, "No maintenances are running.")
		}
		return
	}
	r := terminal.NewRows(w, "NODE", "REQUESTOR", "PHASE", "SINCE", "ATTEMPT", "WAITING FOR")
	for _, v := range views {
		phase, since, attempt, waiting := string(v.Phase()), v.Started, "", ""
		switch {
		case !v.Running():
			since, waiting = v.Closed, v.Message()
		case v.Status != nil:
			since, waiting = v.Status.Since, v.Status.WaitingFor
			attempt = fmt.Sprint(v.Status.Attempt)
		default:
			phase = "?"
		}
		r.Add(v.Node, v.Requestor, phase, period.Age(now.Sub(since)), attempt, waiting)
	}
	r.Done()
}
