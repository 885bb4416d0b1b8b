package show

import (
	"io"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/terminal"
)

// Freezes shows who has frozen the cluster.
func Freezes(w io.Writer, freezes []schedule.Freeze, now time.Time) {
	r := terminal.NewRows(w, "FROZEN BY", "SINCE", "RUNNING TOO", "REASON")
	for _, f := range freezes {
		r.Add(f.By, period.Age(now.Sub(f.At)), yesNo(f.Running), f.Reason)
	}
	r.Done()
}
