package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/workflows/inbox"
)

// handlers are the messages of people and scripts, in a fixed order: workflow code registers them.
func (m *maintenance) handlers() []inbox.Handler {
	a, d, r, v := m.admission, m.drainer, m.requestors, m.validator
	return []inbox.Handler{
		on(m, api.MsgDone, phases{api.Ready, api.RequestorFailed}, func(p api.Done) error { return r.check(p.Requestor) }, r.applyDone),
		on(m, api.MsgFailed, phases{api.Ready}, func(p api.FailedMessage) error { return r.check(p.Requestor) }, r.applyFailed),
		on(m, api.MsgRetry, nil, m.checkRetry, m.applyRetry),
		inbox.On(api.MsgCancel, m.checkCancel, m.applyCancel),
		judged(m, api.MsgExtend, phases{api.Ready}, r.checkExtend, r.applyExtend),
		on(m, api.MsgStarted, phases{api.Ready}, r.checkStarted, r.applyStarted),
		on(m, api.MsgDrained, phases{api.Draining}, d.checkDrained, d.applyDrained),
		judged(m, api.MsgJoin, nil, r.checkJoin, r.applyJoin),
		on(m, api.MsgLeave, nil, r.checkLeave, r.applyLeave),
		judged(m, api.MsgEscalate, phases{api.Draining}, d.checkEscalate, d.applyEscalate),
		judged(m, api.MsgSkipPod, phases{api.Draining}, d.checkSkipPod, d.applySkipPod),
		judged(m, api.MsgConsent, phases{api.Draining}, d.checkConsent, d.applyConsent).Since(changeMessages + api.MsgConsent),
		judged(m, api.MsgReschedule, nil, a.checkReschedule, a.applyReschedule).Since(changeMessages + api.MsgReschedule),
		on(m, api.MsgRetryNow, nil, d.checkRetryNow, d.applyRetryNow),
		on(m, api.MsgApprove, nil, a.checkDecision, func(p api.Simple) string { return a.takeWord(api.MsgApprove, p) }),
		on(m, api.MsgDeny, nil, a.checkDecision, func(p api.Simple) string { return a.takeWord(api.MsgDeny, p) }),
		on(m, api.MsgValidated, phases{api.Validating}, v.checkValidated, v.applyValidated),
		on(m, api.MsgValidationFailed, phases{api.Validating}, v.checkValidationFailed, v.applyValidationFailed),
		on(m, api.MsgHookDone, nil, m.checkHookDone, m.applyHookDone),
		judged(m, api.MsgSkipHook, nil, m.hooks.checkSkip, m.hooks.applySkip),
		inbox.On(api.MsgNote, m.checkNote, func(api.Simple) string { return "the comment is on record" }),
		inbox.On(api.MsgReportTo, m.outbox.checkReportTo, m.outbox.applyReportTo).Since(changeMessages + api.MsgReportTo),
	}
}

// phases are those in which a message counts; nil are all.
type phases []api.Phase

// on is the handler of a message to this run, which counts until it is decided that the maintenance ends.
func on[T inbox.Said](m *maintenance, name string, in phases, check func(T) error, apply func(T) string) inbox.Handler {
	return inbox.On(name, accepts(m, in, check), apply)
}

// judged is on for a message that is judged before it takes effect: check says whether it still counts then.
func judged[T inbox.Said](m *maintenance, name string, in phases, check func(T) error, apply func(p T, check func() error) string) inbox.Handler {
	accept := accepts(m, in, check)
	return inbox.On(name, accept, func(p T) string { return apply(p, func() error { return accept(p) }) })
}

func accepts[T inbox.Said](m *maintenance, in phases, check func(T) error) func(T) error {
	return func(p T) error {
		err := cmp.Or(m.control.refuse(), m.thisRun(api.RunOf(p)))
		if err == nil && in != nil {
			err = m.journal.inPhase(in...)
		}
		if err == nil {
			err = check(p)
		}
		return err
	}
}

// listen takes every message from the first moment on: each as a signal and as an update, the status as a query, and
// the cancellation of the workflow.
func (m *maintenance) listen(root workflow.Context) error {
	in := inbox.New(m.control.life, m.journal)
	if err := errors.Join(
		workflow.SetQueryHandlerWithOptions(root, api.QueryStatus, func() (api.Status, error) { return m.journal.status(), nil },
			workflow.QueryHandlerOptions{Description: "phase, what it waits for, progress, transitions, messages"}),
		workflow.SetQueryHandlerWithOptions(root, api.QuerySlot, func() (api.SlotWanted, error) { return m.slot.wanted(), nil },
			workflow.QueryHandlerOptions{Description: "the slot it asks for or holds, for a scheduler that begins anew"}),
		in.Take(m.journal, m, m.handlers()...),
	); err != nil {
		return err
	}
	for _, kind := range []string{api.SignalSlotGranted, api.SignalSlotPending, api.SignalSlotRefused} {
		inbox.Receive(in, kind, func(a api.SlotAnswer) { m.slot.answered(kind, a) })
	}
	inbox.Receive(in, api.SignalNodeChanged, m.hold.changed)
	inbox.Receive(in, api.SignalHold, m.control.takeFreeze)
	inbox.Receive(in, api.SignalDrainBlocked, m.blocked)
	inbox.Receive(in, api.SignalTarget, m.plans.receive)
	m.control.inbox = in
	in.Open()
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
	if outcomeOf(effect) != api.Judged || !changed(ctx, changeAnswer) {
		return effect, nil
	}
	v := j.judging[len(j.judging)-1]
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a maintenance that is cancelled says so
	if err := workflow.Await(ctx, v.settled); err != nil {
		return "", err
	}
	if why, refused := strings.CutPrefix(v.effect, ignored); refused {
		return "", errors.New(why)
	}
	return v.effect, nil
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
		return nil
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

func (m *maintenance) checkRetry(api.Simple) error {
	if m.validator.undecided() {
		return nil
	}
	if err := m.journal.inPhase(api.RequestorFailed); err != nil {
		return fmt.Errorf("%w, nor has it failed its validation", err)
	}
	return nil
}

func (m *maintenance) applyRetry(api.Simple) string {
	if m.validator.undecided() {
		m.validator.word = &verdict{retry: true}
		return "what failed is tried again"
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
	if err := cmp.Or(m.thisRun(p.Run), m.control.refuse(), m.journal.ending()); err != nil {
		return err
	}
	if p.BeforeReady && p.Release {
		return errors.New("release: is of no use with beforeReady, which leaves alone what is Ready: leave one of the two out")
	}
	if p.BeforeReady && m.journal.heldByRequestor() {
		return errors.New("the node is Ready or past that, and is left to its requestors (beforeReady)")
	}
	if phase := m.journal.phase(); (phase == api.RequestorFailed || phase == api.Validating) && !p.Release {
		return fmt.Errorf("%s is %s and stays out of service: give it back with {\"release\": true}", m.spec.Node, phase)
	}
	return nil
}

// applyCancel undoes a maintenance that is not Ready yet. From Ready on the node may be half flashed: it stays out of
// service until somebody asks for its release.
func (m *maintenance) applyCancel(p api.Cancel) string {
	why := bounds.Cut(sentence("cancelled", p.By, p.Comment), bounds.Text)
	if m.journal.ending() != nil || m.control.refuse() != nil {
		return ignored + errEnding.Error()
	}
	if !m.journal.heldByRequestor() {
		m.control.set(cancelled, why)
		if !slices.ContainsFunc(m.journal.status().Transitions, func(t api.Transition) bool { return t.Phase == api.Cordoning }) {
			return "cancelled; the node was not touched"
		}
		return m.givenBack()
	}
	if p.Release {
		m.control.set(released, why)
		return m.givenBack()
	}
	if m.journal.phase() == api.Ready {
		m.journal.requestorFailed(why + " while the requestor had the node")
	}
	return staysOut
}

// givenBack is the effect of a cancellation that undoes what was done to the node.
func (m *maintenance) givenBack() string {
	effect := "cancelled; the node is being put back"
	if plans := m.journal.s.PlansGoOn(); plans != "" {
		effect += ", and " + plans
	}
	return effect
}
