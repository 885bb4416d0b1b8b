package maintenance

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/notices"
	"drydock/workflows/inbox"
)

// awaitApproval waits for somebody's word before anything else is done, and has the channels reminded meanwhile.
func (m *maintenance) awaitApproval() error {
	if !m.spec.Approval {
		return nil
	}
	if m.status.Approval == nil { // it may have come with the start
		m.enter(api.AwaitingApproval, "")
		m.waiting(`"approve" or "deny"`)
		m.tell(notices.AwaitingApproval, "")
		m.attribute(api.AttributePhase.ValueSet(string(api.AwaitingApproval)))
		defer m.attribute(api.AttributePhase.ValueSet(string(api.Pending)))
	}
	decided := func() bool { return m.status.Approval != nil }
	for !decided() {
		if err := m.awaitDecision(decided); err != nil {
			return err
		}
		if !decided() {
			m.tell(notices.ApprovalReminder, fmt.Sprintf("waits for approval since %s", m.status.Since.UTC().Format(time.RFC3339)))
		}
	}
	if a := m.status.Approval; a.Denied {
		return ending{phase: api.Cancelled, message: inbox.Sentence("denied", a.By, a.Comment)}
	}
	return nil
}

// awaitDecision waits for a decision, or until it is time for a reminder.
func (m *maintenance) awaitDecision(decided func() bool) (err error) {
	if every := m.spec.ApprovalReminder.Std(); every > 0 {
		_, err = m.awaitUpTo(m.steps, every, "remind of the approval", decided)
	} else {
		err = workflow.Await(m.steps, decided)
	}
	if err != nil {
		return m.interrupted()
	}
	return nil
}

func (m *maintenance) checkDecision(p api.Simple) error {
	if err := m.thisRun(p.Run); err != nil {
		return err
	}
	if m.status.Approval != nil {
		return fmt.Errorf("it was %s already", m.status.Approval.Verb())
	}
	// A message that comes with the start is read before the specification is.
	if m.status.Phase != api.AwaitingApproval && (m.status.Phase != api.Pending || len(m.status.Transitions) > 0) {
		return m.inPhase(api.AwaitingApproval)
	}
	return nil
}

func (m *maintenance) applyApprove(p api.Simple) string {
	return m.decide(api.ApprovalStatus{By: p.By, Comment: p.Comment})
}

func (m *maintenance) applyDeny(p api.Simple) string {
	return m.decide(api.ApprovalStatus{By: p.By, Comment: p.Comment, Denied: true})
}

func (m *maintenance) decide(a api.ApprovalStatus) string {
	a.At = workflow.Now(m.life)
	m.status.Approval = &a
	return "the maintenance is " + a.Verb()
}

// awaitNotice announces the maintenance, and waits until its notice is over.
func (m *maintenance) awaitNotice() error {
	m.tell(notices.MaintenanceScheduled, m.noticeText())
	if m.spec.NotBefore == nil || !m.spec.NotBefore.After(workflow.Now(m.life)) {
		return nil
	}
	if m.status.Phase != api.Pending || len(m.status.Transitions) == 0 {
		m.enter(api.Pending, "")
	}
	m.showConditions()
	m.waiting(m.noticeText())
	err := workflow.NewTimerWithOptions(m.steps, m.spec.NotBefore.Sub(workflow.Now(m.life)),
		workflow.TimerOptions{Summary: "notBefore"}).Get(m.steps, nil)
	if err != nil {
		return m.interrupted()
	}
	m.waiting("")
	return nil
}

// noticeText is when the maintenance may begin, empty where that is now.
func (m *maintenance) noticeText() string {
	if m.spec.NotBefore == nil {
		return ""
	}
	return "not before " + m.spec.NotBefore.UTC().Format(time.RFC3339)
}
