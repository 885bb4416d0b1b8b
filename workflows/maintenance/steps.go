package maintenance

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/drain"
	"drydock/activities/node"
	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/rules/notices"
	"drydock/workflows/call"
)

// cordon marks the node as held, and makes it unschedulable unless the specification says otherwise.
func (m *maintenance) cordon() error {
	if err := m.proceed(); err != nil {
		return err
	}
	m.enter(api.Cordoning, "")
	m.touched, m.contested = true, false
	held, err := m.holdNode(m.steps, m.spec.Cordon, nodeevent.Event{Reason: "MaintenanceStarted", Message: m.summary()})
	if err != nil {
		return m.stepFailed(err)
	}
	now := workflow.Now(m.life)
	m.cordoned, m.status.CordonedAt, m.bootID = now, &now, held.BootID
	m.tell(notices.MaintenanceStarted, "")
	return nil
}

func (m *maintenance) holdNode(ctx workflow.Context, cordon bool, event nodeevent.Event) (node.Held, error) {
	event.Key = fmt.Sprintf("%d/%d", m.status.Attempt, m.recordoned)
	var held node.Held
	ctx = call.Quick(ctx, "mark and cordon "+m.spec.Node)
	err := workflow.ExecuteActivity(ctx, call.Nodes.HoldNode, node.HoldInput{
		Node: m.spec.Node, UID: m.uid, RunID: m.status.RunID, Requestor: m.spec.Requestor,
		Since: m.status.Since, Cordon: cordon, Phase: string(m.status.Phase), Event: event,
	}).Get(ctx, &held)
	if err == nil {
		m.uid, m.mark, m.heldUID = held.UID, held.Mark, held.UID
	}
	return held, err
}

// waitForPods lets chosen pods complete by themselves, for as long as the specification gives them.
func (m *maintenance) waitForPods() error {
	wait := m.spec.WaitForPodCompletion
	if wait == nil {
		return nil
	}
	m.enter(api.WaitingForPods, "")
	m.waiting(fmt.Sprintf("pods %q to complete", wait.PodSelector))
	began := workflow.Now(m.life)
	for {
		if err := m.proceed(); err != nil {
			return err
		}
		ctx := call.Long(m.steps, "wait for pods to complete")
		if limit := wait.Timeout.Std(); limit > 0 {
			left := limit - workflow.Now(m.life).Sub(began)
			if left <= 0 {
				return nil
			}
			ctx = call.Within(ctx, left)
		}
		err := m.unlessHeld(ctx, func(ctx workflow.Context) workflow.Future {
			return workflow.ExecuteActivity(ctx, call.Drains.WaitForPods, drain.WaitInput{
				Node: m.spec.Node, UID: m.uid, RunID: m.status.RunID,
				PodSelector: wait.PodSelector, BlockedSignal: api.SignalDrainBlocked,
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
	frozen := workflow.Now(m.life)
	if err := workflow.Await(m.steps, func() bool { return !m.held() }); err != nil {
		return m.interrupted()
	}
	m.escalation.began = m.escalation.began.Add(workflow.Now(m.life).Sub(frozen))
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
		return ending{phase: api.Failed, message: err.Error()}
	}
	switch cause.Type() {
	case api.ErrorNodeGone, api.ErrorNodeReplaced:
		return ending{phase: api.NodeGone, message: cause.Message()}
	default:
		return ending{phase: api.Failed, kind: cause.Type(), message: cause.Message()}
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
