package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/terminal"
)

// List shows a line for each maintenance; wide shows more of each.
func List(w io.Writer, views []client.View, wide bool, now time.Time) {
	header := []string{"NODE", "REQUESTOR", "PHASE", "SINCE"}
	if wide {
		header = append(header, "ATTEMPT", "CREATED", "TICKET", "REASON", "WORKFLOW")
	}
	r := terminal.OneLineEach(w, append(header, "WAITING FOR")...)
	for _, v := range views {
		phase, since, attempts, waiting, s := string(v.Phase()), v.Started, "", "", SummaryOf(v)
		switch {
		case !v.Running():
			since, waiting = v.Ended(), v.Message()
		case v.Status != nil:
			since, waiting = v.Status.Since, v.Status.WaitingFor
			attempts = fmt.Sprint(v.Status.Attempt)
		default:
			phase = "?"
		}
		cells := []string{v.Node, v.Requestor, phase, period.Age(now.Sub(since))}
		if wide {
			cells = append(cells, attempts, terminal.Clock(s.CreatedAt, now), s.Ticket, s.Reason, v.WorkflowID)
		}
		r.AddPainted(2, phaseStyle(v.Phase()), append(cells, terminal.Words(waiting, now))...)
	}
	r.Done()
}

// namedHolders is how many holders of slots are named below the list of maintenances.
const namedHolders = 5

// OtherHolders shows in one line who holds slots of nodes without a maintenance: transitions of profiles, and remediations of control-plane
// nodes.
func OtherHolders(w io.Writer, all []api.Holder) {
	var named []string
	for _, h := range all {
		switch h.Kind {
		case schedule.KindMaintenance:
			continue
		case schedule.KindProfile:
			named = append(named, h.Node+" (profile "+strings.TrimPrefix(h.Requestor, api.ProfileRequestorPrefix)+")")
		default:
			named = append(named, h.Node+" ("+string(h.Kind)+" remediation by "+h.Requestor+")")
		}
	}
	if len(named) == 0 {
		return
	}
	if more := len(named) - namedHolders; more > 0 {
		named = append(named[:namedHolders], fmt.Sprintf("%d more", more))
	}
	terminal.Print(w, "Slots of no maintenance: %s\n", strings.Join(named, ", "))
}
