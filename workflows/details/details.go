// Package details renders what the Temporal UI shows of a workflow, as Markdown.
package details

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/who"
)

const (
	// messages bounds the messages that are shown, said the bytes of a text that somebody wrote.
	messages = 5
	said     = 200
)

// Of renders a maintenance: what it is about, its phase, what it waits for and until when, its people and their messages.
func Of(s api.Status) string {
	var d document
	d.about(s)
	d.where(s)
	d.people(s)
	d.work(s)
	d.drain(s)
	d.said(s.Messages)
	return strings.Join(d.paragraphs, "\n\n")
}

type document struct{ paragraphs []string }

func (d *document) add(format string, args ...any) {
	d.paragraphs = append(d.paragraphs, fmt.Sprintf(format, args...))
}

// about repeats the summary: a maintenance that was started in the UI has none.
func (d *document) about(s api.Status) {
	if s.Spec.Node == "" {
		return
	}
	text := fmt.Sprintf("Maintenance of **%s** by %s", markdown.Text(s.Spec.Node), markdown.Text(s.Spec.Requestor))
	if s.Spec.Reason != "" {
		text += ": " + quoted(s.Spec.Reason)
	}
	if s.Spec.Ticket != "" {
		text += " (" + quoted(s.Spec.Ticket) + ")"
	}
	d.add("%s", text)
}

func (d *document) where(s api.Status) {
	d.add("**%s** since %s", s.Phase, moment(s.Since))
	if s.WaitingFor != "" {
		d.add("waiting for %s", markdown.Text(s.WaitingFor))
	}
	switch {
	case s.ReadyDeadline != nil && s.Phase == api.Ready:
		then := "released"
		if s.Spec.OnReadyTimeout == spec.FailOnTimeout {
			then = string(api.RequestorFailed)
		}
		d.add("held until %s, then %s", moment(*s.ReadyDeadline), then)
	case s.NextAttemptAt != nil:
		d.add("next attempt at %s", moment(*s.NextAttemptAt))
	}
	if s.Failure != "" {
		d.add("%s", markdown.Text(s.Failure))
	}
}

func (d *document) people(s api.Status) {
	var lines []string
	if s.Starter != nil {
		lines = append(lines, "- started by "+markdown.Text(who.Started(s.Starter.Identity, s.Starter.Principal)))
	}
	if a := s.Approval; a != nil {
		lines = append(lines, fmt.Sprintf("- %s by %s at %s%s", a.Verb(), markdown.Text(a.Who()), moment(a.At), colon(a.Comment)))
	}
	for _, r := range s.Requestors {
		if r.DoneAt != nil {
			lines = append(lines, fmt.Sprintf("- %s done at %s", markdown.Text(r.Name), moment(*r.DoneAt)))
		}
	}
	d.list(lines)
}

// work renders the latest attempt at the work.
func (d *document) work(s api.Status) {
	if len(s.Work) == 0 {
		return
	}
	one := s.Work[len(s.Work)-1]
	d.add("work %s since %s: %s%s", markdown.Text(one.Name), moment(one.StartedAt), quoted(one.State()), colon(one.Output))
}

func (d *document) drain(s api.Status) {
	p := s.Drain
	if p == nil {
		return
	}
	text := fmt.Sprintf("%d of %d pods evicted", p.Evicted, p.Total)
	if p.Deleted > 0 {
		text += fmt.Sprintf(", %d deleted", p.Deleted)
	}
	d.add("%s, %d remaining", text, p.Remaining)
	var lines []string
	for _, b := range p.Blockers {
		lines = append(lines, fmt.Sprintf("- %s %s: %s", markdown.Text(b.Pod), markdown.Text(b.Reason), markdown.Text(b.Message)))
	}
	d.list(lines)
}

// said renders the latest messages.
func (d *document) said(all []api.Received) {
	var lines []string
	for _, m := range slices.Backward(all) {
		if len(lines) == messages {
			break
		}
		lines = append(lines, fmt.Sprintf("- %s `%s` by %s%s (%s)", moment(m.At), strings.ReplaceAll(m.Name, "`", ""),
			markdown.Text(m.Who()), colon(m.Comment), quoted(m.Effect)))
	}
	if len(lines) > 0 {
		d.add("Messages, the latest first:")
	}
	d.list(lines)
}

func (d *document) list(lines []string) {
	if len(lines) > 0 {
		d.add("%s", strings.Join(lines, "\n"))
	}
}

func quoted(text string) string { return markdown.Text(bounds.Cut(text, said)) }

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + quoted(text)
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
