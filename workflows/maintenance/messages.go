package maintenance

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/workflows/inbox"
)

// handlers are the messages of people and scripts, in a fixed order, since they are registered by workflow code.
func (m *maintenance) handlers() []inbox.Handler {
	return []inbox.Handler{
		inbox.On(api.MsgDone, m.requestors.checkDone, m.requestors.applyDone),
		inbox.On(api.MsgFailed, m.requestors.checkFailed, m.requestors.applyFailed),
		inbox.On(api.MsgRetry, m.checkRetry, m.applyRetry),
		inbox.On(api.MsgCancel, m.checkCancel, m.applyCancel),
		inbox.On(api.MsgExtend, m.requestors.checkExtend, m.requestors.applyExtend),
		inbox.On(api.MsgStarted, m.requestors.checkStarted, m.requestors.applyStarted),
		inbox.On(api.MsgDrained, m.drainer.checkDrained, m.drainer.applyDrained),
		inbox.On(api.MsgJoin, m.requestors.checkJoin, m.requestors.applyJoin),
		inbox.On(api.MsgLeave, m.requestors.checkLeave, m.requestors.applyLeave),
		inbox.On(api.MsgEscalate, m.drainer.checkEscalate, m.drainer.applyEscalate),
		inbox.On(api.MsgSkipPod, m.drainer.checkSkipPod, m.drainer.applySkipPod),
		inbox.On(api.MsgRetryNow, m.drainer.checkRetryNow, m.drainer.applyRetryNow),
		inbox.On(api.MsgApprove, m.approval.checkDecision, m.approval.applyApprove),
		inbox.On(api.MsgDeny, m.approval.checkDecision, m.approval.applyDeny),
		inbox.On(api.MsgValidated, m.validator.checkValidated, m.validator.applyValidated),
		inbox.On(api.MsgValidationFailed, m.validator.checkValidationFailed, m.validator.applyValidationFailed),
		inbox.On(api.MsgHookDone, m.hooks.checkDone, m.hooks.applyDone),
		inbox.On(api.MsgSkipHook, m.hooks.checkSkip, m.hooks.applySkip),
	}
}

// listen takes every message from the first moment on: each as a signal and as an update, the status as a query, and
// the cancellation of the workflow.
func (m *maintenance) listen(root workflow.Context) error {
	if err := workflow.SetQueryHandlerWithOptions(root, api.QueryStatus, func() (api.Status, error) { return m.journal.status(), nil },
		workflow.QueryHandlerOptions{Description: "phase, what it waits for, progress, transitions, messages"}); err != nil {
		return err
	}
	if err := workflow.SetQueryHandlerWithOptions(root, api.QuerySlot, func() (api.SlotWanted, error) { return m.slot.wanted(), nil },
		workflow.QueryHandlerOptions{Description: "the slot it asks for or holds, for a scheduler that begins anew"}); err != nil {
		return err
	}
	in := inbox.New(m.clock.life, inbox.Ears{Applied: m.journal.received, Refused: m.journal.refused})
	if err := in.Take(m.handlers()...); err != nil {
		return err
	}
	for _, kind := range []string{api.SignalSlotGranted, api.SignalSlotPending, api.SignalSlotRefused} {
		inbox.Receive(in, kind, func(a api.SlotAnswer) { m.slot.answered(kind, a) })
	}
	inbox.Receive(in, api.SignalNodeChanged, m.hold.changed)
	inbox.Receive(in, api.SignalHold, m.freeze.told)
	inbox.Receive(in, api.SignalDrainBlocked, m.blocked)
	m.clock.unread = in.Unread
	in.Open(nil)
	workflow.GoNamed(m.clock.life, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		m.journal.received("cancellation of the workflow", api.Message{}, m.applyCancel(api.Cancel{}))
	})
	return nil
}

// blocked takes what an activity says keeps it from ending: the preflight's, the validation's or the drain's.
func (m *maintenance) blocked(p api.DrainProgress) {
	switch phase := m.journal.phase(); {
	case m.preflighter.waits:
		m.preflighter.stoppedBy(p)
	case phase == api.Validating:
		m.validator.notYet(p)
	case phase == api.Draining, phase == api.WaitingForPods:
		m.drainer.blocked(p)
	}
}

func (m *maintenance) checkRetry(p api.Simple) error {
	if m.validator.undecided() {
		return m.thisRun(p.Run)
	}
	return firstOf(m.thisRun(p.Run), m.journal.inPhase(api.RequestorFailed))
}

func (m *maintenance) applyRetry(api.Simple) string {
	if m.validator.undecided() {
		return m.validator.tryAgain()
	}
	return m.requestors.retry()
}

func (m *maintenance) checkCancel(p api.Cancel) error {
	if err := firstOf(m.thisRun(p.Run), m.journal.ending()); err != nil {
		return err
	}
	if phase := m.journal.phase(); (phase == api.RequestorFailed || phase == api.Validating) && !p.Release {
		return errors.New("the node stays out of service: give it back with {\"release\": true}")
	}
	return nil
}

// applyCancel undoes a maintenance that is not Ready yet. From Ready on the node may be half flashed: it stays out of
// service until somebody asks for its release.
func (m *maintenance) applyCancel(p api.Cancel) string {
	why := sentence("cancelled", p.By, p.Comment)
	if m.journal.ending() != nil {
		return "ignored: the maintenance is ending"
	}
	if !m.journal.heldByRequestor() {
		m.stop.cancel(why)
		return "the maintenance is undone"
	}
	if p.Release {
		m.stop.releaseNode(why)
		return "the node is released"
	}
	if m.journal.phase() == api.Ready {
		m.journal.requestorFailed(why + " while the requestor had the node")
	}
	return staysOut
}
