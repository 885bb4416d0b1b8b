package maintenance

import (
	"errors"
	"strings"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/workflows/inbox"
)

// handlers are the messages of people and scripts, in a fixed order: workflow code registers them.
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
		inbox.On(api.MsgConsent, unlessEnding(m, m.drainer.checkConsent), m.drainer.applyConsent).Since(changeConsent),
		inbox.On(api.MsgReschedule, unlessEnding(m, m.admission.checkReschedule), m.admission.applyReschedule).Since(changeReschedule),
		inbox.On(api.MsgRetryNow, unlessEnding(m, m.drainer.checkRetryNow), m.drainer.applyRetryNow),
		inbox.On(api.MsgApprove, unlessEnding(m, m.admission.checkDecision), m.admission.applyApprove),
		inbox.On(api.MsgDeny, unlessEnding(m, m.admission.checkDecision), m.admission.applyDeny),
		inbox.On(api.MsgValidated, unlessEnding(m, m.validator.checkValidated), m.validator.applyValidated),
		inbox.On(api.MsgValidationFailed, unlessEnding(m, m.validator.checkValidationFailed), m.validator.applyValidationFailed),
		inbox.On(api.MsgHookDone, unlessEnding(m, m.checkHookDone), m.applyHookDone),
		inbox.On(api.MsgSkipHook, unlessEnding(m, m.hooks.checkSkip), m.hooks.applySkip),
		inbox.On(api.MsgNote, m.checkNote, func(api.Simple) string { return "on record" }),
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
	in := inbox.New(m.control.life, m.journal)
	for _, h := range m.handlers() {
		if err := in.Take(m.journal, h.Answered(m.journal)); err != nil {
			return err
		}
	}
	for _, kind := range []string{api.SignalSlotGranted, api.SignalSlotPending, api.SignalSlotRefused} {
		inbox.Receive(in, kind, func(a api.SlotAnswer) { m.slot.answered(kind, a) })
	}
	inbox.Receive(in, api.SignalNodeChanged, m.hold.changed)
	inbox.Receive(in, api.SignalHold, m.control.takeFreeze)
	inbox.Receive(in, api.SignalDrainBlocked, m.blocked)
	inbox.Receive(in, api.SignalTarget, m.plans.receive)
	m.control.inbox = in
	in.Open(nil)
	workflow.GoNamed(m.control.life, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		effect := m.applyCancel(api.Cancel{})
		m.journal.received("cancellation of the workflow", api.Message{}, outcomeOf(effect), effect)
	})
	return nil
}

// ignored is how the effect of a message that had none begins.
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

// Answer is what the sender of an update gets: of a message that is judged, what became of it.
func (j *journal) Answer(ctx workflow.Context, effect string) (string, error) {
	if outcomeOf(effect) != api.Judged || !changed(ctx, changeJudgedAnswer) {
		return effect, nil
	}
	v := j.judging[len(j.judging)-1]
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a maintenance that is cancelled says so
	if err := workflow.Await(ctx, func() bool { return v.effect != "" }); err != nil {
		return "", err
	}
	if why, refused := strings.CutPrefix(v.effect, ignored); refused {
		return "", errors.New(why)
	}
	return v.effect, nil
}

// unlessEnding refuses a message once it is decided that the maintenance ends.
func unlessEnding[T any](m *maintenance, check func(T) error) func(T) error {
	return func(payload T) error { return firstOf(m.control.refuse(), check(payload)) }
}

// blocked takes what keeps an activity from ending: the preflight, the validation or the drain.
func (m *maintenance) blocked(p api.DrainProgress) {
	switch phase := m.journal.phase(); {
	case m.admission.inPreflight:
		m.admission.preflightBlocked(p)
	case m.hold.moving:
		m.hold.leftBehind(p)
	case phase == api.Validating:
		m.validator.notYet(p)
	case phase == api.Draining, phase == api.WaitingForPods:
		m.drainer.blocked(p)
	}
}

// checkHookDone and applyHookDone are about a hook, or about work that somebody does, as a hook of kind signal.
func (m *maintenance) checkHookDone(p api.HookMessage) error {
	if m.requestors.work.awaitsWord(p.Hook) {
		return m.thisRun(p.Run)
	}
	return m.hooks.checkDone(p)
}

func (m *maintenance) applyHookDone(p api.HookMessage) string {
	if !m.requestors.work.awaitsWord(p.Hook) {
		return m.hooks.applyDone(p)
	}
	word, effect := "declared done", "is done"
	if p.Failed {
		word, effect = "declared failed", "has failed"
	}
	m.requestors.work.speak(!p.Failed, sentence(word, p.By, p.Comment))
	return "work " + p.Hook + " " + effect
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

// checkNote needs no named change: a release that did not know notes has done no more than record that one came.
func (m *maintenance) checkNote(p api.Simple) error {
	if strings.TrimSpace(p.Comment) == "" {
		return errors.New("comment: missing: it is what goes on record")
	}
	return m.thisRun(p.Run)
}

func (m *maintenance) checkCancel(p api.Cancel) error {
	if err := firstOf(m.thisRun(p.Run), m.control.refuse(), m.journal.ending()); err != nil {
		return err
	}
	if p.BeforeReady && p.Release {
		return errors.New("release: is of no use with beforeReady, which leaves alone what is Ready: leave one of the two out")
	}
	if p.BeforeReady && m.journal.heldByRequestor() {
		return errLeftAlone
	}
	if phase := m.journal.phase(); (phase == api.RequestorFailed || phase == api.Validating) && !p.Release {
		return errors.New("the node stays out of service: give it back with {\"release\": true}")
	}
	return nil
}

var errLeftAlone = errors.New("the node is Ready or past that: it is finished (beforeReady)")

// applyCancel undoes a maintenance that is not Ready yet. From Ready on the node may be half flashed: it stays out of
// service until somebody asks for its release.
func (m *maintenance) applyCancel(p api.Cancel) string {
	why := bounds.Cut(sentence("cancelled", p.By, p.Comment), bounds.Text)
	if m.journal.ending() != nil || m.control.refuse() != nil {
		return ignored + errEnding.Error()
	}
	if !m.journal.heldByRequestor() {
		m.control.cancel(why)
		return "the maintenance is undone"
	}
	if p.BeforeReady {
		return ignored + errLeftAlone.Error()
	}
	if p.Release {
		m.control.releaseNode(why)
		return "the node is released"
	}
	if m.journal.phase() == api.Ready {
		m.journal.requestorFailed(why + " while the requestor had the node")
	}
	return staysOut
}
