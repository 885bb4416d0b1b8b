package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
)

// requestors are those who work on the node while it is Ready, with the work that the worker does for the first of them.
type requestors struct {
	*core
	work  *work
	plans *plans
}

// holdForRequestors keeps the node out of service until all requestors are done, or somebody decides otherwise.
func (r *requestors) holdForRequestors() error {
	if phase := r.journal.phase(); phase != api.Ready && phase != api.RequestorFailed { // otherwise a run before this one began
		r.journal.change(func(s *api.Status) { s.StartedAt = nil }) // of an attempt before this one
		r.journal.enter(api.Ready, "")
		r.handOver("")
		r.work.ask()
	}
	for {
		if r.journal.phase() == api.Ready && !r.allDone() && r.plans.turn() {
			return errRaised
		}
		r.hold.showPhase()
		r.hold.showConditions()
		if err := r.startWork(); err != nil {
			return err
		}
		r.journal.waiting(r.waitedFor())
		overdue, err := r.await()
		r.endWork(overdue, err)
		if err != nil {
			return err
		}
		switch {
		case r.allDone():
			return nil
		case r.control.shouldContinue():
			return errContinue
		case overdue && r.spec.OnReadyTimeout == spec.ReleaseOnTimeout:
			r.journal.note("held past readyTimeout; released, as onReadyTimeout says")
			return nil
		case overdue:
			r.journal.requestorFailed(fmt.Sprintf("held past readyTimeout (%s)", r.spec.ReadyTimeout))
		}
	}
}

// handOver gives the node to its requestors. One that plans share is theirs once nothing more is to be drained.
func (r *requestors) handOver(why string) {
	if !r.plans.gives() {
		return
	}
	r.hold.Moved = false
	r.journal.announce(notices.ObjectsDrained, why)
	r.setDeadline(r.spec.ReadyTimeout.Std())
}

// await waits for the next event of the phase; overdue reports that it is the deadline.
func (r *requestors) await() (overdue bool, err error) {
	before := r.journal.status()
	matters := func() bool {
		now := r.journal.status()
		return r.allDone() || r.control.shouldContinue() || now.Phase != before.Phase || now.ReadyDeadline != before.ReadyDeadline ||
			r.work.settled != nil || r.work.Open && !r.wantsWork() ||
			now.Phase == api.Ready && r.plans.turns()
	}
	if before.Phase != api.Ready || before.ReadyDeadline == nil {
		return false, r.control.await(matters)
	}
	left := before.ReadyDeadline.Sub(r.control.now())
	if left <= 0 {
		return true, r.control.decided()
	}
	ok, err := r.control.awaitUpTo(left, "readyTimeout", matters)
	return !ok, err
}

// wantsWork reports whether the worker is to do the work: the node is Ready, and its requestor is not done.
func (r *requestors) wantsWork() bool {
	return r.journal.phase() == api.Ready && slices.Contains(r.open(), r.spec.Requestor)
}

// startWork begins the work that is due, once no freeze holds, or continues what a run before this one began.
func (r *requestors) startWork() error {
	if r.work.Due && r.wantsWork() {
		if err := r.control.proceed(); err != nil {
			return err
		}
	}
	if deadline := r.journal.status().ReadyDeadline; r.wantsWork() && (deadline == nil || deadline.After(r.control.now())) {
		r.work.start()
	}
	return nil
}

// endWork takes the end of the work as the requestor's done or failed. It ends work that runs although the node is not Ready any more, or
// somebody said how the work ended.
func (r *requestors) endWork(overdue bool, err error) {
	switch {
	case r.work.settled != nil:
		ready := r.wantsWork() && err == nil
		result := r.work.take()
		switch {
		case ready && result.OK:
			r.applyDone(api.Done{})
		case ready:
			r.journal.requestorFailed("work " + r.spec.Work + " " + sentence("failed: "+result.Message, "", result.Output))
		}
	case err != nil:
		r.work.end("the maintenance ends or begins again")
	case overdue:
		r.work.end("the node was held past readyTimeout")
	case !r.wantsWork():
		r.work.end("somebody said how it ended, or took the node back")
	}
}

// setDeadline limits how long the requestors may hold the node; 0 is no limit.
func (r *requestors) setDeadline(hold time.Duration) {
	r.journal.change(func(s *api.Status) {
		s.ReadyDeadline = nil
		if hold > 0 {
			s.ReadyDeadline = new(r.control.now().Add(hold))
		}
	})
}

func (r *requestors) allDone() bool { return len(r.open()) == 0 }

// show shows who is waited for, after one of them was done, joined or left.
func (r *requestors) show() {
	if r.journal.heldByRequestor() && !r.allDone() {
		r.journal.waiting(r.waitedFor())
	}
}

func (r *requestors) open() (names []string) {
	for _, one := range r.journal.status().Requestors {
		if one.DoneAt == nil {
			names = append(names, one.Name)
		}
	}
	return names
}

func (r *requestors) waitedFor() string {
	open := r.open()
	who := strings.Join(open, ", ")
	if running := r.work.waits(); running != "" {
		others := slices.DeleteFunc(open, func(name string) bool { return name == r.spec.Requestor })
		if len(others) > 0 {
			running += fmt.Sprintf(`; and "done" or "failed" from %s`, strings.Join(others, ", "))
		}
		return running
	}
	if plans := r.plans.waited(); plans != "" && r.journal.phase() == api.Ready {
		return plans
	}
	if r.journal.phase() == api.RequestorFailed {
		return fmt.Sprintf(`a decision: "retry" or "done" from %s, or "cancel" with release`, who)
	}
	said := fmt.Sprintf(`"done" or "failed" from %s`, who)
	if len(r.plans.Plans) > 0 {
		return fmt.Sprintf("stage Complete of %s, or %s", strings.Join(r.plans.Plans, ", "), said)
	}
	return said
}

// find returns the index of a requestor; an empty name is the maintenance's own requestor.
func (r *requestors) find(name string) (place int, err error) {
	name = cmp.Or(name, r.spec.Requestor)
	place = slices.IndexFunc(r.journal.status().Requestors, func(one api.RequestorStatus) bool { return one.Name == name })
	if place < 0 {
		return place, fmt.Errorf("%q is not a requestor of this maintenance", name)
	}
	return place, nil
}

func (r *requestors) add(name string) {
	r.journal.change(func(s *api.Status) {
		if place, err := r.find(name); err == nil {
			s.Requestors[place] = api.RequestorStatus{Name: name}
			return
		}
		s.Requestors = append(s.Requestors, api.RequestorStatus{Name: name})
	})
}

func (r *requestors) check(name string) error {
	_, err := r.find(name)
	return err
}

func (r *requestors) applyDone(p api.Done) string {
	place, _ := r.find(p.Requestor) // check has found it
	one := r.journal.status().Requestors[place]
	if one.DoneAt != nil {
		return "ignored: " + one.Name + " was done already"
	}
	r.journal.change(func(s *api.Status) {
		s.Requestors[place] = api.RequestorStatus{Name: one.Name, DoneAt: new(r.control.now()), DoneID: p.ID}
	})
	r.show()
	effect := one.Name + " is done"
	if plans := r.journal.s.PlansGoOn(); plans != "" && one.Name == api.PlansRequestor {
		effect = "done; " + plans
	}
	return effect + r.backOnce()
}

// backOnce says for whom else the node waits; empty if it is given back.
func (r *requestors) backOnce() string {
	if r.allDone() {
		return ""
	}
	return "; the node is put back when " + strings.Join(r.open(), " and ") + " is done too"
}

// staysOut is the effect of a message after which somebody has to decide about the node.
const staysOut = "the node is RequestorFailed and stays out of service until retry, done, or cancel with release"

func (r *requestors) applyFailed(p api.FailedMessage) string {
	r.journal.requestorFailed(cmp.Or(p.Reason, p.Comment, "the requestor gave no reason"))
	return staysOut
}

func (r *requestors) retry() string {
	r.journal.change(func(s *api.Status) { s.Failure, s.StartedAt = "", nil })
	r.journal.enter(api.Ready, "retry")
	r.work.ask()
	r.handOver("retry")
	r.show()
	return "the node is Ready again"
}

func (r *requestors) checkExtend(api.Extend) error {
	if r.journal.status().ReadyDeadline == nil {
		return errors.New("there is no deadline to extend")
	}
	return nil
}

// applyExtend has the policy judge a hold of another length: it may say how long a node is held at a time.
func (r *requestors) applyExtend(p api.Extend, check func() error) string {
	if p.For == 0 || p.For == r.spec.ReadyTimeout {
		return r.extend(p)
	}
	with := func(s *spec.Maintenance) { s.ReadyTimeout = p.For }
	return r.admission.amendSince010(api.MsgExtend, with, check, func() string { return r.extend(p) })
}

// extend moves the deadline of the requestors, never to an earlier time.
func (r *requestors) extend(p api.Extend) string {
	deadline := r.deadline(p)
	r.journal.change(func(s *api.Status) {
		if deadline.After(*s.ReadyDeadline) {
			s.ReadyDeadline = &deadline
		}
	})
	return "the node may be held until " + instant(*r.journal.status().ReadyDeadline)
}

func (r *requestors) deadline(p api.Extend) time.Time {
	return r.control.now().Add(cmp.Or(p.For, r.spec.ReadyTimeout).Std())
}

func (r *requestors) checkStarted(p api.Started) error {
	if at := r.journal.status().StartedAt; p.Claim && at != nil {
		return fmt.Errorf("the work was begun by somebody else at %s", instant(*at))
	}
	return nil
}

func (r *requestors) applyStarted(api.Started) string {
	r.journal.change(func(s *api.Status) { s.StartedAt = new(r.control.now()) })
	return "the work has begun"
}

func (r *requestors) checkJoin(p api.Membership) error {
	if err := spec.RequestorName(p.Requestor); err != nil {
		return fmt.Errorf("requestor: %w", err)
	}
	if slices.Contains(r.open(), p.Requestor) {
		return fmt.Errorf("%s shares this maintenance already", p.Requestor)
	}
	if len(r.journal.status().Requestors) >= spec.MaxRequestors {
		return fmt.Errorf("%d requestors share this maintenance already", spec.MaxRequestors)
	}
	if r.journal.phase() == api.Validating {
		return errors.New("the requestors are done, and the node is validated: start a maintenance of its own")
	}
	return r.journal.ending()
}

func (r *requestors) applyJoin(p api.Membership, check func() error) string {
	with := func(s *spec.Maintenance) {
		s.AdditionalRequestors = []string{p.Requestor}
		for _, one := range r.journal.status().Requestors {
			if one.Name != r.spec.Requestor && one.Name != p.Requestor {
				s.AdditionalRequestors = append(s.AdditionalRequestors, one.Name)
			}
		}
	}
	return r.admission.amendSince010(api.MsgJoin, with, check, func() string {
		r.add(p.Requestor)
		r.show()
		return p.Requestor + " shares the maintenance of " + r.spec.Requestor
	})
}

func (r *requestors) checkLeave(p api.Membership) error {
	if err := spec.RequestorName(p.Requestor); err != nil {
		return fmt.Errorf("requestor: %w", err)
	}
	if p.Requestor == r.spec.Requestor {
		return fmt.Errorf("%s is whose maintenance this is: send done or cancel", p.Requestor)
	}
	return cmp.Or(r.check(p.Requestor), r.journal.ending())
}

func (r *requestors) applyLeave(p api.Membership) string {
	r.journal.change(func(s *api.Status) {
		s.Requestors = slices.DeleteFunc(s.Requestors, func(one api.RequestorStatus) bool { return one.Name == p.Requestor })
	})
	r.show()
	return p.Requestor + " no longer shares this maintenance"
}
