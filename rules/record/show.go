package record

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/who"
)

// Table lists maintenances, with times in the zone of now.
func Table(records []Record, now time.Time, align Align) string {
	when := clock(now)
	t := table{header: []string{"started", "took", "phase", "requestor", "attempts", "why", "message"}}
	for _, r := range records {
		t.rows = append(t.rows, []string{
			when(r.CreatedAt), period.Age(Total(r)), phaseOf(r), r.Requestor, count(r.Attempts), why(r), moment.InText(message(r), when),
		})
	}
	var d document
	d.table(t)
	return d.text(align)
}

// Text is all that is known of a maintenance, for a terminal, with times in the zone of now.
func Text(r Record, now time.Time, align Align) string { return describe(r, clock(now)).text(align) }

// Markdown is all that is known of a maintenance, for a ticket, with dates and times in the zone of now. All text of
// the record is escaped, so that none of it is rendered as Markdown or HTML.
func Markdown(r Record, now time.Time) string { return describe(r, dated(now)).markdown() }

func describe(r Record, when func(time.Time) string) document {
	d := document{title: fmt.Sprintf("Maintenance of %s by %s", r.Subject(), r.Requestor)}
	if r.Remediation != nil {
		d.title = fmt.Sprintf("Remediation of %s by health check %s", r.Node, r.Remediation.Check)
	}
	if r.Plan == nil {
		d.facts = append(d.facts, fact{"Node", joined(", UID ", r.Node, r.NodeUID)})
	} else {
		d.fact("Plan", r.Plan.Name)
		d.fact("Nodes", r.Plan.text())
	}
	if r.Remediation != nil {
		d.fact("Health check", r.Remediation.Check)
		d.fact("Ill", joined(", since ", r.Remediation.Why, when(r.Remediation.Since)))
	}
	d.fact("Cluster", r.Cluster)
	d.fact("Requestor", strings.Join(append([]string{r.Requestor}, r.AdditionalRequestors...), ", "))
	if r.Starter != nil {
		d.fact("Started by", who.Started(r.Starter.Identity, r.Starter.Principal))
	}
	d.fact("Owner", r.Owner)
	d.fact("Reason", r.Reason)
	d.fact("Ticket", r.Ticket)
	d.fact("Type", r.Type)
	d.fact("Phase", phaseText(r, when))
	d.fact("Failure", r.Failure)
	if r.Attempts > 1 {
		d.fact("Attempts", count(r.Attempts))
	}
	d.fact("Approval", approvalText(r.Approval, when))
	d.fact("Slot", slotText(r.Slot, when))
	d.fact("Drain", drainText(r.Drain))
	d.fact("Workflow", r.WorkflowID)
	d.fact("Run", r.RunID)
	if r.Provenance != nil {
		d.fact("Claimed", strings.Join(r.Provenance.Claimed, "; "))
	}
	d.table(planTable(r.Plan, when))
	d.table(remediationTable(r.Remediation, when))
	d.table(phaseTable(r, when))
	for _, t := range drainTables(r, when) {
		d.table(t)
	}
	for _, t := range eventTables(r, when) {
		d.table(t)
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
func phaseTable(r Record, when func(time.Time) string) table {
	t := table{title: "Phases", header: []string{"phase", "at", "for", "message"}}
	if r.MorePhases > 0 {
		t.more = fmt.Sprintf("%d more were left out in between", r.MorePhases)
	}
	stays := Durations(r)
	for i, p := range r.Phases {
		if i > 0 && r.Phases[i-1].Phase == p.Phase {
			t.rows = append(t.rows, []string{"", when(p.At), "", moment.InText(p.Message, when)})
			continue
		}
		lasted := period.Age(stays[0].Lasts)
		if len(stays) == 1 && r.Ended() && len(r.Phases) > 1 {
			lasted = "" // the end lasts for ever
		}
		stays = stays[1:]
		t.rows = append(t.rows, []string{p.Phase, when(p.At), lasted, moment.InText(p.Message, when)})
	}
	return t
}

func drainTables(r Record, when func(time.Time) string) []table {
	blockers := table{title: "In the way", header: []string{"pod", "owner", "reason", "since", "for", "message"}, more: more(r.MoreBlockers)}
	for _, b := range r.Blockers {
		blockers.rows = append(blockers.rows, []string{b.Pod, b.Owner, b.Reason, when(b.Since), period.Age(Blocked(r, b)), moment.InText(b.Message, when)})
	}
	escalations := table{title: "Escalation", header: []string{"at", "taken", "by", "why"}}
	for _, e := range r.Escalations {
		escalations.rows = append(escalations.rows, []string{when(e.At), e.Do, e.By, e.Why})
	}
	pods := table{title: "Pods that left", header: []string{"at", "pod", "how"}}
	if r.Drain != nil {
		pods.more = more(r.Drain.MorePods)
		for _, p := range r.Drain.Pods {
			pods.rows = append(pods.rows, []string{when(p.At), p.Pod, p.How})
		}
	}
	return []table{blockers, escalations, pods}
}

func eventTables(r Record, when func(time.Time) string) []table {
	messages := table{title: "Messages", header: []string{"at", "message", "by", "effect", "comment"}}
	for _, m := range r.Messages {
		messages.rows = append(messages.rows, []string{when(m.At), m.Name, who.Sent(m.By, m.Identity, ""), moment.InText(m.Effect, when), m.Comment})
	}
	hooks := table{title: "Hooks", header: []string{"at", "hook", "when", "outcome", "by"}}
	for _, h := range r.Hooks {
		hooks.rows = append(hooks.rows, []string{when(h.At), h.Name, h.When, h.Outcome, h.By})
	}
	work := table{title: "Work", header: []string{"at", "for", "work", "attempt", "outcome", "output"}}
	for _, w := range r.Work {
		lasted := ""
		if !w.EndedAt.IsZero() {
			lasted = period.Age(w.EndedAt.Sub(w.At))
		}
		work.rows = append(work.rows, []string{when(w.At), lasted, w.Name, count(w.Attempt), cmp.Or(moment.InText(w.Outcome, when), "runs"), w.Output})
	}
	checks := table{title: "Validation", header: []string{"at", "check", "good", "message"}}
	for _, c := range r.Validation {
		good := "no"
		if c.OK {
			good = "yes"
		}
		checks.rows = append(checks.rows, []string{when(c.At), c.Name, good, moment.InText(c.Message, when)})
	}
	states := table{title: "Notified states", header: []string{"at", "state", "message"}}
	for _, s := range r.States {
		states.rows = append(states.rows, []string{when(s.At), s.State, moment.InText(s.Message, when)})
	}
	notifications := table{title: "Notifications", header: []string{"at", "channel", "event", "outcome"}}
	for _, n := range r.Notifications {
		notifications.rows = append(notifications.rows, []string{when(n.At), n.Channel, n.Event, n.Outcome})
	}
	return []table{messages, hooks, work, checks, states, notifications}
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

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("and %d more", n)
}
