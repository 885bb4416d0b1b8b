package maintenance

import (
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities"
	"drydock/api"
	"drydock/workflows/call"
)

// waitForPods lets chosen pods complete by themselves, for as long as the specification gives them.
func (d *drainer) waitForPods() error {
	wait := d.spec.WaitForPodCompletion
	if wait == nil {
		return nil
	}
	d.journal.enter(api.WaitingForPods, "")
	d.journal.waiting(fmt.Sprintf("pods %q to complete", wait.PodSelector))
	began := d.clock.now()
	for {
		if err := d.freeze.proceed(); err != nil {
			return err
		}
		ctx := call.Long(d.stop.steps, "wait for pods to complete")
		if limit := wait.Timeout.Std(); limit > 0 {
			left := limit - d.clock.now().Sub(began)
			if left <= 0 {
				return nil
			}
			ctx = call.Within(ctx, left)
		}
		err := d.freeze.unlessHeld(ctx, func(ctx workflow.Context) workflow.Future {
			return workflow.ExecuteActivity(ctx, call.Drains.WaitForPods, activities.WaitInput{
				Node: d.spec.Node, UID: d.node.nodeUID(), RunID: d.runID,
				PodSelector: wait.PodSelector, BlockedSignal: api.SignalDrainBlocked,
			})
		}, nil)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errHeld):
			continue
		case d.node.markLost(err):
			if err := d.node.restoreMark(); err != nil {
				return d.stop.stepFailed(err)
			}
		case timedOut(err):
			d.journal.note("gave up waiting for pods to complete after " + wait.Timeout.String())
			return nil
		default:
			return d.stop.stepFailed(err)
		}
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
