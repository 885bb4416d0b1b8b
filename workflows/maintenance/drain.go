package maintenance

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/drain"
	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/rules/record"
	"drydock/rules/spec"
	"drydock/workflows/call"
)

// Why an attempt to empty the node was taken back before it ended.
var (
	// errHeld: a freeze holds running maintenances.
	errHeld = errors.New("held by a freeze")
	// errAnew: an operator changed what the drain is to do, or wants it to try at once.
	errAnew = errors.New("begun anew")
	// errRung: a rung of the escalation is to be taken.
	errRung = errors.New("the escalation's turn")
)

// drain empties the node in the way the specification asks for, until it is Ready. The escalation's clock runs from
// the cordon; the time in which pods were to complete by themselves, which has a limit of its own, and the time in which
// a freeze held the maintenance are not counted.
func (m *maintenance) drain() error {
	m.escalation = escalation{began: m.cordoned}
	if m.spec.WaitForPodCompletion != nil {
		m.escalation.began = workflow.Now(m.life)
	}
	m.ladder = m.spec.Ladder()
	m.status.EarlierRungs = append(m.status.EarlierRungs, m.status.Escalation...)
	m.status.EarlierRungs = m.status.EarlierRungs[:min(len(m.status.EarlierRungs), maxRungs)]
	m.status.Drain, m.status.Escalation, m.status.Force = nil, nil, ""
	m.drained = false
	m.enter(api.Draining, "")
	m.showConditions()
	if m.steps.Err() != nil {
		return m.interrupted()
	}
	if m.spec.Drain.Mode == spec.ModeNone {
		return nil
	}
	for {
		if err := m.proceed(); err != nil {
			return err
		}
		m.catchUp()
		err := m.empty()
		m.observeBlockers(nil)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errHeld), errors.Is(err, errAnew):
			continue
		case errors.Is(err, errRung):
			if err := m.escalate(); err != nil {
				return err
			}
		case m.lostMark(err):
			if err := m.restoreMark(); err != nil {
				return m.stepFailed(err)
			}
		default:
			return m.stepFailed(err)
		}
	}
}

// keepAccount remembers the pods of an attempt that is over, for the audit record.
func (m *maintenance) keepAccount() {
	if d := m.status.Drain; d != nil {
		m.status.EarlierPods = append(m.status.EarlierPods, d.Pods...)
		m.status.EarlierPods = m.status.EarlierPods[:min(len(m.status.EarlierPods), record.MaxPods)]
	}
}

// empty runs one drain, or waits for somebody else's word that the node is empty, until that has ended or something
// else comes first.
func (m *maintenance) empty() error {
	if m.spec.Drain.Mode == spec.ModeExternal {
		m.waiting(`the signal "drained"`)
		return m.untilInterrupted(func() bool { return m.drained })
	}
	// What a drain did must be known, and no two drains may run, before the next one begins.
	ctx, cancel := workflow.WithCancel(call.Stoppable(m.steps, "drain "+m.spec.Node))
	defer cancel()
	future := workflow.ExecuteActivity(ctx, call.Drains.Drain, m.drainInput())
	interruption := m.untilInterrupted(future.IsReady)
	if m.steps.Err() != nil {
		return m.endDrain(future)
	}
	cancel()
	if err := workflow.Await(m.steps, future.IsReady); err != nil {
		return m.endDrain(future)
	}
	var progress api.DrainProgress
	err := future.Get(ctx, &progress)
	var cancelled *temporal.CanceledError
	if errors.As(err, &cancelled) {
		if cancelled.HasDetails() && cancelled.Details(&progress) == nil {
			m.status.Drain = &progress
		}
		if interruption == nil {
			interruption = errAnew // by the activity's own account only: nobody asked it to stop
		}
		return interruption
	}
	if err == nil {
		m.status.Drain = &progress
		return nil
	}
	if interruption != nil {
		// What is asked to stop is not retried any more, so that any passing trouble ends it; the next drain meets what lasts.
		return interruption
	}
	return err
}

// drainEnds is how long a cancelled maintenance waits for its drain: longer than a lost worker's drain is believed in.
const drainEnds = 15 * time.Second

// endDrain waits until a drain that was told to stop has stopped, so that no eviction meets a node that is back already.
func (m *maintenance) endDrain(drain workflow.Future) error {
	if _, err := m.awaitUpTo(m.life, drainEnds, "the drain stops", drain.IsReady); err != nil {
		return err
	}
	return m.interrupted()
}

func (m *maintenance) drainInput() drain.Input {
	in := drain.Input{
		Node: m.spec.Node, UID: m.uid, RunID: m.status.RunID, Drain: m.spec.Drain, Why: m.summary(),
		Began: m.escalation.began, Force: m.status.Force, KillAt: m.killAt(), Skip: m.status.SkippedPods,
		BlockedSignal: api.SignalDrainBlocked,
	}
	if before := m.status.Drain; before != nil {
		in.Before = &api.DrainProgress{
			At: before.At, Total: before.Total, Evicted: before.Evicted, Tier: before.Tier, Tiers: before.Tiers,
			Pods: before.Pods, MorePods: before.MorePods,
		}
	}
	return in
}

// untilInterrupted waits until done, and tells what comes before that.
func (m *maintenance) untilInterrupted(done func() bool) error {
	m.anew = false
	wake := func() bool { return done() || m.held() || m.anew || len(m.escalation.asked) > 0 }
	if err := m.awaitRung(wake); err != nil {
		return err
	}
	switch {
	case done():
		return nil
	case m.held():
		return errHeld
	case m.anew:
		return errAnew
	default:
		return errRung
	}
}

// lostMark tells that somebody removed the mark from the node under a step, and that it is to be set again: a bounded
// number of times.
func (m *maintenance) lostMark(err error) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && cause.Type() == api.ErrorNotHolder && m.recordoned < maxRecordons && m.steps.Err() == nil
}

func (m *maintenance) restoreMark() error {
	m.recordoned++
	_, err := m.holdNode(m.steps, m.wantsCordon(), nodeevent.Event{Reason: "MarkRestored", Warning: true,
		Message: "somebody removed the mark of a maintenance; it is set again"})
	return err
}

func (m *maintenance) blockedBy() string {
	if m.status.Drain == nil || len(m.status.Drain.Blockers) == 0 {
		return ""
	}
	first := m.status.Drain.Blockers[0]
	return fmt.Sprintf(": pod %s: %s", first.Pod, first.Message)
}

// escalation is where a drain is on its ladder.
type escalation struct {
	// began is when its clock started, next the rung whose time comes next, asked are those that somebody wants now.
	began time.Time
	next  int
	asked []api.RungTaken
}
