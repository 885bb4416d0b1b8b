package maintenance

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	checkactivity "drydock/activities/checks"
	"drydock/api"
	"drydock/checks"
	"drydock/rules/validation"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
)

// When hooks are called.
const (
	hookBeforeCordon  = "beforeCordon"
	hookAfterDrain    = "afterDrain"
	hookBeforeRelease = "beforeRelease"
	hookClosing       = "closing"
)

// hook is one call of a hook.
type hook struct {
	validation.HookPlan
	when string
	key  string
	// word is what somebody said of it: that it is done, has failed, or is to be skipped.
	word *hookWord
	// captured is what its closing gets to know of it.
	captured string
}

type hookWord struct {
	by, comment     string
	failed, skipped bool
}

func (m *maintenance) beforeCordon() error {
	if err := m.callHooks(hookBeforeCordon, m.spec.Hooks.BeforeCordon); err != nil {
		return m.stepFailed(err)
	}
	return nil
}

func (m *maintenance) afterDrain() error {
	if err := m.callHooks(hookAfterDrain, m.spec.Hooks.AfterDrain); err != nil {
		return m.stepFailed(err)
	}
	return nil
}

// beforeRelease calls the last hooks. The node stays out of service where one of them fails, until somebody decides.
func (m *maintenance) beforeRelease() error {
	names := m.spec.Hooks.BeforeRelease
	if len(names) == 0 {
		return nil
	}
	if m.status.Phase != api.Validating {
		// From here on the requestor has no say any more.
		m.enter(api.Validating, "the hooks before the release")
		m.showPhase()
	}
	for {
		err := m.callHooks(hookBeforeRelease, names)
		if over := m.decided(); over != nil || err == nil {
			return over
		}
		again, err := m.incomplete(fmt.Sprintf("before the release: %v", err))
		if err != nil || !again {
			return err
		}
	}
}

// callHooks calls hooks one after the other. Those that do not block go on beside the maintenance.
func (m *maintenance) callHooks(when string, names []string) error {
	for _, name := range names {
		if err := m.gate(when); err != nil {
			return err
		}
		i := slices.IndexFunc(m.hookPlans, func(p validation.HookPlan) bool { return p.Name == name })
		if i < 0 {
			return ending{phase: api.Failed, message: fmt.Sprintf("hook %q is not in the worker's configuration", name)}
		}
		m.hooksCalled++
		h := &hook{HookPlan: m.hookPlans[i], when: when, key: fmt.Sprintf("%s/%s/%d", m.status.RunID, name, m.hooksCalled)}
		// Before the call: one that broke off half way is to be closed too.
		if h.HasClosing {
			m.toClose = append(m.toClose, h)
		}
		if !h.Blocking {
			m.beside++
			workflow.GoNamed(m.life, "hook "+name, func(ctx workflow.Context) {
				defer func() { m.beside-- }()
				m.noteHook(h, m.call(ctx, h))
			})
			continue
		}
		m.waiting("hook " + name)
		err := m.call(m.hookContext(), h)
		m.waiting("")
		m.noteHook(h, err)
		if m.steps.Err() != nil && when != hookBeforeRelease {
			return m.interrupted()
		}
		if over := m.decided(); over != nil {
			return over
		}
		if err != nil && h.OnFailure == validation.FailMaintenance {
			return ending{phase: api.Failed, message: fmt.Sprintf("hook %s %s failed: %s", name, when, inbox.CauseOf(err))}
		}
	}
	return nil
}

// gate is what a side effect waits for, before the node is Ready and after.
func (m *maintenance) gate(when string) error {
	if when == hookBeforeRelease {
		return m.thawed()
	}
	return m.proceed()
}

// hookContext ends with the steps until the node is Ready, and with nothing after that.
func (m *maintenance) hookContext() workflow.Context {
	if m.status.Phase == api.Validating {
		return m.life
	}
	return m.steps
}

// call calls a hook and waits for its end, for somebody's word on it, or for its deadline.
func (m *maintenance) call(ctx workflow.Context, h *hook) error {
	m.openHooks = append(m.openHooks, h)
	m.showHooks()
	defer func() {
		m.openHooks = slices.DeleteFunc(m.openHooks, func(other *hook) bool { return other == h })
		m.showHooks()
	}()
	spoken := func() bool { return h.word != nil || m.decided() != nil }
	if h.Kind == validation.KindSignal {
		m.waiting(fmt.Sprintf(`%q of hook %s`, api.MsgHookDone, h.Name))
		_, err := m.awaitUpTo(ctx, h.Deadline.Std(), "deadline of hook "+h.Name, spoken)
		if err == nil && !spoken() {
			err = fmt.Errorf("nobody said that it is done within %s", h.Deadline)
		}
		return h.outcome(err)
	}
	calling, cancel := workflow.WithCancel(call.Within(call.Stoppable(ctx, "hook "+h.Name), h.Deadline.Std()))
	defer cancel()
	in := checkactivity.HookInput{Hook: h.Name, Subject: m.subject(), Key: h.key}
	future := workflow.ExecuteActivity(calling, call.Checks.CallHook, in)
	err := workflow.Await(ctx, func() bool { return future.IsReady() || spoken() })
	var outcome checks.Outcome
	if !future.IsReady() {
		cancel()
		m.await(future.IsReady)
	}
	if ended := future.Get(m.life, &outcome); err == nil {
		err = ended
	}
	h.captured = outcome.Captured
	if err != nil || h.word != nil {
		m.abandon(in)
	}
	return h.outcome(err)
}

func (m *maintenance) showHooks() {
	m.status.OpenHooks = nil
	for _, h := range m.openHooks {
		m.status.OpenHooks = append(m.status.OpenHooks, h.Name)
	}
}

// outcome is the error of a call, which somebody's word comes before.
func (h *hook) outcome(err error) error {
	switch {
	case h.word == nil:
		return err
	case h.word.failed:
		return temporal.NewNonRetryableApplicationError(inbox.Sentence("declared failed", h.word.by, h.word.comment), api.ErrorHookFailed, nil)
	default:
		return nil
	}
}

// abandon ends what a hook may have left running.
func (m *maintenance) abandon(in checkactivity.HookInput) {
	ctx := call.Within(call.Quick(m.life, "end hook "+in.Hook), call.TidyWithin)
	if err := workflow.ExecuteActivity(ctx, call.Checks.AbandonHook, in).Get(m.life, nil); err != nil {
		workflow.GetLogger(m.life).Warn("a hook may have left a Job", "hook", in.Hook, "error", err)
	}
}

// noteHook records how a call ended.
func (m *maintenance) noteHook(h *hook, err error) {
	run := api.HookRun{At: workflow.Now(m.life), Name: h.Name, When: h.when, Outcome: "done"}
	switch {
	case h.word != nil && h.word.skipped:
		run.Outcome, run.By = inbox.Sentence("skipped", "", h.word.comment), h.word.by
	case err != nil:
		run.Outcome = "failed: " + inbox.CauseOf(err)
	}
	m.status.Hooks = bounded(m.status.Hooks, run)
	m.note(fmt.Sprintf("hook %s %s: %s", h.Name, h.when, run.Outcome))
}

// closingFor is how long the closing of a hook is tried at least.
const closingFor = 30 * time.Minute

// closeHooks calls the closings of all hooks that were called, the latest first, on every end of an attempt. Hooks that
// go on beside the maintenance are waited for where it was completed, and skipped where it was not.
func (m *maintenance) closeHooks(completed bool) {
	if !completed {
		for _, h := range m.openHooks {
			h.word = &hookWord{skipped: true, comment: "the attempt is over"}
		}
	}
	if m.beside > 0 {
		m.waiting("the hooks that go on beside it")
		m.await(func() bool { return m.beside == 0 })
	}
	for _, h := range slices.Backward(m.toClose) {
		m.waiting("the closing of hook " + h.Name)
		subject := m.subject()
		subject.Captured = h.captured
		ctx := call.Within(call.Long(m.life, "close hook "+h.Name), max(h.Deadline.Std(), closingFor))
		err := workflow.ExecuteActivity(ctx, call.Checks.CallHook, checkactivity.HookInput{
			Hook: h.Name, Closing: true, Subject: subject, Key: h.key + "/" + hookClosing,
		}).Get(m.life, nil)
		m.noteHook(&hook{HookPlan: h.HookPlan, when: hookClosing}, err)
	}
	m.toClose = nil
}

// subject is what hooks and checks are told of the maintenance.
func (m *maintenance) subject() checks.Subject {
	return checks.Subject{
		Node: m.spec.Node, Requestor: m.spec.Requestor, Reason: m.spec.Reason, Ticket: m.spec.Ticket, Cluster: m.cluster,
		WorkflowID: m.status.WorkflowID, RunID: m.status.RunID,
	}
}

// openHook is the hook of a name that is under way.
func (m *maintenance) openHook(name string) *hook {
	for _, h := range m.openHooks {
		if h.Name == name && h.word == nil {
			return h
		}
	}
	return nil
}

func (m *maintenance) checkHookDone(p api.HookMessage) error {
	if err := m.checkHook(p); err != nil {
		return err
	}
	if h := m.openHook(p.Hook); h.Kind != validation.KindSignal {
		return fmt.Errorf("hook %s is of kind %s, which ends by itself: %q goes on without it", p.Hook, h.Kind, api.MsgSkipHook)
	}
	return nil
}

func (m *maintenance) checkSkipHook(p api.HookMessage) error {
	if p.Failed {
		return errors.New(`failed: has a meaning in "hook-done" only`)
	}
	return m.checkHook(p)
}

func (m *maintenance) checkHook(p api.HookMessage) error {
	if err := firstOf(m.thisRun(p.Run), validation.Name(p.Hook)); err != nil {
		return err
	}
	if m.openHook(p.Hook) == nil {
		return fmt.Errorf("hook %s is not waited for now", p.Hook)
	}
	return nil
}

func (m *maintenance) applyHookDone(p api.HookMessage) string {
	return m.speak(p, hookWord{failed: p.Failed}, "is done")
}

func (m *maintenance) applySkipHook(p api.HookMessage) string {
	return m.speak(p, hookWord{skipped: true}, "is skipped")
}

func (m *maintenance) speak(p api.HookMessage, word hookWord, effect string) string {
	h := m.openHook(p.Hook)
	if h == nil {
		return "ignored: hook " + p.Hook + " is not waited for now"
	}
	word.by, word.comment = p.By, p.Comment
	h.word = &word
	if word.failed {
		effect = "has failed"
	}
	return "hook " + p.Hook + " " + effect
}
