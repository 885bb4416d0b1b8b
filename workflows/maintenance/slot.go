package maintenance

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/schedule"
)

const (
	// askAgainFirst and askAgainLast bound the backoff of a request that the scheduler has not answered.
	askAgainFirst = 5 * time.Second
	askAgainLast  = time.Minute
	// reassert is how often an answered request is repeated all the same, should everything else have failed.
	reassert = 30 * time.Minute
	// backoffFirst and backoffLast bound the pause after a node was given back.
	backoffFirst = 5 * time.Minute
	backoffLast  = time.Hour
)

// slotAnswer is what the scheduler last said of the present request.
type slotAnswer struct {
	kind string
	api.SlotAnswer
}

// acquireSlot asks the scheduler for the node's slot and waits for it.
func (m *maintenance) acquireSlot() error {
	if m.status.Phase != api.Pending || len(m.status.Transitions) == 0 {
		m.enter(api.Pending, "")
	}
	m.request, m.requested = fmt.Sprintf("%s/%d", m.status.RunID, m.status.Attempt), m.status.Since
	m.answer = nil
	// Freezes are told to holders only: what was heard of one with an earlier slot is out of date.
	m.holdReasons = nil
	m.status.Slot = &api.SlotStatus{RequestID: m.request}
	m.waiting("an answer from the scheduler")
	request := m.slotRequest()
	for wait := askAgainFirst; ; wait = min(2*wait, askAgainLast) {
		err := m.toScheduler(m.steps, api.SignalSlotRequest, request)
		if m.steps.Err() != nil {
			return m.interrupted()
		}
		if err != nil {
			m.waiting("the scheduler, which does not run: every worker starts it within 30 s")
		}
		pause := wait
		if err != nil {
			pause = min(wait, askAgainFirst)
		} else if m.answer != nil {
			pause = reassert
		}
		if err := m.awaitAnswer(pause); err != nil {
			return err
		}
		if m.answer != nil && m.answer.kind == api.SignalSlotGranted {
			now := workflow.Now(m.life)
			m.status.Slot.GrantedAt = &now
			m.enter(api.Scheduled, "")
			return nil
		}
	}
}

// slotRequest is the present request, as it is sent and as a scheduler that begins anew may ask for it.
func (m *maintenance) slotRequest() api.SlotRequest {
	return api.SlotRequest{RunID: m.status.RunID, Request: schedule.Request{
		ID: m.request, Node: m.spec.Node, Requestor: m.spec.Requestor, Priority: m.spec.Priority, Created: m.requested,
	}}
}

func (m *maintenance) slotWanted() api.SlotWanted {
	w := api.SlotWanted{Ended: m.status.Phase.Ended()}
	w.RunID = m.status.RunID
	if m.status.Slot != nil && m.request != "" {
		w.Wants, w.SlotRequest, w.GrantedAt = true, m.slotRequest(), m.status.Slot.GrantedAt
	}
	return w
}

// awaitAnswer waits until the slot is granted or refused, or it is time to ask again. That a request is pending is an
// answer too, and stretches the pause.
func (m *maintenance) awaitAnswer(pause time.Duration) error {
	acknowledged := m.answer != nil
	_, err := m.awaitUpTo(m.steps, pause, "ask the scheduler again", func() bool {
		return m.answer != nil && (m.answer.kind != api.SignalSlotPending || !acknowledged)
	})
	if err != nil {
		return m.interrupted()
	}
	if m.answer == nil {
		return nil
	}
	switch m.answer.kind {
	case api.SignalSlotRefused:
		// The scheduler has forgotten the request: there is no slot to give back.
		m.request = ""
		if m.answer.Seen || m.status.CordonedAt != nil {
			return ending{phase: api.NodeGone, message: m.answer.Reason}
		}
		return ending{phase: api.Failed, kind: api.ErrorNodeNotFound, message: m.answer.Reason}
	case api.SignalSlotPending:
		if !acknowledged {
			return m.awaitAnswer(reassert)
		}
	}
	return nil
}

// answered takes the scheduler's word for the present request; answers to earlier ones are late.
func (m *maintenance) answered(kind string, a api.SlotAnswer) {
	if a.RequestID != m.request || m.status.Slot == nil || m.status.Slot.GrantedAt != nil {
		return
	}
	m.answer = &slotAnswer{kind: kind, SlotAnswer: a}
	if kind == api.SignalSlotPending {
		m.waiting(a.Reason)
	}
}

// giveBack releases the node and its slot, and waits before the next attempt, so that one bad budget never stops a
// fleet.
func (m *maintenance) giveBack() error {
	backoff := backoffFirst
	for range m.status.Attempt - 1 {
		backoff = min(2*backoff, backoffLast)
	}
	reason := fmt.Sprintf("the node could not be emptied in time (attempt %d) and is given back; next attempt in %s",
		m.status.Attempt, backoff)
	// From here on there is no drain that a message could be about.
	m.enter(api.Pending, reason)
	if err := m.proceed(); err != nil {
		return err
	}
	m.releaseNode("GivenBack", reason, true)
	m.closeHooks(false)
	m.tell(notices.MaintenanceScheduled, reason)
	m.showConditions()
	m.status.Attempt++
	m.keepAccount()
	m.status.Drain = nil
	m.status.Slot = nil
	next := workflow.Now(m.life).Add(backoff)
	m.status.NextAttemptAt, m.anew = &next, false
	m.waiting(fmt.Sprintf("the next attempt at %s", next.UTC().Format(time.RFC3339)))
	_, err := m.awaitUpTo(m.steps, backoff, "back off before the next attempt", func() bool { return m.anew })
	m.status.NextAttemptAt = nil
	if err != nil {
		return m.interrupted()
	}
	return nil
}

func (m *maintenance) toScheduler(ctx workflow.Context, signal string, arg any) error {
	return workflow.SignalExternalWorkflow(ctx, api.SchedulerID(m.cluster), "", signal, arg).Get(ctx, nil)
}

// interrupted tells why the steps were cancelled.
func (m *maintenance) interrupted() error {
	switch {
	case m.nodeGone != "":
		return ending{phase: api.NodeGone, message: m.nodeGone}
	case m.cancelled != "":
		return ending{phase: api.Cancelled, message: m.cancelled}
	default:
		return temporal.NewCanceledError()
	}
}
