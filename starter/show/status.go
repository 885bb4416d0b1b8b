// Package show turns what is known of maintenances, the scheduler and the cluster into the command line's texts.
package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"drydock/api"
	"drydock/client"
	"drydock/rules/period"
	"drydock/rules/spec"
	"drydock/starter/terminal"
)

// endedStatus is the machine-readable status with what only the server knows: how the run ended.
type endedStatus struct {
	*api.Status
	Phase   api.Phase  `json:"phase,omitempty"`
	EndedAt *time.Time `json:"endedAt,omitempty"`
	Message string     `json:"message,omitempty"`
}

// StatusOf is the workflow's own answer, or as much of it as is known without a worker.
func StatusOf(v client.View) any {
	status := v.Status
	if status == nil {
		status = &api.Status{
			WorkflowID: v.WorkflowID, RunID: v.FirstRunID, Spec: spec.Maintenance{Node: v.Node, Requestor: v.Requestor},
			Phase: v.Phase(), Since: v.Started,
		}
		if v.Result != nil {
			status.Transitions = v.Result.Transitions
		}
	}
	e := endedStatus{Status: status, Phase: v.Phase()}
	if !v.Running() {
		e.EndedAt, e.Message = &v.Closed, v.Message()
	}
	return e
}

// Status shows all that is known of a maintenance.
func Status(w io.Writer, v client.View, now time.Time) {
	head := terminal.NewRows(w)
	head.Add("Node:", v.Node)
	head.Add("Requestor:", v.Requestor)
	renderWhy(head, v, now)
	renderWhere(head, v, now)
	head.Add("Workflow:", v.WorkflowID)
	head.Add("Run:", v.FirstRunID)
	head.Done()
	if v.Status != nil && v.Running() {
		renderBlockers(w, v.Status.Drain, now)
		renderStays(w, v.Status.Drain)
		renderEscalation(w, v.Status.Escalation, now)
	}
	if v.Status != nil {
		renderValidation(w, v.Status.Validation)
	}
	renderTransitions(w, v, now)
	if v.Status != nil {
		renderStates(w, v.Status.States, now)
		renderMessages(w, v.Status.Messages, now)
	}
}

func renderWhy(head terminal.Rows, v client.View, now time.Time) {
	if v.Status == nil {
		return
	}
	m := v.Status.Spec
	for _, field := range []struct{ name, value string }{{"Reason:", m.Reason}, {"Ticket:", m.Ticket}, {"Owner:", m.Owner}} {
		if field.value != "" {
			head.Add(field.name, field.value)
		}
	}
	if m.Type != "" && m.Type != spec.Planned {
		head.Add("Type:", m.Type)
	}
	if m.Priority != 0 {
		head.Add("Priority:", fmt.Sprint(m.Priority))
	}
	renderApproval(head, v.Status, now)
}

func renderWhere(head terminal.Rows, v client.View, now time.Time) {
	switch {
	case !v.Running():
		head.Add("Phase:", fmt.Sprintf("%s (ended %s, %s ago, after %s)", v.Phase(), terminal.Clock(v.Closed, now), period.Age(now.Sub(v.Closed)), period.Age(v.Closed.Sub(v.Started))))
		if text := v.Message(); text != "" {
			head.Add("Message:", text)
		}
		return
	case v.Status == nil:
		head.Add("Phase:", fmt.Sprintf("unknown (started %s, %s ago)", terminal.Clock(v.Started, now), period.Age(now.Sub(v.Started))))
		return
	}
	s := v.Status
	head.Add("Phase:", fmt.Sprintf("%s (since %s, %s ago)", s.Phase, terminal.Clock(s.Since, now), period.Age(now.Sub(s.Since))))
	if s.WaitingFor != "" {
		head.Add("Waiting for:", s.WaitingFor)
	}
	if s.Failure != "" {
		head.Add("Failure:", s.Failure)
	}
	if s.Attempt > 1 {
		head.Add("Attempt:", fmt.Sprint(s.Attempt))
	}
	if len(s.Requestors) > 1 {
		head.Add("Requestors:", requestorsText(s.Requestors, now))
	}
	head.Add("Slot:", slotText(s.Slot, now))
	renderDrain(head, s, now)
	if s.StartedAt != nil {
		head.Add("Work began:", terminal.Clock(*s.StartedAt, now))
	}
	if s.ReadyDeadline != nil && s.Phase == api.Ready {
		head.Add("Held until:", fmt.Sprintf("%s (%s left; then %s)", terminal.Clock(*s.ReadyDeadline, now), period.Age(s.ReadyDeadline.Sub(now)), s.Spec.OnReadyTimeout))
	}
}

func requestorsText(requestors []api.RequestorStatus, now time.Time) string {
	texts := make([]string, len(requestors))
	for i, r := range requestors {
		texts[i] = r.Name
		if r.DoneAt != nil {
			texts[i] += fmt.Sprintf(" (done %s)", terminal.Clock(*r.DoneAt, now))
		}
	}
	return strings.Join(texts, ", ")
}

func slotText(s *api.SlotStatus, now time.Time) string {
	switch {
	case s == nil:
		return "none"
	case s.GrantedAt == nil:
		return "asked for"
	default:
		return "granted " + terminal.Clock(*s.GrantedAt, now)
	}
}

func renderTransitions(w io.Writer, v client.View, now time.Time) {
	transitions := v.Transitions()
	if len(transitions) == 0 {
		return
	}
	fmt.Fprintln(w, "\nPhases:")
	r := terminal.NewRows(w, "  PHASE", "AT", "FOR", "MESSAGE")
	for i, t := range transitions {
		if i > 0 && transitions[i-1].Phase == t.Phase {
			// Something happened while the phase stayed the same.
			r.Add("", terminal.Clock(t.At, now), "", t.Message)
			continue
		}
		r.Add("  "+string(t.Phase), terminal.Clock(t.At, now), lasted(transitions[i:], now), t.Message)
	}
	r.Done()
}

// lasted is how long the first phase was, or has been up to now.
func lasted(transitions []api.Transition, now time.Time) string {
	first := transitions[0]
	if first.Phase.Ended() {
		return ""
	}
	for _, next := range transitions[1:] {
		if next.Phase != first.Phase {
			return period.Age(next.At.Sub(first.At))
		}
	}
	return period.Age(now.Sub(first.At))
}

func renderMessages(w io.Writer, messages []api.Received, now time.Time) {
	if len(messages) == 0 {
		return
	}
	fmt.Fprintln(w, "\nMessages:")
	r := terminal.NewRows(w, "  AT", "MESSAGE", "BY", "EFFECT", "COMMENT")
	for _, m := range messages {
		r.Add("  "+terminal.Clock(m.At, now), m.Name, m.By, m.Effect, m.Comment)
	}
	r.Done()
}
