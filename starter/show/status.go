// Package show turns what is known of maintenances, the scheduler and the cluster into the command line's texts.
package show

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/terminal"
)

// Status shows all that is known of a maintenance.
func Status(w io.Writer, v client.View, now time.Time) {
	head := terminal.NewRows(w)
	head.Add("Node:", v.Node)
	head.Add("Requestor:", v.Requestor)
	renderStarter(head, v.Status)
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
		renderWork(w, v.Status.Work, now)
		renderValidation(w, v.Status.Validation, now)
	}
	renderTransitions(w, v, now)
	if v.Status != nil {
		renderStates(w, v.Status.States, now)
		Messages(w, v.Status.Messages, now)
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
	if windows := windowsText(m); windows != "" {
		head.Add("Windows:", windows)
	}
	renderApproval(head, v.Status, now)
}

// windowsText says which windows a maintenance keeps to, or why it keeps to none.
func windowsText(m spec.Maintenance) string {
	if m.IgnoreWindows != nil {
		return "ignored: " + m.IgnoreWindows.Reason
	}
	text := strings.Join(m.Windows, ", ")
	if m.ExpectedDuration > 0 {
		text = cmp.Or(text, "those of the limits") + ", for " + period.Age(m.ExpectedDuration.Std())
	}
	return text
}

func renderWhere(head terminal.Rows, v client.View, now time.Time) {
	switch {
	case !v.Running():
		ended := v.Ended()
		head.AddPainted(1, phaseStyle(v.Phase()), "Phase:", fmt.Sprintf("%s (ended %s, %s ago, after %s)", v.Phase(), terminal.Clock(ended, now), period.Age(now.Sub(ended)), period.Age(ended.Sub(v.Began()))))
		if text := v.Message(); text != "" {
			head.Add("Message:", terminal.Words(text, now))
		}
		return
	case v.Status == nil:
		head.Add("Phase:", fmt.Sprintf("unknown (started %s, %s ago)", terminal.Clock(v.Started, now), period.Age(now.Sub(v.Started))))
		return
	}
	s := v.Status
	head.AddPainted(1, phaseStyle(s.Phase), "Phase:", fmt.Sprintf("%s (since %s, %s ago)", s.Phase, terminal.Clock(s.Since, now), period.Age(now.Sub(s.Since))))
	if s.WaitingFor != "" {
		head.Add("Waiting for:", terminal.Words(s.WaitingFor, now))
	}
	if s.Failure != "" {
		head.Add("Failure:", terminal.Words(s.Failure, now))
	}
	if s.Attempt > 1 {
		head.Add("Attempts:", fmt.Sprint(s.Attempt))
	}
	if len(s.Requestors) > 1 {
		head.Add("Requestors:", requestorsText(s.Requestors, now))
	}
	if s.Lockstep != nil {
		head.Add("Plans:", plansText(*s.Lockstep))
	}
	head.Add("Slot:", slotText(s.Slot, now))
	renderDrain(head, s, now)
	if s.StartedAt != nil {
		head.Add("Work began:", terminal.Clock(*s.StartedAt, now))
	}
	if s.ReadyDeadline != nil && s.Phase == api.Ready {
		head.Add("Held until:", fmt.Sprintf("%s (%s left, then %s)", terminal.Clock(*s.ReadyDeadline, now), period.Age(s.ReadyDeadline.Sub(now)), afterReady(s.Spec)))
	}
}

// plansText says which plans share a maintenance, and how far they have its node drained.
func plansText(l api.LockstepStatus) string {
	targets := make([]string, len(l.Targets))
	for i, e := range l.Targets {
		targets[i] = strings.TrimSpace(fmt.Sprintf("%s up to priority %d %s", e.PodType, e.PodPriority, e.PodSelector))
	}
	text := cmp.Or(strings.Join(l.Plans, ", "), "none yet")
	switch {
	case len(targets) > 0:
		text += "; pods that leave: " + strings.Join(targets, ", ")
	case l.Revision > 0:
		text += "; no pods leave yet"
	}
	if l.Last {
		text += "; nothing more is drained"
	}
	return text
}

// afterReady is where a node comes that nobody declares done in time.
func afterReady(m spec.Maintenance) string {
	if m.OnReadyTimeout == spec.ReleaseOnTimeout {
		return "released"
	}
	return string(api.RequestorFailed)
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
		return "requested"
	default:
		return "granted " + terminal.Clock(*s.GrantedAt, now)
	}
}

func renderTransitions(w io.Writer, v client.View, now time.Time) {
	transitions := v.Transitions()
	if len(transitions) == 0 {
		return
	}
	terminal.Print(w, "\nPhases:\n")
	r := terminal.NewRows(w, "  PHASE", "AT", "FOR", "MESSAGE")
	for i, t := range transitions {
		if i > 0 && transitions[i-1].Phase == t.Phase {
			// Something happened while the phase stayed the same.
			r.Add("", terminal.Clock(t.At, now), "", terminal.Words(t.Message, now))
			continue
		}
		r.AddPainted(0, phaseStyle(t.Phase), "  "+string(t.Phase), terminal.Clock(t.At, now), lasted(transitions[i:], now), terminal.Words(t.Message, now))
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

// Messages shows what arrived, and what became of it; nothing where there was none.
func Messages(w io.Writer, messages []api.Received, now time.Time) {
	if len(messages) == 0 {
		return
	}
	terminal.Print(w, "\nMessages:\n")
	r := terminal.NewRows(w, "  AT", "MESSAGE", "BY", "EFFECT", "COMMENT")
	for _, m := range messages {
		r.Add("  "+terminal.Clock(m.At, now), m.Name, terminal.OneLine(m.Who()), terminal.Words(m.Effect, now), m.Comment)
	}
	r.Done()
}
