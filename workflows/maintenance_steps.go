package workflows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities"
	"drydock/workflows/spec"
)

// cordon marks the node as held, and makes it unschedulable unless the specification says otherwise.
func (m *maintenance) cordon() error {
	if err := m.proceed(); err != nil {
		return err
	}
	m.enter(Cordoning, "")
	m.touched, m.contested = true, false
	_, err := m.holdNode(m.steps, m.spec.Cordon, activities.Event{Reason: "MaintenanceStarted", Message: m.summary()})
	if err != nil {
		return m.stepFailed(err)
	}
	now := workflow.Now(m.life)
	m.cordoned, m.status.CordonedAt = now, &now
	return nil
}

func (m *maintenance) holdNode(ctx workflow.Context, cordon bool, event activities.Event) (activities.Held, error) {
	event.Key = fmt.Sprintf("%d/%d", m.status.Attempt, m.recordoned)
	var held activities.Held
	ctx = quick(ctx, "mark and cordon "+m.spec.Node)
	err := workflow.ExecuteActivity(ctx, nodes.HoldNode, activities.HoldInput{
		Node: m.spec.Node, UID: m.uid, RunID: m.status.RunID, Requestor: m.spec.Requestor,
		Since: m.status.Since, Cordon: cordon, Phase: string(m.status.Phase), Event: event,
	}).Get(ctx, &held)
	if err == nil {
		m.uid, m.mark = held.UID, held.Mark
	}
	return held, err
}

// waitForPods lets chosen pods complete by themselves, for as long as the specification gives them.
func (m *maintenance) waitForPods() error {
	wait := m.spec.WaitForPodCompletion
	if wait == nil {
		return nil
	}
	m.enter(WaitingForPods, "")
	m.waiting(fmt.Sprintf("pods %q to complete", wait.PodSelector))
	began := workflow.Now(m.life)
	for {
		if err := m.proceed(); err != nil {
			return err
		}
		ctx := long(m.steps, "wait for pods to complete")
		if limit := wait.Timeout.Std(); limit > 0 {
			left := limit - workflow.Now(m.life).Sub(began)
			if left <= 0 {
				return nil
			}
			ctx = within(ctx, left)
		}
		err := m.unlessHeld(ctx, func(ctx workflow.Context) workflow.Future {
			return workflow.ExecuteActivity(ctx, drains.WaitForPods, activities.WaitInput{
				Node: m.spec.Node, UID: m.uid, RunID: m.status.RunID,
				PodSelector: wait.PodSelector, BlockedSignal: SignalDrainBlocked,
			})
		}, nil)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errHeld):
			continue
		case m.lostMark(err):
			if err := m.restoreMark(); err != nil {
				return m.stepFailed(err)
			}
		case timedOut(err):
			m.note("gave up waiting for pods to complete after " + wait.Timeout.String())
			return nil
		default:
			return m.stepFailed(err)
		}
	}
}

// drain empties the node in the way the specification asks for, until it is Ready. The escalation's clock runs from
// the cordon; the time in which pods were to complete by themselves, which has a limit of its own, is not counted.
func (m *maintenance) drain() error {
	began := m.cordoned
	if m.spec.WaitForPodCompletion != nil {
		began = workflow.Now(m.life)
	}
	m.enter(Draining, "")
	switch m.spec.Drain.Mode {
	case spec.ModeNone:
		return nil
	case spec.ModeExternal:
		return m.awaitDrained(began)
	}
	for {
		if err := m.proceed(); err != nil {
			return err
		}
		ctx := long(m.steps, "drain "+m.spec.Node)
		if limit, ok := m.escalatesIn(began); ok {
			if limit <= 0 {
				return m.escalate()
			}
			ctx = within(ctx, limit)
		}
		var drained activities.Drained
		err := m.unlessHeld(ctx, func(ctx workflow.Context) workflow.Future {
			return workflow.ExecuteActivity(ctx, drains.Drain, activities.DrainInput{
				Node: m.spec.Node, UID: m.uid, RunID: m.status.RunID, Drain: m.spec.Drain, BlockedSignal: SignalDrainBlocked,
			})
		}, &drained)
		switch {
		case err == nil:
			m.status.Drain = &DrainProgress{
				At: workflow.Now(m.life), Total: drained.Evicted, Evicted: drained.Evicted, Skipped: drained.Skipped,
			}
			return nil
		case errors.Is(err, errHeld):
			continue
		case m.lostMark(err):
			if err := m.restoreMark(); err != nil {
				return m.stepFailed(err)
			}
		case timedOut(err):
			return m.escalate()
		default:
			return m.stepFailed(err)
		}
	}
}

// lostMark tells that somebody removed the mark from the node under a step, and that it is to be set again: a bounded
// number of times.
func (m *maintenance) lostMark(err error) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && cause.Type() == activities.ErrorNotHolder && m.recordoned < maxRecordons && m.steps.Err() == nil
}

func (m *maintenance) restoreMark() error {
	m.recordoned++
	_, err := m.holdNode(m.steps, m.spec.Cordon, activities.Event{Reason: "MarkRestored", Warning: true,
		Message: "somebody removed the mark of a maintenance; it is set again"})
	return err
}

// awaitDrained waits for somebody else's word that the node is empty.
func (m *maintenance) awaitDrained(began time.Time) error {
	m.drained = false
	m.waiting(`the signal "drained"`)
	var err error
	ok := true
	if limit, bounded := m.escalatesIn(began); bounded {
		ok, err = awaitUpTo(m.steps, limit, "escalation", func() bool { return m.drained })
	} else {
		err = workflow.Await(m.steps, func() bool { return m.drained })
	}
	if err != nil {
		return m.interrupted()
	}
	if !ok {
		return m.escalate()
	}
	return nil
}

// escalatesIn is the time left until the escalation's rung, if there is one.
func (m *maintenance) escalatesIn(began time.Time) (time.Duration, bool) {
	if len(m.spec.Drain.Escalation) == 0 {
		return 0, false
	}
	return m.spec.Drain.Escalation[0].After.Std() - workflow.Now(m.life).Sub(began), true
}

// escalate does what the rung says.
func (m *maintenance) escalate() error {
	rung := m.spec.Drain.Escalation[0]
	m.note(fmt.Sprintf("escalation after %s: %s", rung.After, rung.Do))
	if rung.Do == spec.GiveBack {
		return errGivenBack
	}
	return ending{phase: Failed, message: fmt.Sprintf("the node could not be emptied within %s%s", rung.After, m.blockedBy())}
}

func (m *maintenance) blockedBy() string {
	if m.status.Drain == nil || len(m.status.Drain.Blockers) == 0 {
		return ""
	}
	first := m.status.Drain.Blockers[0]
	return fmt.Sprintf(": pod %s: %s", first.Pod, first.Message)
}

// errHeld: a step was interrupted by a freeze that holds running maintenances.
var errHeld = errors.New("held by a freeze")

// unlessHeld runs an activity, and takes it back when a freeze holds running maintenances.
func (m *maintenance) unlessHeld(ctx workflow.Context, start func(workflow.Context) workflow.Future, result any) error {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	future := start(ctx)
	if err := workflow.Await(m.steps, func() bool { return future.IsReady() || m.held() }); err != nil {
		return m.interrupted()
	}
	if !future.IsReady() {
		return errHeld
	}
	return future.Get(ctx, result)
}

// proceed is the gate before every side effect: it is shut by a freeze that holds running maintenances.
func (m *maintenance) proceed() error {
	if !m.held() {
		return nil
	}
	m.waiting("a thaw: " + strings.Join(m.holdReasons, "; "))
	if err := workflow.Await(m.steps, func() bool { return !m.held() }); err != nil {
		return m.interrupted()
	}
	m.waiting("")
	return nil
}

func (m *maintenance) held() bool { return len(m.holdReasons) > 0 }

// stepFailed sorts what went wrong in a step: the node is gone, the maintenance was cancelled, or it failed.
func (m *maintenance) stepFailed(err error) error {
	if m.steps.Err() != nil {
		return m.interrupted()
	}
	var end ending
	if errors.As(err, &end) {
		return err
	}
	var cause *temporal.ApplicationError
	if !errors.As(err, &cause) {
		return ending{phase: Failed, message: err.Error()}
	}
	switch cause.Type() {
	case activities.ErrorNodeGone, activities.ErrorNodeReplaced:
		return ending{phase: NodeGone, message: cause.Message()}
	default:
		return ending{phase: Failed, kind: cause.Type(), message: cause.Message()}
	}
}

// timedOut tells whether an activity's whole time is over, as opposed to one attempt's.
func timedOut(err error) bool {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) && timeout.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE {
		return true
	}
	// The last attempt failed, by its own timeout or otherwise, and the next would have come too late.
	var attempts *temporal.ActivityError
	return errors.As(err, &attempts) && attempts.RetryState() == enums.RETRY_STATE_TIMEOUT
}
