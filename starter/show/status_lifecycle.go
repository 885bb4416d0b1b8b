package show

import (
	"io"
	"strconv"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/who"
	"drydock.dev/drydock/starter/terminal"
)

// renderApproval says who decided, or that nobody has yet.
func renderApproval(head terminal.Rows, s *api.Status, now time.Time) {
	switch a := s.Approval; {
	case a != nil && a.Denied:
		head.Add("Denied:", byAt(a, now))
	case a != nil:
		head.Add("Approved:", byAt(a, now))
	}
}

func byAt(a *api.ApprovalStatus, now time.Time) string {
	return terminal.Clock(a.At, now) + " by " + terminal.OneLine(a.Who()) + terminal.Colon(a.Comment)
}

// renderStarter says who started the maintenance, who need not be its requestor.
func renderStarter(head terminal.Rows, s *api.Status) {
	if s != nil && s.Starter != nil {
		head.Add("Started by:", terminal.OneLine(who.Started(s.Starter.Identity, s.Starter.Principal)))
	}
}

// renderValidation lists what a validation looks at.
func renderValidation(w io.Writer, v *api.ValidationStatus, now time.Time) {
	if v == nil || len(v.Results) == 0 {
		return
	}
	terminal.Print(w, "\nValidation (%s):\n", v.State)
	r := terminal.NewRows(w, "  CHECK", "OK", "FOUND")
	for _, result := range v.Results {
		r.Add("  "+result.Name, map[bool]string{true: "yes", false: "no"}[result.OK], terminal.Words(result.Message, now))
	}
	r.Done()
}

// renderWork lists what the worker did on the node, and does.
func renderWork(w io.Writer, work []api.WorkRun, now time.Time) {
	if len(work) == 0 {
		return
	}
	terminal.Print(w, "\nWork:\n")
	r := terminal.NewRows(w, "  WORK", "ATTEMPT", "SINCE", "FOR", "OUTCOME", "OUTPUT")
	for _, one := range work {
		until := now
		if one.EndedAt != nil {
			until = *one.EndedAt
		}
		r.Add("  "+one.Name, strconv.Itoa(one.Attempt), terminal.Clock(one.StartedAt, now), period.Age(until.Sub(one.StartedAt)),
			terminal.Words(one.State(), now), terminal.OneLine(one.Output))
	}
	r.Done()
}

// renderStates lists which notifications were sent.
func renderStates(w io.Writer, states []api.LifecycleState, now time.Time) {
	if len(states) == 0 {
		return
	}
	terminal.Print(w, "\nNotified states:\n")
	r := terminal.NewRows(w, "  AT", "STATE", "MESSAGE")
	for _, s := range states {
		r.Add("  "+terminal.Clock(s.At, now), string(s.State), terminal.Words(s.Message, now))
	}
	r.Done()
}
