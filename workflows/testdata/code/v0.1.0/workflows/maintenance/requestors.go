package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// requestors are those who work on the node while it is Ready.
type requestors struct{ core }

// holdForRequestors keeps the node out of service until all requestors are done, or somebody decides otherwise.
func (r *requestors) holdForRequestors() error {
	if phase := r.journal.phase(); phase != api.Ready && phase != api.RequestorFailed { // otherwise a run before this one began
		r.journal.enter(api.Ready, "")
		r.journal.tell(notices.ObjectsDrained, "")
		r.setDeadline(r.spec.ReadyTimeout.Std())
	}
	for {
		r.announcer.showPhase()
		r.announcer.showConditions()
		r.journal.waiting(r.waitedFor())
		overdue, err := r.await()
		if err != nil {
			return err
		}
		switch {
		case r.allDone():
			return nil
		case r.leave.due():
			return errContinue
		case overdue && r.spec.OnReadyTimeout == spec.ReleaseOnTimeout:
			r.journal.note("held for longer than readyTimeout; released as onReadyTimeout says")
			return nil
		case overdue:
			r.journal.requestorFailed(fmt.Sprintf("held for longer than readyTimeout (%s)", r.spec.ReadyTimeout))
		}
	}
}

// await waits for the next thing that matters; overdue tells that it was the deadline.
func (r *requestors) await() (overdue bool, err error) {
	before := r.journal.status()
	matters := func() bool {
		now := r.journal.status()
		return r.allDone() || r.leave.due() || now.Phase != before.Phase || now.ReadyDeadline != before.ReadyDeadline
	}
	if before.Phase != api.Ready || before.ReadyDeadline == nil {
		return false, r.stop.await(matters)
	}
	left := before.ReadyDeadline.Sub(r.clock.now())
	if left <= 0 {
		return true, r.stop.decided()
	}
	ok, err := r.stop.awaitUpTo(left, "readyTimeout", matters)
	return !ok, err
}

// setDeadline limits how long the requestors may hold the node; 0 is for ever.
func (r *requestors) setDeadline(hold time.Duration) {
	r.journal.change(func(s *api.Status) {
		s.ReadyDeadline = nil
		if hold > 0 {
			deadline := r.clock.now().Add(hold)
			s.ReadyDeadline = &deadline
		}
	})
}

func (r *requestors) allDone() bool {
	return !slices.ContainsFunc(r.journal.status().Requestors, func(one api.RequestorStatus) bool { return one.DoneAt == nil })
}

// show says anew who is waited for, after one of them was done, joined or left.
func (r *requestors) show() {
	if r.journal.heldByRequestor() && !r.allDone() {
		r.journal.waiting(r.waitedFor())
	}
}

func (r *requestors) waitedFor() string {
	var open []string
	for _, one := range r.journal.status().Requestors {
		if one.DoneAt == nil {
			open = append(open, one.Name)
		}
	}
	who := strings.Join(open, ", ")
	if r.journal.phase() == api.RequestorFailed {
		return fmt.Sprintf(`a decision: "retry" or "done" from %s, or "cancel" with release`, who)
	}
	return fmt.Sprintf(`"done" or "failed" from %s`, who)
}

// find is the place of one of those who share the maintenance; an empty name is the maintenance's own requestor.
func (r *requestors) find(name string) (place int, err error) {
	if name == "" {
		name = r.spec.Requestor
	}
	place = slices.IndexFunc(r.journal.status().Requestors, func(one api.RequestorStatus) bool { return one.Name == name })
	if place < 0 {
		return place, fmt.Errorf("%q is not a requestor of this maintenance", name)
	}
	return place, nil
}

// add makes somebody share the maintenance, who is not done.
func (r *requestors) add(name string) {
	r.journal.change(func(s *api.Status) {
		if place, err := r.find(name); err == nil {
			s.Requestors[place].DoneAt = nil
			return
		}
		s.Requestors = append(s.Requestors, api.RequestorStatus{Name: name})
	})
}

func (r *requestors) checkDone(p api.Done) error {
	_, err := r.find(p.Requestor)
	return firstOf(r.thisRun(p.Run), r.journal.inPhase(api.Ready, api.RequestorFailed), err)
}

func (r *requestors) applyDone(p api.Done) string {
	place, err := r.find(p.Requestor)
	if err != nil {
		return "ignored: " + err.Error()
	}
	one := r.journal.status().Requestors[place]
	if one.DoneAt != nil {
		return "ignored: " + one.Name + " was done already"
	}
	now := r.clock.now()
	r.journal.change(func(s *api.Status) { s.Requestors[place].DoneAt = &now })
	r.show()
	return one.Name + " is done"
}

func (r *requestors) checkFailed(p api.FailedMessage) error {
	_, err := r.find(p.Requestor)
	return firstOf(r.thisRun(p.Run), r.journal.inPhase(api.Ready), err)
}

// staysOut is the effect of a message after which somebody has to decide about the node.
const staysOut = "the node stays out of service until retry, done, or cancel with release"

func (r *requestors) applyFailed(p api.FailedMessage) string {
	reason := p.Reason
	if reason == "" {
		reason = p.Comment
	}
	if reason == "" {
		reason = "the requestor gave no reason"
	}
	r.journal.requestorFailed(reason)
	return staysOut
}

// retry gives the node to its requestors again.
func (r *requestors) retry() string {
	r.journal.change(func(s *api.Status) { s.Failure = "" })
	r.journal.enter(api.Ready, "retry")
	r.journal.tell(notices.ObjectsDrained, "retry")
	r.setDeadline(r.spec.ReadyTimeout.Std())
	r.show()
	return "the node is Ready again"
}

func (r *requestors) checkExtend(p api.Extend) error {
	if err := firstOf(r.thisRun(p.Run), r.journal.inPhase(api.Ready)); err != nil {
		return err
	}
	if r.journal.status().ReadyDeadline == nil {
		return errors.New("there is no deadline to extend")
	}
	return nil
}

func (r *requestors) applyExtend(p api.Extend) string {
	hold := p.For.Std()
	if hold == 0 {
		hold = r.spec.ReadyTimeout.Std()
	}
	deadline := r.clock.now().Add(hold)
	r.journal.change(func(s *api.Status) {
		if deadline.After(*s.ReadyDeadline) {
			s.ReadyDeadline = &deadline
		}
	})
	return "the deadline is " + instant(*r.journal.status().ReadyDeadline)
}

func (r *requestors) checkStarted(p api.Simple) error {
	return firstOf(r.thisRun(p.Run), r.journal.inPhase(api.Ready))
}

func (r *requestors) applyStarted(api.Simple) string {
	now := r.clock.now()
	r.journal.change(func(s *api.Status) { s.StartedAt = &now })
	return "the requestor has begun"
}

// maxRequestors bounds those who share a maintenance.
const maxRequestors = spec.MaxRequestors

func (r *requestors) checkJoin(p api.Membership) error {
	if err := spec.RequestorName(p.Requestor); err != nil {
		return fmt.Errorf("requestor: %w", err)
	}
	if place, err := r.find(p.Requestor); err == nil && r.journal.status().Requestors[place].DoneAt == nil {
		return fmt.Errorf("%s shares this maintenance already", p.Requestor)
	}
	if len(r.journal.status().Requestors) >= maxRequestors {
		return fmt.Errorf("%d requestors share this maintenance already", maxRequestors)
	}
	if r.journal.phase() == api.Validating {
		return errors.New("the requestors are done, and the node is validated: start a maintenance of its own")
	}
	return r.journal.ending()
}

func (r *requestors) applyJoin(p api.Membership) string {
	r.add(p.Requestor)
	r.show()
	return p.Requestor + " shares this maintenance"
}

func (r *requestors) checkLeave(p api.Membership) error {
	if err := spec.RequestorName(p.Requestor); err != nil {
		return fmt.Errorf("requestor: %w", err)
	}
	if p.Requestor == r.spec.Requestor {
		return fmt.Errorf("%s is whose maintenance this is: send done or cancel", p.Requestor)
	}
	_, err := r.find(p.Requestor)
	return firstOf(err, r.journal.ending())
}

func (r *requestors) applyLeave(p api.Membership) string {
	r.journal.change(func(s *api.Status) {
		s.Requestors = slices.DeleteFunc(s.Requestors, func(one api.RequestorStatus) bool { return one.Name == p.Requestor })
	})
	r.show()
	return p.Requestor + " no longer shares this maintenance"
}

// firstOf is the first of the errors.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
