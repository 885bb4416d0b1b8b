package remediation

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/controller"
)

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
	d := document.Document{Title: fmt.Sprintf("Remediation of %s by health check %s", r.in.Node, r.in.Check)}
	d.Fact("Ill", r.in.Why)
	switch {
	case p.Ended:
		d.Fact("Ended", cmp.Or(p.Failure, "nothing of it is left"))
	case r.ends():
		d.Fact("Ending", "what it has made is removed")
	default:
		d.Fact("Step", fmt.Sprintf("%d of %d", r.Order.Step+1, len(r.in.Steps)))
	}
	d.Fact("Waiting for", p.Waiting)
	if since := r.Reports.Orphaned; !since.IsZero() {
		d.Fact("Without a check since", since.UTC().Format(time.RFC3339))
	}
	views.Troubles(&d, r.Troubles(), views.Brief())
	steps := document.Table{Title: "Steps", Header: []string{"step", "what", "state", "failure"}}
	for _, s := range p.Steps {
		what := s.WorkflowID
		if s.Resource != nil {
			what = s.Resource.Kind + " " + s.Resource.Namespace + "/" + s.Resource.Name
		}
		var states []string
		for _, state := range []struct {
			is   bool
			text string
		}{
			{s.Succeeded != nil && *s.Succeeded, "succeeded"}, {s.Succeeded != nil && !*s.Succeeded, "failed"}, {s.TimedOut != nil, "timed out"}, {s.Gone, "gone"},
		} {
			if state.is {
				states = append(states, state.text)
			}
		}
		steps.Add(strconv.Itoa(s.Index+1), what, strings.Join(states, ", "), s.Failure)
	}
	d.Table(steps)
	return controller.Page{Details: r.Details(d)}
}
