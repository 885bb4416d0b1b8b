package remediation

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/workflows/controller"
)

// status asks how the remediation stands.
type status struct{}

func (status) Answer(r *remediation, _ time.Time) (any, error) {
	status := api.RemediationStatus{
		Check: r.in.Check, Node: r.in.Node, WorkflowID: r.Info.WorkflowID, RunID: r.Info.Run, Since: r.in.Since, Why: r.in.Why,
		Steps: r.in.Steps, Progress: r.Progress, Order: r.Order, Troubles: r.Troubles(),
	}
	if r.Leased {
		status.Lease = "node-" + strings.ToLower(r.in.Node)
	}
	if r.Slot.Asked {
		status.Slot = &api.SlotStatus{RequestID: r.slotRequest().ID, GrantedAt: r.Slot.GrantedAt}
	}
	if since := r.Reports.Orphaned; !since.IsZero() {
		status.Orphaned = &since
	}
	return status, nil
}

func (r *remediation) Page(time.Time) controller.Page {
	p := &r.Progress
	var text strings.Builder
	fmt.Fprintf(&text, "Remediation of **%s** by health check %s: %s", markdown.Text(r.in.Node), markdown.Text(r.in.Check), markdown.Text(r.in.Why))
	switch {
	case p.Ended && p.Failure != "":
		fmt.Fprintf(&text, "\n\nended: %s", markdown.Text(p.Failure))
	case p.Ended:
		text.WriteString("\n\nended: nothing of it is left")
	case r.ends():
		text.WriteString("\n\nending: what it has made is removed")
	default:
		fmt.Fprintf(&text, "\n\nstep %d of %d", r.Order.Step+1, len(r.in.Steps))
	}
	if p.Waiting != "" {
		fmt.Fprintf(&text, "\n\nwaiting for %s", markdown.Text(p.Waiting))
	}
	text.WriteString(r.ShowTroubles())
	if !r.Reports.Orphaned.IsZero() {
		fmt.Fprintf(&text, "\n\nits check does not run since %s", r.Reports.Orphaned.UTC().Format(time.RFC3339))
	}
	if len(p.Steps) > 0 {
		text.WriteString("\n")
	}
	for _, s := range p.Steps {
		what := s.WorkflowID
		if s.Resource != nil {
			what = s.Resource.Kind + " " + s.Resource.Namespace + "/" + s.Resource.Name
		}
		fmt.Fprintf(&text, "\n- step %d: %s", s.Index+1, markdown.Text(what))
		for _, state := range []struct {
			is   bool
			text string
		}{
			{s.Succeeded != nil && *s.Succeeded, ", succeeded"}, {s.Succeeded != nil && !*s.Succeeded, ", failed"}, {s.TimedOut != nil, ", timed out"}, {s.Gone, ", gone"},
		} {
			if state.is {
				text.WriteString(state.text)
			}
		}
		if s.Failure != "" {
			fmt.Fprintf(&text, ": %s", markdown.Text(s.Failure))
		}
	}
	return controller.Page{Details: text.String() + r.ShowNotes()}
}
