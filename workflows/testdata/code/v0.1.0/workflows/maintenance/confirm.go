package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/nodeevent"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// confirm is what a run does first that came by reset: it goes on from the past, and may have given back since then what
// it believes to hold. Until the scheduler has confirmed the slot nothing is done to the node. It returns the run that
// the server names, by which one reset is told from the next.
func (m *maintenance) confirm(ctx workflow.Context) (run string, err error) {
	// What is being given back is not held again: the release goes on, and marks that follow it would stay.
	confirms := m != nil && m.slot.isHeld() && m.end == nil && !m.hold.releasing && m.restarting == nil
	if confirms {
		m.freeze.unconfirmed = true
		defer func() { m.freeze.unconfirmed = false }()
	}
	if err := workflow.ExecuteLocalActivity(call.Local(ctx), call.Settings.Run).Get(ctx, &run); err != nil {
		return "", err
	}
	if !confirms {
		return run, nil
	}
	m.journal.note("somebody reset the workflow: it goes on when the scheduler has confirmed its slot")
	if err := m.confirmSlot(ctx); err != nil {
		// What the node's guard, or the next step, finds as well.
		workflow.GetLogger(ctx).Warn("the node was not held again after a reset", "error", err)
	}
	return run, nil
}

// confirmSlot asks the scheduler for the slot, and has the node's mark name this run, which fences the run before it.
func (m *maintenance) confirmSlot(ctx workflow.Context) error {
	if m.hold.Touched {
		_, err := m.hold.holdNode(ctx, m.hold.wantsCordon(), nodeevent.Event{Reason: "MaintenanceReset", Warning: true,
			Message: m.summary() + ": somebody reset its workflow"})
		var cause *temporal.ApplicationError
		if errors.As(err, &cause) && cause.Type() == api.ErrorSlotNotHeld {
			m.stop.loseSlot()
			return nil
		}
		return err
	}
	var slot api.SlotHeld
	for {
		err := workflow.ExecuteActivity(call.Quick(ctx, "ask for the slot"), call.Nodes.AskSlot, m.slot.named()).Get(ctx, &slot)
		if err != nil {
			return err
		}
		if !slot.Rebuilding {
			break
		}
		if err := workflow.Sleep(ctx, askAgainFirst); err != nil {
			return err
		}
	}
	if !slot.Held {
		m.stop.loseSlot()
	}
	return nil
}
