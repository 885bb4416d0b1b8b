package starter

import (
	"fmt"
	"io"
	"time"

	"drydock/api"
)

// renderApproval says who decided, or that nobody has yet.
func renderApproval(head rows, s *api.Status, now time.Time) {
	switch a := s.Approval; {
	case a != nil && a.Denied:
		head.add("Denied:", byAt(a, now))
	case a != nil:
		head.add("Approved:", byAt(a, now))
	}
}

func byAt(a *api.ApprovalStatus, now time.Time) string {
	text := clock(a.At, now)
	if a.By != "" {
		text += " by " + a.By
	}
	return text + colon(a.Comment)
}

// renderValidation lists what a validation looks at.
func renderValidation(w io.Writer, v *api.ValidationStatus) {
	if v == nil || len(v.Results) == 0 {
		return
	}
	fmt.Fprintf(w, "\nValidation (%s):\n", v.State)
	r := newRows(w, "  CHECK", "OK", "FOUND")
	for _, result := range v.Results {
		r.add("  "+result.Name, map[bool]string{true: "yes", false: "no"}[result.OK], result.Message)
	}
	r.done()
}

// renderStates lists what the outside was told.
func renderStates(w io.Writer, states []api.LifecycleState, now time.Time) {
	if len(states) == 0 {
		return
	}
	fmt.Fprintln(w, "\nStates:")
	r := newRows(w, "  STATE", "AT", "MESSAGE")
	for _, s := range states {
		r.add("  "+string(s.State), clock(s.At, now), s.Message)
	}
	r.done()
}
