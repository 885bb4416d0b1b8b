package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/meter"
)

// errGivenBack: the escalation gives the node back, and the maintenance begins again with the slot.
var errGivenBack = errors.New("the node is given back")

// maxRungs bounds what is carried in the status.
const maxRungs = 100

func (d *drainer) awaitRung(wake func() bool) error {
	rung, left, ok := d.Ladder.due(d.control.now())
	switch {
	case !ok:
		return d.control.await(wake)
	case left > 0:
		_, err := d.control.awaitUpTo(left, "escalation: "+rung.Do, wake)
		return err
	}
	return d.control.decided()
}

func (d *drainer) escalate() error {
	for d.Ladder.isAsked() {
		asked := d.Ladder.Asked[0]
		d.Ladder.Asked = d.Ladder.Asked[1:]
		if asked.Planned {
			d.Ladder.takeNext()
		}
		if err := d.takeRung(asked); err != nil {
			return err
		}
	}
	for _, rung := range d.Ladder.takeDue(d.control.now()) {
		if err := d.takeRung(api.RungTaken{
			Do: rung.Do, Why: fmt.Sprintf("not empty after %s%s", rung.After, d.blockedBy()), Planned: true,
		}); err != nil {
			return err
		}
	}
	return nil
}

func (d *drainer) blockedBy() string {
	drain := d.journal.status().Drain
	if drain == nil || len(drain.Blockers) == 0 {
		return ""
	}
	return ": pod " + drain.Blockers[0].Pod + ": " + drain.Blockers[0].Message
}

func (d *drainer) takeRung(rung api.RungTaken) error {
	rung.At = d.control.now()
	bounds.Fit(&rung)
	d.journal.change(func(s *api.Status) { s.Escalation = append(s.Escalation, rung) })
	text := sentence("escalation: "+rung.Do, rung.By, rung.Why)
	d.journal.note(text)
	if rung.Do == spec.ExpireSLA {
		meter.SLAExpired.Count(d.control.life, "")
		d.journal.announce(notices.SLAExpired, rung.Why)
		return d.hold.warn(d.control.steps, api.EventSLAExpired, "the SLA is over: "+rung.Why)
	}
	meter.Escalations.Count(d.control.life, rung.Do)
	d.journal.announce(notices.Escalated, text)
	switch rung.Do {
	case spec.GiveBack:
		return errGivenBack
	case spec.Fail:
		return ending{Phase: api.Failed, Kind: api.ErrorNotDrained, Message: "the node could not be emptied: " + text}
	case spec.Kill, spec.BypassBudget:
		d.journal.change(func(s *api.Status) {
			if rung.Do == spec.Kill || s.Force == "" {
				s.Force = rung.Do
			}
		})
	}
	return d.hold.warn(d.control.steps, api.EventEscalated, text)
}

func (d *drainer) checkEscalate(p api.Escalate) error {
	if len(d.journal.status().Escalation)+len(d.Ladder.Asked) >= maxRungs {
		return fmt.Errorf("%d rungs were taken in this attempt already", maxRungs)
	}
	do, err := d.Ladder.choose(p)
	if err != nil {
		return err
	}
	if p.Expect != "" && p.Expect != do {
		return fmt.Errorf("the rung to take is %s by now, and %s was expected", do, p.Expect)
	}
	return d.spec.RungFits(do)
}

func (d *drainer) applyEscalate(p api.Escalate, check func() error) string {
	do, _ := d.Ladder.choose(p) // checkEscalate has chosen it
	with := func(s *spec.Maintenance) {
		s.Drain.Escalation = append(slices.Clone(s.Drain.Escalation), spec.Rung{After: spec.Duration(d.control.now().Sub(d.Ladder.Began)), Do: do})
	}
	same := p
	same.Expect = do // the rung that is judged, and no other
	stillCounts := func() error { return cmp.Or(check(), d.checkEscalate(same)) }
	return d.admission.amendSince010(api.MsgEscalate, with, stillCounts, func() string {
		d.Ladder.Asked = append(d.Ladder.Asked, api.RungTaken{Do: do, By: p.By, Why: p.Comment, Planned: p.Do == ""})
		return "takes the rung " + do
	})
}

func (d *drainer) checkRetryNow(api.Simple) error {
	if d.journal.phase() == api.Pending && d.journal.status().NextAttemptAt != nil {
		return nil
	}
	if err := d.journal.inPhase(api.Draining); err != nil {
		return fmt.Errorf("%w, nor in the pause after the node was given back%s", err, d.instead())
	}
	if d.spec.Drain.Mode != spec.ModeEvict {
		return fmt.Errorf("the drain mode is %s: there is no eviction to retry", d.spec.Drain.Mode)
	}
	return nil
}

// instead names the message that ends what the maintenance waits for, where there is one.
func (d *drainer) instead() string {
	switch s := d.journal.status(); {
	case s.Phase == api.RequestorFailed:
		return fmt.Sprintf(": %q has the work tried again", api.MsgRetry)
	case s.Phase == api.Pending && s.Spec.NotBefore != nil && s.Slot == nil:
		return fmt.Sprintf(": it waits for its time, which %q moves", api.MsgReschedule)
	}
	return ""
}

func (d *drainer) applyRetryNow(api.Simple) string {
	d.retryNow = true
	if d.journal.phase() == api.Pending {
		return "the next attempt begins"
	}
	return "every pod that is left is tried again"
}

func (d *drainer) checkDrained(api.Simple) error {
	if d.spec.Drain.Mode != spec.ModeExternal {
		return fmt.Errorf("the drain mode is %s, not %s: Drydock sees by itself when the node is empty",
			d.spec.Drain.Mode, spec.ModeExternal)
	}
	return nil
}

func (d *drainer) applyDrained(api.Simple) string {
	d.Drained = true
	return "the node counts as drained"
}

func (d *drainer) blocked(p api.DrainProgress) {
	if !d.Stood.IsZero() {
		return // that drain is over
	}
	p.Bound()
	p = d.journal.status().Unsettled(p)
	d.progressed(p)
	d.journal.observeBlockers(api.BlockersOf(p))
	if len(p.Blockers) == 0 {
		d.journal.waiting("")
		return
	}
	d.journal.waiting("pod " + firstBlocker(p, "more pod"))
}

// firstBlocker names the first blocker of a progress that has some, and says how many more there are of that noun.
func firstBlocker(p api.DrainProgress, noun string) string {
	text := p.Blockers[0].Pod + ": " + p.Blockers[0].Message
	if more := len(p.Blockers) - 1 + p.MoreBlockers; more > 0 {
		text += " (and " + number.Of(more, noun) + ")"
	}
	return text
}

type ladder struct {
	Rungs []spec.Rung `json:"rungs,omitempty"`
	// Began is when its clock started, Next the rung that is due next, Asked are those that somebody requested.
	Began time.Time       `json:"began,omitzero"`
	Next  int             `json:"next,omitempty"`
	Asked []api.RungTaken `json:"asked,omitempty"`
}

func (l *ladder) due(now time.Time) (rung spec.Rung, left time.Duration, ok bool) {
	if l.Next >= len(l.Rungs) {
		return spec.Rung{}, 0, false
	}
	rung = l.Rungs[l.Next]
	return rung, rung.After.Std() - now.Sub(l.Began), true
}

// lateTry is how long a drain tries before a rung that became due while no drain ran.
const lateTry = 5 * time.Minute

// catchUp sets the clock back where the next rung became due without a drain, as when no worker ran: a drain of the planned time, or
// lateTry, comes before every rung. Later rungs keep their distance.
func (l *ladder) catchUp(now time.Time) {
	rung, left, ok := l.due(now)
	if !ok || left >= 0 {
		return
	}
	try := rung.After.Std()
	if l.Next > 0 {
		try -= l.Rungs[l.Next-1].After.Std()
	}
	l.shift(min(try, lateTry) - left)
}

// takeDue takes the next rung if it is due, with all others of the same time.
func (l *ladder) takeDue(now time.Time) []spec.Rung {
	first, left, ok := l.due(now)
	if !ok || left > 0 {
		return nil
	}
	due := l.left()
	if end := slices.IndexFunc(due, func(r spec.Rung) bool { return r.After != first.After }); end >= 0 {
		due = due[:end]
	}
	l.Next += len(due)
	return slices.Clone(due)
}

// shift sets the clock back by a time in which nothing could be done.
func (l *ladder) shift(d time.Duration) { l.Began = l.Began.Add(d) }

// takeNext removes the next rung that is not the SLA's from the ladder: the SLA keeps its own time.
func (l *ladder) takeNext() {
	if i := slices.IndexFunc(l.left(), func(r spec.Rung) bool { return r.Do != spec.ExpireSLA }); i >= 0 {
		l.Rungs = slices.Delete(l.Rungs, l.Next+i, l.Next+i+1)
	}
}

func (l *ladder) isAsked() bool { return len(l.Asked) > 0 }

// killAt is when the rung Kill is due, if it is still to come: the drain deletes pods early enough to let them end in their own time.
func (l *ladder) killAt() *time.Time {
	for _, rung := range l.left() {
		if rung.Do == spec.Kill {
			return new(l.Began.Add(rung.After.Std()))
		}
	}
	return nil
}

func (l *ladder) left() []spec.Rung { return l.Rungs[min(l.Next, len(l.Rungs)):] }

// choose returns the rung that a message names, or the next of the plan.
func (l *ladder) choose(p api.Escalate) (string, error) {
	if p.Do != "" {
		return p.Do, spec.KnownRung(p.Do)
	}
	planned := 0
	for _, asked := range l.Asked {
		if asked.Planned {
			planned++
		}
	}
	left := slices.DeleteFunc(slices.Clone(l.left()), func(r spec.Rung) bool { return r.Do == spec.ExpireSLA })
	if planned >= len(left) {
		return "", fmt.Errorf(`no rung is left: name one with {"do": "%s"}`, spec.BypassBudget)
	}
	return left[planned].Do, nil
}
