package record

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/who"
)

// List lists maintenances, with times in the zone of now.
func List(records []Record, now time.Time) document.Document {
	when := clock(now)
	t := document.Table{Header: []string{"started", "took", "phase", "requestor", "attempts", "why", "message"}}
	for _, r := range records {
		t.Add(when(r.CreatedAt), period.Age(Total(r)), phaseOf(r), r.Requestor, count(r.Attempts), why(r), moment.InText(message(r), when))
	}
	var d document.Document
	d.Table(t)
	return d
}

// View is all that is known of a maintenance, with times in the zone of now.
func View(r Record, now time.Time) document.Document { return describe(r, clock(now)) }

// Markdown is all that is known of a maintenance, for a ticket, with dates and times in the zone of now. All text of
// the record is escaped, so that none of it is rendered as Markdown or HTML.
func Markdown(r Record, now time.Time) string { return document.Markdown(describe(r, dated(now))) }

func describe(r Record, when func(time.Time) string) document.Document {
	d := document.Document{Title: fmt.Sprintf("Maintenance of %s by %s", r.Subject(), r.Requestor)}
	if r.Remediation != nil {
		d.Title = fmt.Sprintf("Remediation of %s by health check %s", r.Node, r.Remediation.Check)
	}
	if r.Plan == nil {
		d.Fact("Node", joined(", UID ", r.Node, r.NodeUID))
	} else {
		d.Fact("Plan", r.Plan.Name)
		d.Fact("Nodes", r.Plan.text())
		d.Fact("Pods", r.Plan.Moves.String())
	}
	if r.Remediation != nil {
		d.Fact("Health check", r.Remediation.Check)
		d.Fact("Ill", joined(", since ", r.Remediation.Why, when(r.Remediation.Since)))
	}
	d.Fact("Cluster", r.Cluster)
	d.Fact("Requestor", strings.Join(append([]string{r.Requestor}, r.AdditionalRequestors...), ", "))
	if r.Starter != nil {
		d.Fact("Started by", who.Started(r.Starter.Identity, r.Starter.Principal))
	}
	d.Fact("Owner", r.Owner)
	d.Fact("Reason", r.Reason)
	d.Fact("Ticket", r.Ticket)
	d.Fact("Type", r.Type)
	d.Fact("Phase", phaseText(r, when))
	d.Fact("Failure", r.Failure)
	if r.Attempts > 1 {
		d.Fact("Attempts", count(r.Attempts))
	}
	d.Fact("Approval", approvalText(r.Approval, when))
	d.Fact("Slot", slotText(r.Slot, when))
	d.Fact("Drain", drainText(r.Drain))
	d.Fact("Workflow", r.WorkflowID)
	d.Fact("Run", r.RunID)
	if r.Provenance != nil {
		d.Fact("Claimed", strings.Join(r.Provenance.Claimed, "; "))
	}
	d.Table(planTable(r.Plan, when))
	d.Table(remediationTable(r.Remediation, when))
	d.Table(phaseTable(r, when))
	for _, t := range drainTables(r, when) {
		d.Table(t)
	}
	for _, t := range eventTables(r, when) {
		d.Table(t)
	}
	return d
}

func phaseText(r Record, when func(time.Time) string) string {
	switch {
	case r.Ended():
		return fmt.Sprintf("%s (%s to %s, %s)", phaseOf(r), when(r.CreatedAt), when(r.EndedAt), period.Age(Total(r)))
	case r.AsOf.IsZero():
		return fmt.Sprintf("%s (since %s, not ended)", phaseOf(r), when(r.CreatedAt))
	default:
		return fmt.Sprintf("%s (since %s, not ended at %s)", phaseOf(r), when(r.CreatedAt), when(r.AsOf))
	}
}

// phaseOf is never empty: of a maintenance that no worker speaks for the phase is not known.
func phaseOf(r Record) string { return cmp.Or(r.Phase, "unknown") }

func approvalText(a *Approval, when func(time.Time) string) string {
	if a == nil {
		return ""
	}
	text := "approved"
	if a.Denied {
		text = "denied"
	}
	text += " by " + who.Sent(a.By, a.Identity, a.Principal)
	return joined(": ", text+" at "+when(a.At), a.Comment)
}

func slotText(s *Slot, when func(time.Time) string) string {
	if s == nil {
		return ""
	}
	var asked, granted string
	if !s.RequestedAt.IsZero() {
		asked = "asked for at " + when(s.RequestedAt)
	}
	if granted = "not granted"; !s.GrantedAt.IsZero() {
		granted = "granted at " + when(s.GrantedAt)
	}
	return joined(", ", asked, granted)
}

func drainText(d *Drain) string {
	if d == nil {
		return ""
	}
	text := fmt.Sprintf("%d of %s evicted", d.Evicted, number.Of(d.Total, "pod"))
	if d.Deleted > 0 {
		text += fmt.Sprintf(", %d deleted", d.Deleted)
	}
	if len(d.SkippedPods) > 0 {
		text += "; left on the node on request: " + strings.Join(d.SkippedPods, ", ")
	}
	return text
}

// phaseTable has a line for each stay, and one for whatever was noteworthy in it.
func phaseTable(r Record, when func(time.Time) string) document.Table {
	t := document.Table{Title: "Phases", Header: []string{"phase", "at", "for", "message"}}
	if r.MorePhases > 0 {
		t.More = fmt.Sprintf("%d more were left out in between", r.MorePhases)
	}
	stays := Durations(r)
	for i, p := range r.Phases {
		if i > 0 && r.Phases[i-1].Phase == p.Phase {
			t.Add("", when(p.At), "", moment.InText(p.Message, when))
			continue
		}
		lasted := period.Age(stays[0].Lasts)
		if len(stays) == 1 && r.Ended() && len(r.Phases) > 1 {
			lasted = "" // the end lasts for ever
		}
		stays = stays[1:]
		t.Add(p.Phase, when(p.At), lasted, moment.InText(p.Message, when))
	}
	return t
}

func drainTables(r Record, when func(time.Time) string) []document.Table {
	blockers := document.Table{Title: "In the way", Header: []string{"pod", "owner", "reason", "since", "for", "message"}, More: document.AndMore(r.MoreBlockers)}
	for _, b := range r.Blockers {
		blockers.Add(b.Pod, b.Owner, b.Reason, when(b.Since), period.Age(Blocked(r, b)), moment.InText(b.Message, when))
	}
	escalations := document.Table{Title: "Escalation", Header: []string{"at", "taken", "by", "why"}}
	for _, e := range r.Escalations {
		escalations.Add(when(e.At), e.Do, e.By, e.Why)
	}
	pods := document.Table{Title: "Pods that left", Header: []string{"at", "pod", "how"}}
	if r.Drain != nil {
		pods.More = document.AndMore(r.Drain.MorePods)
		for _, p := range r.Drain.Pods {
			pods.Add(when(p.At), p.Pod, p.How)
		}
	}
	return []document.Table{blockers, escalations, pods}
}

func eventTables(r Record, when func(time.Time) string) []document.Table {
	messages := document.Table{Title: "Messages", Header: []string{"at", "message", "by", "effect", "comment"}}
	for _, m := range r.Messages {
		messages.Add(when(m.At), m.Name, who.Sent(m.By, m.Identity, ""), moment.InText(m.Effect, when), m.Comment)
	}
	hooks := document.Table{Title: "Hooks", Header: []string{"at", "hook", "when", "outcome", "by"}}
	for _, h := range r.Hooks {
		hooks.Add(when(h.At), h.Name, h.When, h.Outcome, h.By)
	}
	work := document.Table{Title: "Work", Header: []string{"at", "for", "work", "attempt", "outcome", "output"}}
	for _, w := range r.Work {
		lasted := ""
		if !w.EndedAt.IsZero() {
			lasted = period.Age(w.EndedAt.Sub(w.At))
		}
		work.Add(when(w.At), lasted, w.Name, count(w.Attempt), cmp.Or(moment.InText(w.Outcome, when), "runs"), w.Output)
	}
	checks := document.Table{Title: "Validation", Header: []string{"at", "check", "good", "message"}}
	for _, c := range r.Validation {
		good := "no"
		if c.OK {
			good = "yes"
		}
		checks.Add(when(c.At), c.Name, good, moment.InText(c.Message, when))
	}
	states := document.Table{Title: "Notified states", Header: []string{"at", "state", "message"}}
	for _, s := range r.States {
		states.Add(when(s.At), s.State, moment.InText(s.Message, when))
	}
	notifications := document.Table{Title: "Notifications", Header: []string{"at", "channel", "event", "outcome"}}
	for _, n := range r.Notifications {
		notifications.Add(when(n.At), n.Channel, n.Event, n.Outcome)
	}
	return []document.Table{messages, hooks, work, checks, states, notifications}
}

func why(r Record) string {
	if r.Ticket == "" {
		return r.Reason
	}
	return joined(" ", r.Reason, "["+r.Ticket+"]")
}

// message is what the end has to say for itself, or else the last change of phase.
func message(r Record) string {
	if r.Failure != "" || len(r.Phases) == 0 {
		return r.Failure
	}
	return r.Phases[len(r.Phases)-1].Message
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// joined joins the parts that are not empty.
func joined(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), separator)
}

// clock writes moments of the day of now without their date.
func clock(now time.Time) func(time.Time) string {
	return func(t time.Time) string { return moment.Clock(t, now) }
}

// dated writes moments for readers who are elsewhere, and read them later.
func dated(now time.Time) func(time.Time) string {
	return func(t time.Time) string { return moment.Dated(t, now) }
}
