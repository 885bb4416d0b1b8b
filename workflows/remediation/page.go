package remediation

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/markdown"
	"drydock/workflows/loop"
)

// answer takes queries.
func (r *remediation) answer(root workflow.Context) error {
	return workflow.SetQueryHandlerWithOptions(root, api.QueryStatus, func() (api.RemediationStatus, error) { return r.status(), nil },
		workflow.QueryHandlerOptions{Description: "the steps, how they stand, and what the check has ordered"})
}

func (r *remediation) status() api.RemediationStatus {
	status := api.RemediationStatus{
		Check: r.identity.check, Node: r.node, WorkflowID: r.workflowID, RunID: r.runID, Since: r.in.Since, Why: r.in.Why,
		Steps: r.in.Steps, Progress: r.state.Progress, Order: r.state.Order,
	}
	if r.state.Leased {
		status.Lease = "node-" + strings.ToLower(r.node)
	}
	if since := r.state.Orphaned; !since.IsZero() {
		status.Orphaned = &since
	}
	return status
}

// describe shows the remediation in the Temporal UI.
func (r *remediation) describe() {
	p := &r.state.Progress
	var text strings.Builder
	fmt.Fprintf(&text, "Remediation of **%s** by health check %s: %s", markdown.Text(r.node), markdown.Text(r.identity.check), markdown.Text(r.in.Why))
	switch {
	case p.Ended && p.Failure != "":
		fmt.Fprintf(&text, "\n\nended: %s", markdown.Text(p.Failure))
	case p.Ended:
		text.WriteString("\n\nended: nothing of it is left")
	case r.ends():
		text.WriteString("\n\nending: what it has made is removed")
	default:
		fmt.Fprintf(&text, "\n\nstep %d of %d", r.state.Order.Step+1, len(r.in.Steps))
	}
	if p.Waiting != "" {
		fmt.Fprintf(&text, "\n\nwaiting for %s", markdown.Text(p.Waiting))
	}
	if !r.state.Orphaned.IsZero() {
		fmt.Fprintf(&text, "\n\nits check does not run since %s", r.state.Orphaned.UTC().Format(time.RFC3339))
	}
	if len(p.Steps) > 0 {
		text.WriteString("\n")
	}
	for _, s := range p.Steps {
		what := s.WorkflowID
		if s.Resource != nil {
			what = s.Resource.Kind + " " + s.Resource.Namespace + "/" + s.Resource.Name
		}
		fmt.Fprintf(&text, "\n- step %d: %s%s", s.Index+1, markdown.Text(what), stateOf(s.Succeeded, s.Gone, s.TimedOut != nil))
		if s.Failure != "" {
			fmt.Fprintf(&text, ": %s", markdown.Text(s.Failure))
		}
	}
	text.WriteString(loop.Latest(r.state.Notes))
	workflow.SetCurrentDetails(r.Ctx, text.String())
}

func stateOf(succeeded *bool, gone, timedOut bool) string {
	text := ""
	switch {
	case succeeded != nil && *succeeded:
		text = ", succeeded"
	case succeeded != nil:
		text = ", failed"
	}
	if timedOut {
		text += ", timed out"
	}
	if gone {
		text += ", gone"
	}
	return text
}
