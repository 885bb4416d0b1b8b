package maintenance

import (
	"fmt"
	"time"

	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/spec"
)

// approval is what comes before a slot is asked for: somebody's word, and the notice.
type approval struct{ core }

// awaitApproval waits for somebody's word before anything else is done, and has the channels reminded meanwhile.
func (a *approval) awaitApproval() error {
	if !a.spec.Approval {
		return nil
	}
	if !a.decided() && a.journal.phase() != api.AwaitingApproval { // it may have come with the start, or to an earlier run
		a.journal.enter(api.AwaitingApproval, "")
		a.journal.waiting(`"approve" or "deny"`)
		a.journal.tell(notices.AwaitingApproval, "")
		a.journal.attribute(api.AttributePhase.ValueSet(string(api.AwaitingApproval)))
	}
	for !a.decided() {
		reminded, err := a.awaitDecision()
		if err != nil {
			return err
		}
		if reminded {
			a.journal.tell(notices.ApprovalReminder, "waits for approval since "+instant(a.journal.status().Since))
		}
	}
	if a.journal.phase() == api.AwaitingApproval {
		a.journal.attribute(api.AttributePhase.ValueSet(string(api.Pending)))
	}
	if word := a.journal.status().Approval; word.Denied {
		return ending{Phase: api.Cancelled, Message: sentence("denied", word.By, word.Comment)}
	}
	return nil
}

func (a *approval) decided() bool { return a.journal.status().Approval != nil }

// awaitDecision waits for a decision, or until it is time for a reminder.
func (a *approval) awaitDecision() (remind bool, err error) {
	over := func() bool { return a.decided() || a.leave.due() }
	ok := true
	if every := a.spec.ApprovalReminder.Std(); every > 0 {
		waited := a.clock.now().Sub(a.journal.status().Since)
		ok, err = a.stop.awaitUpTo(every-waited%every, "remind of the approval", over)
	} else {
		err = a.stop.await(over)
	}
	if err == nil && !a.decided() && a.leave.due() {
		err = errContinue
	}
	return !ok, err
}

// awaitNotice announces the maintenance, and waits until its notice is over.
func (a *approval) awaitNotice() error {
	notice := noticeText(a.spec)
	if !a.journal.wasTold(notices.MaintenanceScheduled) {
		a.journal.tell(notices.MaintenanceScheduled, notice)
	}
	if a.spec.NotBefore == nil || !a.spec.NotBefore.After(a.clock.now()) {
		return nil
	}
	if a.journal.phase() != api.Pending || a.journal.isFresh() {
		a.journal.enter(api.Pending, "")
	}
	a.announcer.showConditions()
	a.journal.waiting(notice)
	left, err := a.stop.awaitUpTo(a.spec.NotBefore.Sub(a.clock.now()), "notBefore", a.leave.due)
	if err != nil {
		return err
	}
	if left {
		return errContinue
	}
	a.journal.waiting("")
	return nil
}

// noticeText is when a maintenance may begin, empty where that is now.
func noticeText(s spec.Maintenance) string {
	if s.NotBefore == nil {
		return ""
	}
	return "not before " + s.NotBefore.UTC().Format(time.RFC3339)
}

func (a *approval) checkDecision(p api.Simple) error {
	if err := a.thisRun(p.Run); err != nil {
		return err
	}
	if word := a.journal.status().Approval; word != nil {
		return fmt.Errorf("it was %s already", word.Verb())
	}
	// A message that comes with the start is read before the specification is.
	if phase := a.journal.phase(); phase != api.AwaitingApproval && (phase != api.Pending || !a.journal.isFresh()) {
		return a.journal.inPhase(api.AwaitingApproval)
	}
	return nil
}

func (a *approval) applyApprove(p api.Simple) string {
	return a.decide(api.ApprovalStatus{By: p.By, Comment: p.Comment})
}

func (a *approval) applyDeny(p api.Simple) string {
	return a.decide(api.ApprovalStatus{By: p.By, Comment: p.Comment, Denied: true})
}

func (a *approval) decide(word api.ApprovalStatus) string {
	word.At = a.clock.now()
	a.journal.change(func(s *api.Status) { s.Approval = &word })
	return "the maintenance is " + word.Verb()
}
