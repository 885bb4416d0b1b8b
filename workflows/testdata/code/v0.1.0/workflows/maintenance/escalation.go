package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"errors"
	"fmt"
	"slices"
)

// errGivenBack: the escalation gave the node back, and the maintenance begins again with the slot.
var errGivenBack = errors.New("the node is given back")

// maxSkipped and maxRungs bound what is carried in the status and in every drain's input.
const (
	maxSkipped = 200
	maxRungs   = 100
)

// awaitRung waits until wake, or until the next rung's time has come: a durable timer that names the rung.
func (d *drainer) awaitRung(wake func() bool) error {
	rung, left, ok := d.Ladder.due(d.clock.now())
	switch {
	case !ok:
		return d.stop.await(wake)
	case left > 0:
		_, err := d.stop.awaitUpTo(left, "escalation: "+rung.Do, wake)
		return err
	}
	return d.stop.decided()
}

// escalate takes the rungs that somebody asked for, and those whose time has come.
func (d *drainer) escalate() error {
	for d.Ladder.isAsked() {
		asked := d.Ladder.takeAsked()
		if asked.Planned {
			d.Ladder.takeNext()
		}
		if err := d.takeRung(asked); err != nil {
			return err
		}
	}
	for _, rung := range d.Ladder.takeDue(d.clock.now()) {
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
	first := drain.Blockers[0]
	return fmt.Sprintf(": pod %s: %s", first.Pod, first.Message)
}

// takeRung does what a rung says, and records it in the status, in the history and on the node.
func (d *drainer) takeRung(rung api.RungTaken) error {
	rung.At = d.clock.now()
	bounds.Fit(&rung)
	d.journal.change(func(s *api.Status) { s.Escalation = append(s.Escalation, rung) })
	text := sentence("escalation: "+rung.Do, rung.By, rung.Why)
	d.journal.note(text)
	if rung.Do == spec.ExpireSLA {
		d.journal.tell(notices.SLAExpired, rung.Why)
		return d.announcer.warn(d.stop.steps, "SLAExpired", "the SLA is over: "+rung.Why)
	}
	d.journal.tell(notices.Escalated, text)
	switch rung.Do {
	case spec.GiveBack:
		return errGivenBack
	case spec.Fail:
		return ending{Phase: api.Failed, Message: "the node could not be emptied: " + text}
	case spec.Kill:
		d.allow(spec.Kill)
	case spec.BypassBudget:
		if d.journal.status().Force == "" {
			d.allow(spec.BypassBudget)
		}
	}
	return d.announcer.warn(d.stop.steps, "MaintenanceEscalated", text)
}

// allow lets the drain use force.
func (d *drainer) allow(force string) { d.journal.change(func(s *api.Status) { s.Force = force }) }

func (d *drainer) checkEscalate(p api.Escalate) error {
	if err := firstOf(d.thisRun(p.Run), d.journal.inPhase(api.Draining)); err != nil {
		return err
	}
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
	return spec.RungFits(do, d.spec.Drain.Mode)
}

func (d *drainer) applyEscalate(p api.Escalate) string {
	do, err := d.Ladder.choose(p)
	if err != nil {
		return "ignored: " + err.Error()
	}
	d.Ladder.ask(api.RungTaken{Do: do, By: p.By, Why: p.Comment, Planned: p.Do == ""})
	return "takes the rung " + do
}

func (d *drainer) checkSkipPod(p api.SkipPod) error {
	if err := firstOf(d.thisRun(p.Run), d.journal.inPhase(api.Draining), spec.PodName(p.Pod)); err != nil {
		return err
	}
	if d.spec.Drain.Mode == spec.ModeExternal {
		return fmt.Errorf("the drain mode is %s: Drydock does not look at pods", spec.ModeExternal)
	}
	if len(d.journal.status().SkippedPods) >= maxSkipped {
		return fmt.Errorf("%d pods are skipped already: narrow the drain by podSelector instead", maxSkipped)
	}
	return nil
}

func (d *drainer) applySkipPod(p api.SkipPod) string {
	if slices.Contains(d.journal.status().SkippedPods, p.Pod) {
		return p.Pod + " is skipped already"
	}
	d.journal.change(func(s *api.Status) { s.SkippedPods = append(s.SkippedPods, p.Pod) })
	d.retryNow = true
	return p.Pod + " stays on the node and is not waited for"
}

func (d *drainer) checkRetryNow(p api.Simple) error {
	if err := d.thisRun(p.Run); err != nil {
		return err
	}
	if d.journal.phase() == api.Pending && d.journal.status().NextAttemptAt != nil {
		return nil
	}
	if err := d.journal.inPhase(api.Draining); err != nil {
		return fmt.Errorf("%w, nor in the pause after the node was given back", err)
	}
	if d.spec.Drain.Mode != spec.ModeEvict {
		return fmt.Errorf("the drain mode is %s: there is no eviction to retry", d.spec.Drain.Mode)
	}
	return nil
}

func (d *drainer) applyRetryNow(api.Simple) string {
	d.retryNow = true
	if d.journal.phase() == api.Pending {
		return "the next attempt begins"
	}
	return "every pod that is left is tried again"
}

func (d *drainer) checkDrained(p api.Simple) error {
	if err := firstOf(d.thisRun(p.Run), d.journal.inPhase(api.Draining)); err != nil {
		return err
	}
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

// blocked takes what the drain says keeps the node from being empty.
func (d *drainer) blocked(p api.DrainProgress) {
	p.Bound()
	d.progressed(p)
	d.journal.observeBlockers(api.BlockersOf(p))
	if len(p.Blockers) == 0 {
		d.journal.waiting("")
		return
	}
	first := p.Blockers[0]
	text := fmt.Sprintf("pod %s: %s", first.Pod, first.Message)
	if more := len(p.Blockers) - 1 + p.MoreBlockers; more > 0 {
		text += fmt.Sprintf(" (and %d more pods)", more)
	}
	d.journal.waiting(text)
}
