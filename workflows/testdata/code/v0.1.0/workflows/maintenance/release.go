package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/nodeevent"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"fmt"
	"time"
)

const (
	// backoffFirst and backoffLast bound the pause after a node was given back.
	backoffFirst = 5 * time.Minute
	backoffLast  = time.Hour
)

// releaser gives the node and the slot back: at the end, and where a maintenance begins again with the slot.
type releaser struct{ *maintenance }

// restart gives a node back whose maintenance begins again with the slot.
func (m releaser) restart() error {
	var err error
	switch {
	case errors.Is(m.restarting, errGivenBack):
		err = m.giveBack()
	case errors.Is(m.restarting, errSlotLost):
		err = m.loseSlot()
	default:
		return nil // it begins, and not again
	}
	if err == nil {
		m.restarting = nil
	}
	return err
}

// giveBack releases the node and its slot, and says when the next attempt begins, so that one bad budget never stops a
// fleet.
func (m releaser) giveBack() error {
	attempt, pause := m.journal.status().Attempt, backoffFirst
	for range min(attempt-1, 10) {
		pause = min(2*pause, backoffLast)
	}
	reason := fmt.Sprintf("the node could not be emptied in time (attempt %d) and is given back; next attempt in %s", attempt, pause)
	// From here on there is no drain that a message could be about.
	m.journal.enter(api.Pending, reason)
	if err := m.freeze.proceed(); err != nil {
		return err
	}
	if _, err := m.releaseNode(nodeevent.Event{Reason: "GivenBack", Message: reason, Warning: true}); err != nil {
		return err
	}
	m.hooks.cleanUp(false)
	m.journal.tell(notices.MaintenanceScheduled, reason)
	m.announcer.showConditions()
	m.drainer.endAttempt()
	m.drainer.retryNow = false
	next := m.clock.now().Add(pause)
	m.journal.change(func(s *api.Status) { s.NextAttemptAt = &next })
	return nil
}

// loseSlot is what follows when the scheduler knows of no slot that the maintenance holds: the node may be another's by
// now, and what was done to it does not count.
func (m releaser) loseSlot() error {
	m.stop.startOver()
	m.journal.enter(api.Pending, "the scheduler knows of no slot that this maintenance holds; it asks anew")
	if _, err := m.releaseNode(nodeevent.Event{
		Reason: "SlotLost", Warning: true, Message: m.summary() + ": the slot is not its own; it asks anew",
	}); err != nil {
		return err
	}
	m.slot.released()
	m.hooks.cleanUp(false)
	m.drainer.endAttempt()
	m.validator.Undecided = ""
	m.journal.change(func(s *api.Status) { s.ReadyDeadline, s.Validation, s.Failure = nil, nil, "" })
	return m.stop.decided()
}

// backOff waits before the next attempt, unless somebody wants it now.
func (m releaser) backOff() error {
	next := m.journal.status().NextAttemptAt
	if next == nil {
		return nil
	}
	m.journal.waiting("the next attempt at " + instant(*next))
	woken, err := m.stop.awaitUpTo(next.Sub(m.clock.now()), "back off before the next attempt", func() bool {
		return m.drainer.retryNow || m.leave.due()
	})
	if err == nil && woken && !m.drainer.retryNow {
		return errContinue
	}
	m.journal.change(func(s *api.Status) { s.NextAttemptAt = nil })
	return err
}

// beforeRelease calls the last hooks. The node stays out of service where one of them fails, until somebody decides.
func (m releaser) beforeRelease() error {
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
		why := m.validator.Undecided // by a run before this one
		if why == "" {
			err := m.hooks.callAll(hookBeforeRelease, names)
			if over := m.stop.decided(); over != nil || err == nil {
				return over
			}
			why = fmt.Sprintf("before the release: %v", err)
		}
		again, err := m.validator.incomplete(why)
		if err != nil || !again {
			return err
		}
	}
}

// beginEnd says how the maintenance ends, before anything is undone.
func (m releaser) beginEnd(end ending) {
	m.end = &end
	m.stop.end()
	m.journal.change(func(s *api.Status) { s.ReadyDeadline, s.Failure = nil, end.Message })
	m.journal.tellEnd(end)
}

// bringBack undoes what was done, whatever the end, and enters the end. It runs on a context that no cancellation
// reaches, and repeats until it has succeeded or the node is gone, in further runs if need be.
func (m releaser) bringBack() error {
	if m.hold.Touched || m.slot.isAsked() {
		if err := m.undo(); err != nil {
			return err
		}
	}
	m.announcer.hideConditions()
	m.hooks.cleanUp(m.end.Phase == api.Completed)
	m.journal.waiting("")
	m.journal.enter(m.end.Phase, m.end.Message)
	m.journal.tellEnded(*m.end)
	return nil
}

// undo gives the node and the slot back. A node that is gone by then ends a completed maintenance otherwise.
func (m releaser) undo() error {
	end := *m.end
	if m.journal.phase() != api.Releasing { // otherwise a run before this one began
		m.journal.enter(api.Releasing, end.Message)
	}
	m.freeze.awaitThaw()
	message := m.summary() + ": " + string(end.Phase)
	if end.Message != "" {
		message += ": " + end.Message
	}
	gone, err := m.releaseNode(nodeevent.Event{
		Reason: "Maintenance" + string(end.Phase), Message: message, Warning: end.Phase == api.Failed,
	})
	if err == nil {
		err = m.slot.withdraw()
	}
	if gone && end.Phase == api.Completed {
		end = ending{Phase: api.NodeGone, Message: "the node was gone when the requestor was done"}
		m.end = &end
		m.journal.change(func(s *api.Status) { s.Failure = end.Message })
	}
	return err
}

// releaseNode takes the mark off the node and then gives the slot back.
func (m releaser) releaseNode(event nodeevent.Event) (gone bool, err error) {
	if !m.hold.Touched {
		return false, nil
	}
	gone, err = m.hold.release(event, m.slot.releaseSignal())
	if err == nil {
		m.slot.released()
	}
	return gone, err
}

// keepRecord has the audit record kept by a workflow of its own, which reads here what happened: however long a sink is
// away, the node's next maintenance may begin.
func (m releaser) keepRecord() {
	if !m.prepared.Audited {
		return
	}
	id := api.AuditRecordID(m.cluster, m.spec.Node, m.spec.Requestor, m.runID)
	child := successor{kind: api.AuditRecordType, summary: "keeps the audit record of the " + m.summary(), input: m.reference()}
	if _, err := m.outbox.start(m.clock.life, id, child); err != nil {
		m.outbox.noteOccupied("the audit record is not kept: " + call.Cause(err))
	}
}
