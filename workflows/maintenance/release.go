package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/workflows/call"
)

const (
	// backoffFirst and backoffLast bound the pause after a node was given back.
	backoffFirst = 5 * time.Minute
	backoffLast  = time.Hour
)

// restart gives the node of a maintenance back that begins again with the slot.
func (m *maintenance) restart() error {
	var err error
	switch m.state.Restarting {
	case givenBack:
		err = m.giveBack()
	case lostSlot:
		err = m.loseSlot()
	}
	if err == nil {
		m.state.Restarting = ""
	}
	return err
}

// giveBack releases the node and its slot until the next attempt, so that one bad budget never stops other nodes.
func (m *maintenance) giveBack() error {
	attempt := m.journal.status().Attempt
	pause := period.Doubled(backoffFirst, backoffLast, attempt-1)
	reason := fmt.Sprintf("the node could not be emptied in time (attempt %d) and is given back; next attempt in %s", attempt, pause)
	// From here on messages about the drain are refused.
	m.journal.enter(api.Pending, reason)
	if err := m.control.proceed(); err != nil {
		return err
	}
	if _, err := m.releaseNode(nodeevent.Event{Reason: api.EventGivenBack, Message: reason, Warning: true}, nil); err != nil {
		return err
	}
	m.hooks.cleanUp(false)
	m.journal.announce(notices.MaintenanceScheduled, reason)
	m.hold.showConditions()
	m.drainer.endAttempt()
	m.drainer.retryNow = false
	m.journal.change(func(s *api.Status) { s.NextAttemptAt = new(m.control.now().Add(pause)) })
	return nil
}

// loseSlot begins again where the scheduler knows of no slot that the maintenance holds: another may hold the node by now.
func (m *maintenance) loseSlot() error {
	if m.control.reason == slotLost {
		m.control.begin()
	}
	m.journal.enter(api.Pending, "the scheduler does not know its slot; asking again")
	if _, err := m.releaseNode(nodeevent.Event{
		Reason: api.EventSlotLost, Warning: true, Message: m.summary() + ": slot lost; asking again",
	}, nil); err != nil {
		return err
	}
	m.slot.Request = ""
	m.hooks.cleanUp(false)
	m.drainer.endAttempt()
	m.validator.Undecided = ""
	if m.spec.Lockstep {
		m.hold.Shown = ""
	}
	m.journal.change(func(s *api.Status) { s.ReadyDeadline, s.Validation, s.Failure = nil, nil, "" })
	return m.control.decided()
}

func (m *maintenance) backOff() error {
	next := m.journal.status().NextAttemptAt
	if next == nil {
		return nil
	}
	m.journal.waiting("the next attempt at " + instant(*next))
	retryNow := func() bool { return m.drainer.retryNow }
	_, err := m.control.awaitUpToOrContinue(next.Sub(m.control.now()), "back off before the next attempt", retryNow)
	if errors.Is(err, errContinue) {
		return err
	}
	m.journal.change(func(s *api.Status) { s.NextAttemptAt = nil })
	return err
}

// beforeRelease calls the last hooks. Where one of them fails, the node stays out of service until somebody decides.
func (m *maintenance) beforeRelease() error {
	names := m.spec.Hooks.BeforeRelease
	if len(names) == 0 {
		return nil
	}
	if m.journal.phase() != api.Validating {
		// From here on messages of the requestor are refused.
		m.journal.enter(api.Validating, "the hooks before the release")
		m.hold.showPhase()
	}
	return m.validator.untilGood("before the release: ", func() (string, error) {
		err := m.hooks.callAll(hookBeforeRelease, names)
		if over := m.control.decided(); over != nil || err == nil {
			return "", over
		}
		return err.Error(), nil
	})
}

// beginEnd records how the maintenance ends whose steps returned err, before anything is undone.
func (m *maintenance) beginEnd(err error) {
	end := ending{Phase: api.Completed}
	if err != nil && !errors.As(err, &end) {
		end = ending{Phase: api.Failed, Message: call.Cause(err)}
	}
	m.state.End = &end
	m.control.end()
	m.admission.dismiss()
	m.journal.change(func(s *api.Status) { s.ReadyDeadline, s.Failure = nil, end.Message })
	if end.Phase == api.Failed || end.Phase == api.NodeGone {
		m.journal.announce(notices.MaintenanceIncomplete, end.Message)
	}
	m.journal.announce(notices.MaintenanceEnded, end.Message)
}

// bringBack undoes what was done, and enters the last phase. It is not cancelled, and is repeated until it succeeds or the node is gone, in
// further runs if need be.
func (m *maintenance) bringBack() error {
	if m.hold.Touched || m.slot.Request != "" {
		if err := m.undo(); err != nil {
			return err
		}
	}
	if m.hold.ConditionsShown { // on a node that was never held: the release of a held one takes them off
		m.hold.setConditions(nil)
	}
	m.hooks.cleanUp(m.state.End.Phase == api.Completed)
	m.journal.waiting("")
	m.journal.enter(m.state.End.Phase, m.state.End.Message)
	if end := m.state.End; end.Phase == api.Completed {
		m.journal.announce(notices.MaintenanceComplete, end.Message)
	} else {
		m.journal.announce(notices.MaintenanceCancelled, cmp.Or(end.Message, string(end.Phase)))
	}
	return nil
}

// undo gives the node and the slot back. A completed maintenance whose node is gone by then ends as NodeGone.
func (m *maintenance) undo() error {
	end := *m.state.End
	m.journal.ensure(api.Releasing, end.Message)
	// To give a node back is a side effect too, whether or not the maintenance is ended.
	_ = m.control.awaitThaw(func() error { return nil })
	var plan *node.Signal
	if end.Phase == api.Completed {
		plan = m.plans.backSignal()
	}
	gone, err := m.releaseNode(nodeevent.Event{
		Reason: api.EventOfPhase(end.Phase), Message: sentence(m.summary()+": "+string(end.Phase), "", end.Message), Warning: end.Phase == api.Failed,
	}, plan)
	if err == nil {
		err = m.slot.withdraw()
	}
	if gone && end.Phase == api.Completed {
		end = ending{Phase: api.NodeGone, Message: "the node was gone when the requestor was done"}
		m.state.End = &end
		m.journal.change(func(s *api.Status) { s.Failure = end.Message })
	}
	return err
}

func (m *maintenance) releaseNode(event nodeevent.Event, plan *node.Signal) (gone bool, err error) {
	if !m.hold.Touched {
		return false, nil
	}
	gone, err = m.hold.release(event, &node.Signal{ // the activity that releases the node gives the slot back
		WorkflowID: api.SchedulerID(m.cluster), Name: api.SignalSlotRelease, Payload: encode(api.SlotRelease{RequestID: m.slot.Request}),
	}, plan)
	if err == nil {
		m.slot.Request = ""
	}
	return gone, err
}

// keepRecord starts the workflow that writes the audit record, which reads this history: the node's next maintenance may begin
// however long a sink is unavailable.
func (m *maintenance) keepRecord() {
	if !m.prepared.Audited {
		return
	}
	id := api.AuditRecordID(m.cluster, m.spec.Node, m.spec.Requestor, m.runID)
	child := successor{kind: api.AuditRecordType, summary: "keeps the audit record of the " + m.summary(), input: m.reference()}
	if _, err := m.outbox.start(m.control.life, id, child); err != nil {
		m.outbox.noteOccupied("the audit record is not kept: " + call.Cause(err))
	}
}
