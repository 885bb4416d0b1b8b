package show

import (
	"fmt"
	"io"
	"time"

	"drydock/api"
	"drydock/starter/terminal"
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
	text := terminal.Clock(a.At, now)
	if a.By != "" {
		text += " by " + a.By
	}
	if a.Principal != "" {
		text += " (verified: " + terminal.OneLine(a.Principal) + ")"
	}
	return text + terminal.Colon(a.Comment)
}

// renderValidation lists what a validation looks at.
func renderValidation(w io.Writer, v *api.ValidationStatus) {
	if v == nil || len(v.Results) == 0 {
		return
	}
	fmt.Fprintf(w, "\nValidation (%s):\n", v.State)
	r := terminal.NewRows(w, "  CHECK", "OK", "FOUND")
	for _, result := range v.Results {
		r.Add("  "+result.Name, map[bool]string{true: "yes", false: "no"}[result.OK], result.Message)
	}
	r.Done()
}

// renderStates lists what the outside was told.
func renderStates(w io.Writer, states []api.LifecycleState, now time.Time) {
	if len(states) == 0 {
		return
	}
	fmt.Fprintln(w, "\nStates:")
	r := terminal.NewRows(w, "  STATE", "AT", "MESSAGE")
	for _, s := range states {
		r.Add("  "+string(s.State), terminal.Clock(s.At, now), s.Message)
	}
	r.Done()
}
