package profiletransition

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/inbox"
)

const (
	// slotWithin is how long a transition waits for its slot. After that what it was decided on may not be so any more.
	slotWithin = 2 * time.Minute
	// askAgain is after what time the scheduler is asked again that has not answered.
	askAgain = 20 * time.Second
)

// slot is what lets a transition take its node out of service.
type slot struct {
	request api.SlotRequest
	// wants: it is requested, or held.
	wants     bool
	grantedAt *time.Time
	// answer is the latest answer but a grant, refused that it is the last.
	answer  string
	refused bool
	// opensAt is that of the latest answer.
	opensAt time.Time
}

// listenForSlot takes the scheduler's answers, and answers its question.
func (t *transition) listenForSlot(box *inbox.Inbox) error {
	t.slot.request = api.SlotRequest{RunID: t.in.RunID, Request: schedule.Request{
		ID: t.in.RunID + "/1", Node: t.in.Node, Requestor: api.ProfileRequestorPrefix + t.in.Profile, Created: t.in.Since, Kind: schedule.KindProfile,
	}}
	for _, signal := range []string{api.SignalSlotGranted, api.SignalSlotPending, api.SignalSlotRefused} {
		inbox.Receive(box, signal, func(a api.SlotAnswer) { t.answered(signal, a) })
	}
	return workflow.SetQueryHandlerWithOptions(t.ctx, api.QuerySlot, func() (api.SlotWanted, error) {
		return api.SlotWanted{SlotRequest: t.slot.request, Wants: t.slot.wants, GrantedAt: t.slot.grantedAt}, nil
	}, workflow.QueryHandlerOptions{Description: "the slot by which it takes the node out of service"})
}

func (t *transition) answered(signal string, a api.SlotAnswer) {
	s := &t.slot
	if !s.wants || s.grantedAt != nil || a.RequestID != s.request.ID {
		return
	}
	if signal == api.SignalSlotGranted {
		now := workflow.Now(t.ctx)
		s.grantedAt = &now
		return
	}
	s.refused = s.refused || signal == api.SignalSlotRefused
	s.answer, s.opensAt = bounds.Cut(a.Reason, bounds.Text), time.Time{}
	if a.OpensAt != nil {
		s.opensAt = *a.OpensAt
	}
	t.describe()
}

// acquire asks the scheduler for the slot, and says why it has none. What the scheduler says of it the activities ask again.
func (t *transition) acquire() (why string) {
	t.does("wait for a slot of " + t.in.Node)
	t.slot.wants = true
	end := workflow.Now(t.ctx).Add(slotWithin)
	for {
		err := workflow.SignalExternalWorkflow(t.ctx, t.scheduler(), "", api.SignalSlotRequest, t.slot.request).Get(t.ctx, nil)
		if t.ctx.Err() != nil {
			return "it was cancelled"
		}
		if err != nil {
			t.slot.answer = "the scheduler does not run"
		}
		wait := min(askAgain, end.Sub(workflow.Now(t.ctx)))
		if wait <= 0 {
			break
		}
		_, err = workflow.AwaitWithOptions(t.ctx, workflow.AwaitOptions{
			Timeout: wait, TimerOptions: workflow.TimerOptions{Summary: "ask the scheduler again"},
		}, func() bool { return t.slot.grantedAt != nil || t.slot.refused })
		switch {
		case err != nil:
			return "it was cancelled"
		case t.slot.grantedAt != nil:
			return ""
		case t.slot.refused:
			return "it gets no slot: " + t.slot.answer
		}
	}
	return "it waits for a slot: " + cmp.Or(t.slot.answer, "the scheduler does not answer")
}

// giveBackSlot gives the slot back, or takes the request back. Where that is not delivered the scheduler finds that the workflow has ended.
func (t *transition) giveBackSlot() {
	if !t.slot.wants {
		return
	}
	t.slot.wants = false
	ctx, cancel := workflow.NewDisconnectedContext(t.ctx)
	defer cancel()
	release := api.SlotRelease{RequestID: t.slot.request.ID}
	if err := workflow.SignalExternalWorkflow(ctx, t.scheduler(), "", api.SignalSlotRelease, release).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("the scheduler finds out by itself that a slot is given back", "node", t.in.Node, "error", err)
	}
}

func (t *transition) scheduler() string {
	return api.SchedulerID(api.ClusterOf(workflow.GetInfo(t.ctx).TaskQueueName))
}
