package maintenance

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/spec"
	"drydock/workflows/inbox"
)

// requestor finds one of those who share the maintenance; an empty name is the maintenance's own requestor.
func (m *maintenance) requestor(name string) (*api.RequestorStatus, error) {
	if name == "" {
		name = m.spec.Requestor
	}
	for i := range m.status.Requestors {
		if m.status.Requestors[i].Name == name {
			return &m.status.Requestors[i], nil
		}
	}
	return nil, fmt.Errorf("%q is not a requestor of this maintenance", name)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *maintenance) checkDone(p api.Done) error {
	_, err := m.requestor(p.Requestor)
	return firstOf(m.thisRun(p.Run), m.inPhase(api.Ready, api.RequestorFailed), err)
}

func (m *maintenance) applyDone(p api.Done) string {
	r, err := m.requestor(p.Requestor)
	if err != nil {
		return "ignored: " + err.Error()
	}
	if r.DoneAt != nil {
		return "ignored: " + r.Name + " was done already"
	}
	now := workflow.Now(m.life)
	r.DoneAt = &now
	m.showRequestors()
	return r.Name + " is done"
}

func (m *maintenance) checkFailed(p api.FailedMessage) error {
	_, err := m.requestor(p.Requestor)
	return firstOf(m.thisRun(p.Run), m.inPhase(api.Ready), err)
}

func (m *maintenance) applyFailed(p api.FailedMessage) string {
	reason := p.Reason
	if reason == "" {
		reason = p.Comment
	}
	if reason == "" {
		reason = "the requestor gave no reason"
	}
	m.requestorFailed(reason)
	return "the node stays out of service until retry, done, or cancel with release"
}

func (m *maintenance) checkRetry(p api.Simple) error {
	if m.undecided() {
		return m.thisRun(p.Run)
	}
	return firstOf(m.thisRun(p.Run), m.inPhase(api.RequestorFailed))
}

func (m *maintenance) applyRetry(api.Simple) string {
	if m.undecided() {
		m.again = true
		return "what failed is tried again"
	}
	m.status.Failure = ""
	m.enter(api.Ready, "retry")
	m.tell(notices.ObjectsDrained, "retry")
	m.setDeadline(m.spec.ReadyTimeout.Std())
	m.showRequestors()
	return "the node is Ready again"
}

func (m *maintenance) checkCancel(p api.Cancel) error {
	if err := firstOf(m.thisRun(p.Run), m.ended()); err != nil {
		return err
	}
	if (m.status.Phase == api.RequestorFailed || m.status.Phase == api.Validating) && !p.Release {
		return errors.New("the node stays out of service: give it back with {\"release\": true}")
	}
	return nil
}

// applyCancel undoes a maintenance that is not Ready yet. From Ready on the node may be half flashed: it stays out of
// service until somebody asks for its release.
func (m *maintenance) applyCancel(p api.Cancel) string {
	why := inbox.Sentence("cancelled", p.By, p.Comment)
	if m.ended() != nil {
		return "ignored: the maintenance is ending"
	}
	if !m.heldByRequestor() {
		m.cancelled = why
		m.cancel()
		return "the maintenance is undone"
	}
	if p.Release {
		m.cancelled, m.release = why, true
		return "the node is released"
	}
	if m.status.Phase == api.Ready {
		m.requestorFailed(why + " while the requestor had the node")
	}
	return "the node stays out of service until retry, done, or cancel with release"
}

func (m *maintenance) checkExtend(p api.Extend) error {
	if err := firstOf(m.thisRun(p.Run), m.inPhase(api.Ready)); err != nil {
		return err
	}
	if m.status.ReadyDeadline == nil {
		return errors.New("there is no deadline to extend")
	}
	return nil
}

func (m *maintenance) applyExtend(p api.Extend) string {
	hold := p.For.Std()
	if hold == 0 {
		hold = m.spec.ReadyTimeout.Std()
	}
	deadline := workflow.Now(m.life).Add(hold)
	if deadline.After(*m.status.ReadyDeadline) {
		m.status.ReadyDeadline = &deadline
	}
	return "the deadline is " + m.status.ReadyDeadline.UTC().Format("2006-01-02T15:04:05Z")
}

func (m *maintenance) checkStarted(p api.Simple) error {
	return firstOf(m.thisRun(p.Run), m.inPhase(api.Ready))
}

func (m *maintenance) applyStarted(api.Simple) string {
	now := workflow.Now(m.life)
	m.status.StartedAt = &now
	return "the requestor has begun"
}

func (m *maintenance) checkDrained(p api.Simple) error {
	if err := firstOf(m.thisRun(p.Run), m.inPhase(api.Draining)); err != nil {
		return err
	}
	if m.spec.Drain.Mode != spec.ModeExternal {
		return fmt.Errorf("the drain mode is %s, not %s: Drydock sees by itself when the node is empty",
			m.spec.Drain.Mode, spec.ModeExternal)
	}
	return nil
}

func (m *maintenance) applyDrained(api.Simple) string {
	m.drained = true
	return "the node counts as drained"
}

func (m *maintenance) checkJoin(p api.Membership) error {
	if err := spec.RequestorName(p.Requestor); err != nil {
		return fmt.Errorf("requestor: %w", err)
	}
	if r, err := m.requestor(p.Requestor); err == nil && r.DoneAt == nil {
		return fmt.Errorf("%s shares this maintenance already", p.Requestor)
	}
	if m.status.Phase == api.Validating {
		return errors.New("the requestors are done, and the node is validated: start a maintenance of its own")
	}
	return m.ended()
}

func (m *maintenance) applyJoin(p api.Membership) string {
	if r, err := m.requestor(p.Requestor); err == nil {
		r.DoneAt = nil
	} else {
		m.status.Requestors = append(m.status.Requestors, api.RequestorStatus{Name: p.Requestor})
	}
	m.showRequestors()
	return p.Requestor + " shares this maintenance"
}

func (m *maintenance) checkLeave(p api.Membership) error {
	if err := spec.RequestorName(p.Requestor); err != nil {
		return fmt.Errorf("requestor: %w", err)
	}
	if p.Requestor == m.spec.Requestor {
		return fmt.Errorf("%s is whose maintenance this is: send done or cancel", p.Requestor)
	}
	_, err := m.requestor(p.Requestor)
	return firstOf(err, m.ended())
}

func (m *maintenance) applyLeave(p api.Membership) string {
	m.status.Requestors = slices.DeleteFunc(m.status.Requestors, func(r api.RequestorStatus) bool { return r.Name == p.Requestor })
	m.showRequestors()
	return p.Requestor + " no longer shares this maintenance"
}
