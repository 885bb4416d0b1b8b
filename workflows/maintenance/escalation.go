package maintenance

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/spec"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
)

// dueRung is the rung whose time comes next, and how long until then.
func (m *maintenance) dueRung() (rung spec.Rung, left time.Duration, ok bool) {
	if m.escalation.next >= len(m.ladder) {
		return spec.Rung{}, 0, false
	}
	rung = m.ladder[m.escalation.next]
	return rung, rung.After.Std() - workflow.Now(m.life).Sub(m.escalation.began), true
}

// lateTry is how long a drain tries before a rung whose time passed while nobody could drain.
const lateTry = 5 * time.Minute

// catchUp moves the clock on where the next rung's time passed without a drain, as when no worker ran: an honest try
// comes before every rung, and the later rungs keep their distance.
func (m *maintenance) catchUp() {
	rung, left, ok := m.dueRung()
	if ok && left < 0 {
		m.escalation.began = m.escalation.began.Add(min(rung.After.Std(), lateTry) - left)
	}
}

// awaitRung waits until wake, or until the next rung's time has come: a durable timer that names the rung.
func (m *maintenance) awaitRung(wake func() bool) error {
	rung, left, ok := m.dueRung()
	switch {
	case !ok:
		if err := workflow.Await(m.steps, wake); err != nil {
			return m.interrupted()
		}
	case left > 0:
		if _, err := m.awaitUpTo(m.steps, left, "escalation: "+rung.Do, wake); err != nil {
			return m.interrupted()
		}
	}
	return nil
}

// escalate takes the rungs that somebody asked for, or else the one whose time has come.
func (m *maintenance) escalate() error {
	for len(m.escalation.asked) > 0 {
		asked := m.escalation.asked[0]
		m.escalation.asked = m.escalation.asked[1:]
		if asked.Planned {
			m.takeFromLadder()
		}
		if err := m.takeRung(asked); err != nil {
			return err
		}
	}
	if rung, left, ok := m.dueRung(); ok && left <= 0 {
		m.escalation.next++
		return m.takeRung(api.RungTaken{
			Do: rung.Do, Why: fmt.Sprintf("not empty after %s%s", rung.After, m.blockedBy()), Planned: true,
		})
	}
	return nil
}

// takeFromLadder takes the next rung that is not the SLA's off the ladder: the SLA keeps its own time.
func (m *maintenance) takeFromLadder() {
	for i := m.escalation.next; i < len(m.ladder); i++ {
		if m.ladder[i].Do != spec.ExpireSLA {
			m.ladder = slices.Delete(m.ladder, i, i+1)
			return
		}
	}
}

// takeRung does what a rung says, and records it in the status, in the history and on the node.
func (m *maintenance) takeRung(rung api.RungTaken) error {
	rung.At = workflow.Now(m.life)
	m.status.Escalation = append(m.status.Escalation, rung)
	text := inbox.Sentence("escalation: "+rung.Do, rung.By, rung.Why)
	m.note(text)
	if rung.Do == spec.ExpireSLA {
		m.tell(notices.SLAExpired, rung.Why)
		return m.warn("SLAExpired", "the SLA is over: "+rung.Why)
	}
	m.tell(notices.Escalated, text)
	switch rung.Do {
	case spec.GiveBack:
		return errGivenBack
	case spec.Fail:
		return ending{phase: api.Failed, message: "the node could not be emptied: " + text}
	case spec.Kill:
		m.status.Force = spec.Kill
	case spec.BypassBudget:
		if m.status.Force == "" {
			m.status.Force = spec.BypassBudget
		}
	}
	return m.warn("MaintenanceEscalated", text)
}

// warn says something on the node. A node that is gone or lost its mark is the next step's to find.
func (m *maintenance) warn(reason, text string) error {
	in := m.announcement(m.status.Phase, text)
	in.Event.Reason, in.Event.Warning = reason, true
	ctx := call.Quick(m.steps, "warn: "+text[:min(len(text), 80)])
	if err := workflow.ExecuteActivity(ctx, call.Nodes.AnnouncePhase, in).Get(ctx, nil); err != nil {
		if m.steps.Err() != nil {
			return m.interrupted()
		}
		workflow.GetLogger(m.life).Warn("not said on the node", "reason", reason, "error", err)
	}
	return nil
}

// killAt is when the rung Kill is due, if it is still to come: pods are deleted early enough before it to end in their
// own time.
func (m *maintenance) killAt() *time.Time {
	for _, rung := range m.ladder[min(m.escalation.next, len(m.ladder)):] {
		if rung.Do == spec.Kill {
			at := m.escalation.began.Add(rung.After.Std())
			return &at
		}
	}
	return nil
}

func (m *maintenance) checkEscalate(p api.Escalate) error {
	if err := firstOf(m.thisRun(p.Run), m.inPhase(api.Draining)); err != nil {
		return err
	}
	if len(m.status.Escalation)+len(m.escalation.asked) >= maxRungs {
		return fmt.Errorf("%d rungs were taken in this attempt already", maxRungs)
	}
	do, err := m.rungFor(p)
	if err != nil {
		return err
	}
	if p.Expect != "" && p.Expect != do {
		return fmt.Errorf("the rung to take is %s by now, and %s was expected", do, p.Expect)
	}
	return spec.RungFits(do, m.spec.Drain.Mode)
}

// rungFor is the rung that is asked for: the named one, or the next of the plan.
func (m *maintenance) rungFor(p api.Escalate) (string, error) {
	if p.Do != "" {
		return p.Do, spec.KnownRung(p.Do)
	}
	skip := 0
	for _, asked := range m.escalation.asked {
		if asked.Planned {
			skip++
		}
	}
	for _, rung := range m.ladder[min(m.escalation.next, len(m.ladder)):] {
		if rung.Do == spec.ExpireSLA {
			continue
		}
		if skip == 0 {
			return rung.Do, nil
		}
		skip--
	}
	return "", fmt.Errorf(`no rung is left: name one with {"do": "%s"}`, spec.BypassBudget)
}

func (m *maintenance) applyEscalate(p api.Escalate) string {
	do, err := m.rungFor(p)
	if err != nil {
		return "ignored: " + err.Error()
	}
	m.escalation.asked = append(m.escalation.asked, api.RungTaken{Do: do, By: p.By, Why: p.Comment, Planned: p.Do == ""})
	return "takes the rung " + do
}

func (m *maintenance) checkSkipPod(p api.SkipPod) error {
	if err := firstOf(m.thisRun(p.Run), m.inPhase(api.Draining), spec.PodName(p.Pod)); err != nil {
		return err
	}
	if m.spec.Drain.Mode == spec.ModeExternal {
		return fmt.Errorf("the drain mode is %s: Drydock does not look at pods", spec.ModeExternal)
	}
	if len(m.status.SkippedPods) >= maxSkipped {
		return fmt.Errorf("%d pods are skipped already: narrow the drain by podSelector instead", maxSkipped)
	}
	return nil
}

// maxSkipped and maxRungs bound what is carried in the status and in every drain's input.
const (
	maxSkipped = 200
	maxRungs   = 100
)

func (m *maintenance) applySkipPod(p api.SkipPod) string {
	for _, skipped := range m.status.SkippedPods {
		if skipped == p.Pod {
			return p.Pod + " is skipped already"
		}
	}
	m.status.SkippedPods = append(m.status.SkippedPods, p.Pod)
	m.anew = true
	return p.Pod + " stays on the node and is not waited for"
}

func (m *maintenance) checkRetryNow(p api.Simple) error {
	if err := m.thisRun(p.Run); err != nil {
		return err
	}
	if m.status.Phase == api.Pending && m.status.NextAttemptAt != nil {
		return nil
	}
	if err := m.inPhase(api.Draining); err != nil {
		return fmt.Errorf("%w, nor in the pause after the node was given back", err)
	}
	if m.spec.Drain.Mode != spec.ModeEvict {
		return fmt.Errorf("the drain mode is %s: there is no eviction to retry", m.spec.Drain.Mode)
	}
	return nil
}

func (m *maintenance) applyRetryNow(api.Simple) string {
	m.anew = true
	if m.status.Phase == api.Pending {
		return "the next attempt begins"
	}
	return "every pod that is left is tried again"
}
