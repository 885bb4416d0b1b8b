package maintenance

import (
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
)

// confirm is called first in a run that came by reset: it goes on from the past, and may have given back since then what
// its state says it holds. Until the scheduler confirms the slot nothing is done to the node. It returns the run that
// the server names, by which two resets differ.
func (m *maintenance) confirm(ctx workflow.Context) (run string, err error) {
	// What is being given back is not held again: a mark after the release would stay.
	if m != nil {
		m.plans.ask() // targets that came since then are unknown
	}
	confirms := m != nil && m.slot.isHeld() && m.state.End == nil && !m.hold.releasing && m.state.Restarting == ""
	if confirms {
		m.control.unconfirmed = true
		defer func() { m.control.unconfirmed = false }()
	}
	if err := workflow.ExecuteLocalActivity(call.Local(ctx), call.Settings.Run).Get(ctx, &run); err != nil {
		return "", err
	}
	if !confirms {
		return run, nil
	}
	m.journal.note("somebody reset the workflow: it goes on when the scheduler has confirmed its slot")
	if err := m.confirmSlot(ctx); err != nil {
		// The guard, or the next step, meets the same error.
		workflow.GetLogger(ctx).Warn("the node was not held again after a reset", "error", err)
	}
	return run, nil
}

// confirmSlot asks the scheduler for the slot, and has the node's mark name this run, which shuts out the run before it.
func (m *maintenance) confirmSlot(ctx workflow.Context) error {
	if m.hold.Touched {
		_, err := m.hold.holdNode(ctx, m.hold.wantsCordon(), nodeevent.Event{Reason: api.EventReset, Warning: true,
			Message: m.summary() + ": somebody reset its workflow"})
		if call.IsError(err, api.ErrorSlotNotHeld) {
			m.control.loseSlot()
			return nil
		}
		return err
	}
	for {
		slot, err := run[api.SlotHeld](call.Quick(ctx, "ask for the slot"), call.Nodes.AskSlot, m.slot.named())
		if err == nil && slot.Rebuilding {
			err = workflow.Sleep(ctx, requestAgainFirst)
		}
		switch {
		case err != nil:
			return err
		case slot.Held:
			return nil
		case !slot.Rebuilding:
			m.control.loseSlot()
			return nil
		}
	}
}
