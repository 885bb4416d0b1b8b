package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	"errors"
	"go.temporal.io/sdk/workflow"
	"strings"
)

// handlers are the messages of people and scripts, in a fixed order, since they are registered by workflow code.
func (m *maintenance) handlers() []inbox.Handler {
	return []inbox.Handler{
		inbox.On(api.MsgDone, unlessEnding(m, m.requestors.checkDone), m.requestors.applyDone),
		inbox.On(api.MsgFailed, unlessEnding(m, m.requestors.checkFailed), m.requestors.applyFailed),
		inbox.On(api.MsgRetry, unlessEnding(m, m.checkRetry), m.applyRetry),
		inbox.On(api.MsgCancel, m.checkCancel, m.applyCancel),
		inbox.On(api.MsgExtend, unlessEnding(m, m.requestors.checkExtend), m.requestors.applyExtend),
		inbox.On(api.MsgStarted, unlessEnding(m, m.requestors.checkStarted), m.requestors.applyStarted),
		inbox.On(api.MsgDrained, unlessEnding(m, m.drainer.checkDrained), m.drainer.applyDrained),
		inbox.On(api.MsgJoin, unlessEnding(m, m.requestors.checkJoin), m.requestors.applyJoin),
		inbox.On(api.MsgLeave, unlessEnding(m, m.requestors.checkLeave), m.requestors.applyLeave),
		inbox.On(api.MsgEscalate, unlessEnding(m, m.drainer.checkEscalate), m.drainer.applyEscalate),
		inbox.On(api.MsgSkipPod, unlessEnding(m, m.drainer.checkSkipPod), m.drainer.applySkipPod),
		inbox.On(api.MsgRetryNow, unlessEnding(m, m.drainer.checkRetryNow), m.drainer.applyRetryNow),
		inbox.On(api.MsgApprove, unlessEnding(m, m.approval.checkDecision), m.approval.applyApprove),
		inbox.On(api.MsgDeny, unlessEnding(m, m.approval.checkDecision), m.approval.applyDeny),
		inbox.On(api.MsgValidated, unlessEnding(m, m.validator.checkValidated), m.validator.applyValidated),
		inbox.On(api.MsgValidationFailed, unlessEnding(m, m.validator.checkValidationFailed), m.validator.applyValidationFailed),
		inbox.On(api.MsgHookDone, unlessEnding(m, m.hooks.checkDone), m.hooks.applyDone),
		inbox.On(api.MsgSkipHook, unlessEnding(m, m.hooks.checkSkip), m.hooks.applySkip),
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
	in := inbox.New(m.clock.life, inbox.Ears{
		Known: m.journal.knows,
		Applied: func(name string, who api.Message, effect string) {
			m.journal.received(name, who, outcomeOf(effect), effect)
		},
		Refused: func(name string, who api.Message, outcome api.Outcome, why error) {
			m.journal.received(name, who, outcome, ignored+why.Error())
		},
	})
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
	m.leave.idle = append(m.leave.idle, func() bool { return !in.Unread() })
	in.Open(nil)
	workflow.GoNamed(m.clock.life, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		effect := m.applyCancel(api.Cancel{})
		m.journal.received("cancellation of the workflow", api.Message{}, outcomeOf(effect), effect)
	})
	return nil
}

// ignored begins the effect of a message that had none.
const ignored = "ignored: "

func outcomeOf(effect string) api.Outcome {
	switch {
	case strings.HasPrefix(effect, ignored):
		return api.Ignored
	case effect == beingJudged:
		return api.Judged
	default:
		return api.Applied
	}
}

// unlessEnding refuses a message once it is decided that the maintenance ends: whoever decided that was told so.
func unlessEnding[T any](m *maintenance, check func(T) error) func(T) error {
	return func(payload T) error { return firstOf(m.stop.refuse(), check(payload)) }
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
	if err := firstOf(m.thisRun(p.Run), m.stop.refuse(), m.journal.ending()); err != nil {
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
	why := bounds.Cut(sentence("cancelled", p.By, p.Comment), bounds.Text)
	if m.journal.ending() != nil || m.stop.refuse() != nil {
		return ignored + errEnding.Error()
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
