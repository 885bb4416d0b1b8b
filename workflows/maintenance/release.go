package maintenance

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/rules/notices"
	"drydock/workflows/call"
)

const (
	// backoffFirst and backoffLast bound the pause after a node was given back.
	backoffFirst = 5 * time.Minute
	backoffLast  = time.Hour
)

// giveBack releases the node and its slot, and waits before the next attempt, so that one bad budget never stops a
// fleet.
func (m *maintenance) giveBack() error {
	attempt, backoff := m.journal.status().Attempt, backoffFirst
	for range attempt - 1 {
		backoff = min(2*backoff, backoffLast)
	}
	reason := fmt.Sprintf("the node could not be emptied in time (attempt %d) and is given back; next attempt in %s", attempt, backoff)
	// From here on there is no drain that a message could be about.
	m.journal.enter(api.Pending, reason)
	if err := m.freeze.proceed(); err != nil {
		return err
	}
	m.releaseNode(nodeevent.Event{Reason: "GivenBack", Message: reason, Warning: true})
	m.hooks.cleanUp(false)
	m.journal.tell(notices.MaintenanceScheduled, reason)
	m.announcer.showConditions()
	m.drainer.endAttempt()
	return m.backOff(backoff)
}

// backOff waits before the next attempt, unless somebody wants it now.
func (m *maintenance) backOff(pause time.Duration) error {
	next := m.clock.now().Add(pause)
	m.drainer.retryNow = false
	m.journal.change(func(s *api.Status) { s.NextAttemptAt = &next })
	m.journal.waiting("the next attempt at " + instant(next))
	_, err := m.clock.awaitUpTo(m.stop.steps, pause, "back off before the next attempt", func() bool { return m.drainer.retryNow })
	m.journal.change(func(s *api.Status) { s.NextAttemptAt = nil })
	if err != nil {
		return m.stop.interrupted()
	}
	return nil
}

// beforeRelease calls the last hooks. The node stays out of service where one of them fails, until somebody decides.
func (m *maintenance) beforeRelease() error {
	names := m.spec.Hooks.BeforeRelease
	if len(names) == 0 {
		return nil
	}
	if m.journal.phase() != api.Validating {
		// From here on the requestor has no say any more.
		m.journal.enter(api.Validating, "the hooks before the release")
		m.announcer.showPhase()
	}
	for {
		err := m.hooks.callAll(hookBeforeRelease, names)
		if over := m.stop.decided(); over != nil || err == nil {
			return over
		}
		again, err := m.validator.incomplete(fmt.Sprintf("before the release: %v", err))
		if err != nil || !again {
			return err
		}
	}
}

// bringBack undoes what was done, whatever the end, and enters the end. It runs on a context that no cancellation
// reaches, and repeats until it has succeeded or the node is gone.
func (m *maintenance) bringBack(err error) {
	end := endingOf(err)
	m.stop.end()
	m.journal.change(func(s *api.Status) { s.ReadyDeadline, s.Failure = nil, end.message })
	m.journal.tellEnd(end)
	if m.hold.touched || m.slot.isAsked() {
		end = m.undo(end)
	}
	m.announcer.hideConditions()
	m.hooks.cleanUp(end.phase == api.Completed)
	m.journal.waiting("")
	m.journal.enter(end.phase, end.message)
	m.journal.tellEnded(end)
}

// undo gives the node and the slot back. A node that is gone by then ends a completed maintenance otherwise.
func (m *maintenance) undo(end ending) ending {
	m.journal.enter(api.Releasing, end.message)
	m.freeze.awaitThaw()
	message := m.summary() + ": " + string(end.phase)
	if end.message != "" {
		message += ": " + end.message
	}
	gone := m.releaseNode(nodeevent.Event{
		Reason: "Maintenance" + string(end.phase), Message: message, Warning: end.phase == api.Failed,
	})
	m.slot.withdraw()
	if gone && end.phase == api.Completed {
		end = ending{phase: api.NodeGone, message: "the node was gone when the requestor was done"}
		m.journal.change(func(s *api.Status) { s.Failure = end.message })
	}
	return end
}

// releaseNode takes the mark off the node and then gives the slot back.
func (m *maintenance) releaseNode(event nodeevent.Event) (gone bool) {
	if !m.hold.touched {
		return false
	}
	gone = m.hold.release(event, m.slot.releaseSignal())
	m.slot.released()
	return gone
}

// keepRecord has the audit record kept by a workflow of its own, which reads here what happened: however long a sink is
// away, the node's next maintenance may begin.
func (m *maintenance) keepRecord() {
	if !m.prepared.Audited {
		return
	}
	id := api.AuditRecordID(m.cluster, m.spec.Node, m.spec.Requestor, m.runID)
	child := successor{kind: api.AuditRecordType, summary: "keeps the audit record of the " + m.summary(), input: m.reference()}
	if _, err := m.outbox.start(m.clock.life, id, child); err != nil {
		m.outbox.noteOccupied("the audit record is not kept: " + call.Cause(err))
	}
}
