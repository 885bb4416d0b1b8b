package maintenance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/record"
)

// enter changes the phase and notes when.
func (m *maintenance) enter(phase api.Phase, message string) {
	now := workflow.Now(m.life)
	if len(m.status.Transitions) == 0 || m.status.Phase != phase {
		m.status.Phase, m.status.Since = phase, now
	}
	m.transition(api.Transition{Phase: phase, At: now, Message: message})
	m.status.WaitingFor = ""
	m.describe()
}

// waiting says in words what has to happen next.
func (m *maintenance) waiting(what string) {
	m.status.WaitingFor = what
	m.describe()
}

// note records something noteworthy that is neither a message nor a change of phase.
func (m *maintenance) note(what string) {
	m.transition(api.Transition{Phase: m.status.Phase, At: workflow.Now(m.life), Message: what})
	m.describe()
}

// maxTransitions bounds those in the status and in the result: a maintenance may be given back for months. The first
// ones say how it began.
const (
	maxTransitions  = 200
	keepTransitions = 20
)

func (m *maintenance) transition(t api.Transition) {
	before := len(m.status.Transitions)
	m.status.Transitions = bounded(m.status.Transitions, t)
	if len(m.status.Transitions) == before {
		m.status.TransitionsDropped++
	}
}

// bounded appends to a list that keeps its first entries and its latest.
func bounded[T any](list []T, next T) []T {
	list = append(list, next)
	if len(list) > maxTransitions {
		list = slices.Delete(list, keepTransitions, keepTransitions+1)
	}
	return list
}

// moment is a number that no earlier or later state of this maintenance has.
func (m *maintenance) moment() int { return len(m.status.Transitions) + m.status.TransitionsDropped }

// blocked takes what the drain says keeps the node from being empty.
func (m *maintenance) blocked(p api.DrainProgress) {
	if m.inPreflight {
		m.stoppedBy(p)
		return
	}
	if m.status.Phase == api.Validating {
		m.notValidated(p)
		return
	}
	if m.status.Phase != api.Draining && m.status.Phase != api.WaitingForPods {
		return
	}
	m.status.Drain = &p
	m.observeBlockers(api.BlockersOf(p))
	if len(p.Blockers) == 0 {
		m.waiting("")
		return
	}
	first := p.Blockers[0]
	text := fmt.Sprintf("pod %s: %s", first.Pod, first.Message)
	if more := len(p.Blockers) - 1 + p.MoreBlockers; more > 0 {
		text += fmt.Sprintf(" (and %d more pods)", more)
	}
	m.waiting(text)
}

// observeBlockers keeps account of what was in the way, and for how long.
func (m *maintenance) observeBlockers(now []record.Blocker) {
	var dropped int
	m.status.BlockersSeen, dropped = record.Observe(m.status.BlockersSeen, now, workflow.Now(m.life))
	m.status.MoreBlockersSeen += dropped
}

// describe shows the state in the Temporal UI.
func (m *maintenance) describe() {
	var text strings.Builder
	fmt.Fprintf(&text, "**%s** since %s", m.status.Phase, m.status.Since.UTC().Format("2006-01-02 15:04:05Z"))
	if m.status.WaitingFor != "" {
		fmt.Fprintf(&text, "\n\nwaiting for %s", m.status.WaitingFor)
	}
	if m.status.Failure != "" {
		fmt.Fprintf(&text, "\n\n%s", m.status.Failure)
	}
	if d := m.status.Drain; d != nil {
		fmt.Fprintf(&text, "\n\n%d of %d pods evicted, %d remaining", d.Evicted, d.Total, d.Remaining)
		for _, b := range d.Blockers {
			fmt.Fprintf(&text, "\n- `%s` %s: %s", b.Pod, b.Reason, b.Message)
		}
	}
	workflow.SetCurrentDetails(m.life, text.String())
}

// summary is one line about the maintenance, for lists and events.
func (m *maintenance) summary() string {
	text := fmt.Sprintf("maintenance of %s by %s", m.spec.Node, m.spec.Requestor)
	if m.spec.Reason != "" {
		text += ": " + m.spec.Reason
	}
	if m.spec.Ticket != "" {
		text += " [" + m.spec.Ticket + "]"
	}
	return text
}

// attribute sets search attributes where the namespace has them; each call is billed.
func (m *maintenance) attribute(updates ...temporal.SearchAttributeUpdate) {
	if !m.attributes {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(m.life, updates...); err != nil {
		workflow.GetLogger(m.life).Warn("search attributes not set", "error", err)
	}
}

// awaitUpTo waits for a condition, at most for a time; ok tells that the condition came true. The timer goes when the
// wait is over: one left behind would wake the workflow for nothing.
func (m *maintenance) awaitUpTo(ctx workflow.Context, limit time.Duration, summary string, condition func() bool) (ok bool, err error) {
	waiting, cancel := workflow.WithCancel(ctx)
	defer cancel()
	ok, err = workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: limit, TimerOptions: workflow.TimerOptions{Summary: summary},
	}, condition)
	if err != nil || ok {
		return ok, err
	}
	// A message that came before the time was over counts, also where no worker ran to read it. One that was handed to
	// the reader is not pending any more: the reader has its turn first.
	turns := 0
	if workflow.GetVersion(m.life, "reader-first", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		turns = 1
	}
	if err := workflow.Await(waiting, func() bool { turns++; return turns > 1 && !m.unread() }); err != nil {
		return false, err
	}
	return condition(), nil
}
