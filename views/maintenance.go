package views

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/rules/who"
)

// Maintenance is all that is known of a maintenance. A brief view leaves out what the workflow's history has.
func Maintenance(m api.Maintenance, r Reader) document.Document {
	var d document.Document
	if m.Node != "" {
		d.Title = fmt.Sprintf("Maintenance of %s by %s", m.Node, m.Requestor)
	}
	if !r.brief {
		d.Fact("Node", m.Node)
		d.Fact("Requestor", m.Requestor)
	}
	if s := m.Starter; s != nil {
		d.Fact("Started by", who.Started(s.Identity, s.Principal))
	}
	whyMaintained(&d, m, r)
	whereMaintained(&d, m, r)
	if !r.brief {
		d.Fact("Workflow", m.WorkflowID)
		d.Fact("Run", m.RunID)
	}
	if m.EndedAt == nil {
		d.Table(blockers(m.Drain, r))
		d.Table(stays(m.Drain, r))
		d.Table(rungsTaken(m.Escalation, r))
	}
	d.Table(work(m.Work, r))
	d.Table(validationOf(m.Validation, r))
	if !r.brief {
		d.Table(transitions(m.Transitions, r))
		if len(m.Tells) > 0 {
			d.Table(notified(m.States, r))
		}
	}
	d.Table(Messages(m.Messages, r))
	return d
}

func whyMaintained(d *document.Document, m api.Maintenance, r Reader) {
	d.Fact("Reason", r.said(m.Spec.Reason))
	d.Fact("Ticket", r.said(m.Spec.Ticket))
	d.Fact("Owner", r.said(m.Spec.Owner))
	if m.Spec.Type != spec.Planned {
		d.Fact("Type", m.Spec.Type)
	}
	if m.Spec.Priority != 0 {
		d.Fact("Priority", strconv.Itoa(m.Spec.Priority))
	}
	d.Fact("Windows", r.said(windowsText(m.Spec)))
	if a := m.Approval; a != nil {
		name := "Approved"
		if a.Denied {
			name = "Denied"
		}
		d.Fact(name, byAt(a, r))
	}
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

func byAt(a *api.ApprovalStatus, r Reader) string {
	return r.at(a.At) + " by " + a.Who() + colon(r.said(a.Comment))
}

func whereMaintained(d *document.Document, m api.Maintenance, r Reader) {
	d.PaintedFact("Phase", PhaseStyle(m.Phase), standing(string(m.Phase), m.Since, m.Execution, r))
	if m.EndedAt != nil {
		d.Fact("Message", r.words(m.Message))
		return
	}
	if !m.IsAnswered() {
		return
	}
	d.Fact("Waiting for", r.words(waitingFor(m)))
	if !r.brief {
		d.Fact("Next", strings.Join(Next(m, r.now, r.requestor), " | "))
	}
	d.Fact("Failure", r.words(m.Failure))
	if m.Attempt > 1 {
		d.Fact("Attempts", strconv.Itoa(m.Attempt))
	}
	if len(m.Requestors) > 1 {
		d.Fact("Requestors", requestorsText(m.Requestors, r))
	}
	if m.Lockstep != nil {
		d.Fact("Plans", r.said(plansText(*m.Lockstep)))
	}
	d.Fact("Slot", slotText(m.Slot, r))
	drainFacts(d, &m.Status, r)
	if m.StartedAt != nil {
		d.Fact("Work began", r.at(*m.StartedAt))
	}
	if until := m.ReadyDeadline; until != nil && m.Phase == api.Ready {
		d.Fact("Held until", untilThen(*until, afterReady(m.Spec), r))
	}
	if v := m.Validation; m.Phase == api.Validating && m.Since != nil && v != nil && v.State == validation.Waiting && m.Spec.Validation != nil {
		d.Fact("Validated until", untilThen(m.Since.Add(m.Spec.Validation.Deadline.Std()), "it waits for a decision", r))
	}
}

// untilThen is a deadline, with how long it is until then, and what follows it.
func untilThen(deadline time.Time, then string, r Reader) string {
	left := ""
	if !r.brief {
		left = period.Age(deadline.Sub(r.now)) + " left, "
	}
	return fmt.Sprintf("%s (%sthen %s)", r.at(deadline), left, then)
}

// waitingFor is what a maintenance waits for. The table of blockers says of each why it is in the way.
func waitingFor(m api.Maintenance) string {
	if m.Drain == nil || len(m.Drain.Blockers) == 0 {
		return m.WaitingFor
	}
	first := m.Drain.Blockers[0]
	pod := "pod " + first.Pod
	if message := pod + ": " + first.Message; first.Message == "" || !strings.HasPrefix(m.WaitingFor, message) {
		return m.WaitingFor
	}
	return pod + strings.TrimPrefix(m.WaitingFor, pod+": "+first.Message)
}

// standing is the phase of something with since when that is, or when its end was.
func standing(phase string, since *time.Time, e api.Execution, r Reader) string {
	switch {
	case e.EndedAt != nil:
		return fmt.Sprintf("%s (ended %s, after %s)", phase, r.ago(*e.EndedAt), period.Age(e.EndedAt.Sub(e.CreatedAt)))
	case phase == "" || since == nil:
		return fmt.Sprintf("unknown (started %s)", r.ago(e.CreatedAt))
	default:
		return fmt.Sprintf("%s (since %s)", phase, r.ago(*since))
	}
}

// plansText says which plans share a maintenance, and how far they have its node drained.
func plansText(l api.LockstepStatus) string {
	targets := make([]string, len(l.Targets))
	for i, e := range l.Targets {
		targets[i] = strings.TrimSpace(fmt.Sprintf("%s%s %s", e.PodType, e.UpTo(), e.PodSelector))
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

func requestorsText(requestors []api.RequestorStatus, r Reader) string {
	texts := make([]string, len(requestors))
	for i, one := range requestors {
		texts[i] = one.Name
		if one.DoneAt != nil {
			texts[i] += fmt.Sprintf(" (done %s)", r.at(*one.DoneAt))
		}
	}
	return strings.Join(texts, ", ")
}

func slotText(s *api.SlotStatus, r Reader) string {
	switch {
	case s == nil:
		return "none"
	case s.GrantedAt == nil:
		return "requested"
	default:
		return "granted " + r.at(*s.GrantedAt)
	}
}

// work lists what the worker did on the node, and does: in a brief view the latest.
func work(runs []api.WorkRun, r Reader) document.Table {
	t := document.Table{Title: "Work", Header: []string{"work", "attempt", "since", "for", "outcome", "output"}}
	for _, one := range runs {
		lasted := ""
		if one.EndedAt != nil {
			lasted = period.Age(one.EndedAt.Sub(one.StartedAt))
		} else if !r.brief {
			lasted = period.Age(r.now.Sub(one.StartedAt))
		}
		t.Add(one.Name, strconv.Itoa(one.Attempt), r.at(one.StartedAt), lasted, r.said(r.words(one.State())), r.said(one.Output))
	}
	if r.brief {
		t.Rows = t.Rows[max(0, len(t.Rows)-1):]
	}
	return t
}

// validationOf lists what a validation looks at.
func validationOf(v *api.ValidationStatus, r Reader) document.Table {
	if v == nil {
		return document.Table{}
	}
	t := document.Table{Title: fmt.Sprintf("Validation (%s)", v.State), Header: []string{"check", "ok", "found"}}
	results, more := first(r, v.Results)
	for _, result := range results {
		t.Add(result.Name, yesNo(result.OK), r.said(r.words(result.Message)))
	}
	t.More = document.AndMore(more)
	return t
}

func transitions(all []api.Transition, r Reader) document.Table {
	table := document.Table{Title: "Phases", Header: []string{"phase", "at", "for", "message"}}
	for i, t := range all {
		if i > 0 && all[i-1].Phase == t.Phase {
			// Something happened while the phase stayed the same. What happened again and again is one row.
			times, last, before := again(all, i)
			switch {
			case before:
			case times > 1:
				table.Add("", r.at(t.At), "", fmt.Sprintf("%s (%d times, last at %s)", r.words(t.Message), times, r.at(last)))
			default:
				table.Add("", r.at(t.At), "", r.words(t.Message))
			}
			continue
		}
		table.AddPainted(0, PhaseStyle(t.Phase), string(t.Phase), r.at(t.At), lasted(all[i:], r.now), r.words(t.Message))
	}
	return table
}

// again counts what happened at a place of the transitions, in the same stay in the phase, from there on; before: it happened earlier in
// the stay too.
func again(all []api.Transition, at int) (times int, last time.Time, before bool) {
	for i := at - 1; i > 0 && all[i].Phase == all[i-1].Phase && all[i].Phase == all[at].Phase; i-- {
		before = before || all[i].Message == all[at].Message
	}
	for _, t := range all[at:] {
		if t.Phase != all[at].Phase {
			break
		}
		if t.Message == all[at].Message {
			times, last = times+1, t.At
		}
	}
	return times, last, before
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

// notified lists the states of which channels were notified.
func notified(states []api.LifecycleState, r Reader) document.Table {
	t := document.Table{Title: "Notified states", Header: []string{"at", "state", "message"}}
	for _, s := range states {
		t.Add(r.at(s.At), string(s.State), r.words(s.Message))
	}
	return t
}

// Messages are those that arrived, and what became of them.
func Messages(all []api.Received, r Reader) document.Table {
	t := document.Table{Title: "Messages", Header: []string{"at", "message", "by", "effect", "comment"}}
	if r.brief {
		t.Title = "Messages, the latest first"
	}
	for _, m := range last(r, all) {
		t.Add(r.at(m.At), m.Name, m.Who(), r.said(r.words(m.Effect)), r.said(m.Comment))
	}
	return t
}
