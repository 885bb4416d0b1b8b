package maintenance

import (
	checkactivity "drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/checks"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/checks"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/validation"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"fmt"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"slices"
	"time"
)

// When hooks are called.
const (
	hookBeforeCordon  = "beforeCordon"
	hookAfterDrain    = "afterDrain"
	hookBeforeRelease = "beforeRelease"
	hookCleanup       = "closing"
)

// hooks calls what the specification names on the way of a maintenance, and undoes it on every end of an attempt.
type hooks struct {
	core
	hooksState
	// open are under way, background of them beside the maintenance.
	open       []*hook
	background int
}

// hooksState is what the next run has to know: ToClean were called and have a cleanup, Called counts the calls.
type hooksState struct {
	ToClean []cleanup `json:"toClean,omitempty"`
	Called  int       `json:"called,omitempty"`
}

// cleanup is what undoes a call of a hook. Captured is what it gets to know of that.
type cleanup struct {
	Hook     validation.Hook `json:"hook"`
	Key      string          `json:"key"`
	Captured string          `json:"captured,omitempty"`
}

// idle tells that no hook is under way.
func (h *hooks) idle() bool { return len(h.open) == 0 && h.background == 0 }

func (h *hooks) beforeCordon() error { return h.step(hookBeforeCordon, h.spec.Hooks.BeforeCordon) }

func (h *hooks) afterDrain() error { return h.step(hookAfterDrain, h.spec.Hooks.AfterDrain) }

func (h *hooks) step(when string, names []string) error {
	if err := h.callAll(when, names); err != nil {
		return h.stop.stepFailed(err)
	}
	return nil
}

// callAll calls hooks one after the other. Those that do not block go on in the background.
func (h *hooks) callAll(when string, names []string) error {
	for _, name := range names {
		if err := h.freeze.proceed(); err != nil {
			return err
		}
		one, err := h.next(when, name)
		if err != nil {
			return err
		}
		if !one.Blocking {
			h.inBackground(one)
			continue
		}
		h.journal.waiting("hook " + name)
		err = h.call(h.clock.life, one)
		h.journal.waiting("")
		h.note(one, err)
		if over := h.stop.decided(); over != nil {
			return over
		}
		if err != nil && one.OnFailure == validation.FailMaintenance {
			return ending{Phase: api.Failed, Message: fmt.Sprintf("hook %s %s failed: %s", name, when, call.Cause(err))}
		}
	}
	return nil
}

// next is the next call of a hook, which is to be undone from now on: one that broke off half way too.
func (h *hooks) next(when, name string) (*hook, error) {
	i := slices.IndexFunc(h.prepared.Hooks, func(p validation.Hook) bool { return p.Name == name })
	if i < 0 {
		return nil, ending{Phase: api.Failed, Message: fmt.Sprintf("hook %q is not in the worker's configuration", name)}
	}
	h.Called++
	one := &hook{Hook: h.prepared.Hooks[i], when: when, key: fmt.Sprintf("%s/%s/%d", h.runID, name, h.Called)}
	if one.HasCleanup {
		h.ToClean = append(h.ToClean, cleanup{Hook: one.Hook, Key: one.key})
	}
	return one, nil
}

func (h *hooks) inBackground(one *hook) {
	h.background++
	workflow.GoNamed(h.clock.life, "hook "+one.Name, func(ctx workflow.Context) {
		defer func() { h.background-- }()
		h.note(one, h.call(ctx, one))
	})
}

// capture keeps what a call is undone with.
func (h *hooks) capture(key, captured string) {
	for i := range h.ToClean {
		if h.ToClean[i].Key == key {
			h.ToClean[i].Captured = captured
		}
	}
}

// show tells which hooks are under way.
func (h *hooks) show() {
	h.journal.change(func(s *api.Status) {
		s.OpenHooks = nil
		for _, one := range h.open {
			s.OpenHooks = append(s.OpenHooks, one.Name)
		}
	})
}

// note records how a call ended.
func (h *hooks) note(one *hook, err error) {
	run := api.HookRun{At: h.clock.now(), Name: one.Name, When: one.when, Outcome: "done"}
	switch {
	case one.word != nil && one.word.skipped:
		run.Outcome, run.By = sentence("skipped", "", one.word.comment), one.word.by
	case err != nil:
		run.Outcome = "failed: " + call.Cause(err)
	}
	h.journal.change(func(s *api.Status) { s.Hooks = bounded(s.Hooks, run) })
	h.journal.note(fmt.Sprintf("hook %s %s: %s", one.Name, one.when, run.Outcome))
}

// cleanupFor is how long the cleanup of a hook is tried at least.
const cleanupFor = 30 * time.Minute

// cleanUp undoes all hooks that were called, the latest first, on every end of an attempt. Hooks in the background are
// waited for where the maintenance was completed, and skipped where it was not.
func (h *hooks) cleanUp(completed bool) {
	if !completed {
		for _, one := range h.open {
			one.word = &hookWord{skipped: true, comment: "the attempt is over"}
		}
	}
	if h.background > 0 {
		h.journal.waiting("the hooks that go on beside it")
		h.clock.await(func() bool { return h.background == 0 })
	}
	for _, one := range slices.Backward(h.ToClean) {
		h.journal.waiting("the closing of hook " + one.Hook.Name)
		subject := h.subject()
		subject.Captured = one.Captured
		ctx := call.Within(call.Long(h.clock.life, "close hook "+one.Hook.Name), max(one.Hook.Deadline.Std(), cleanupFor))
		err := workflow.ExecuteActivity(ctx, call.Checks.CallHook, checkactivity.HookInput{
			Hook: one.Hook.Name, Cleanup: true, Subject: subject, Key: one.Key + "/" + hookCleanup,
		}).Get(h.clock.life, nil)
		h.note(&hook{Hook: one.Hook, when: hookCleanup}, err)
	}
	h.ToClean = nil
}

// hook is one call of a hook.
type hook struct {
	validation.Hook
	when string
	key  string
	// word is what somebody said of it: that it is done, has failed, or is to be skipped.
	word *hookWord
}

type hookWord struct {
	by, comment     string
	failed, skipped bool
}

// outcome is the error of a call, which somebody's word comes before.
func (h *hook) outcome(err error) error {
	switch {
	case h.word == nil:
		return err
	case h.word.failed:
		return temporal.NewNonRetryableApplicationError(sentence("declared failed", h.word.by, h.word.comment), api.ErrorHookFailed, nil)
	default:
		return nil
	}
}

// call calls a hook and waits for its end, for somebody's word on it, or for its deadline.
func (h *hooks) call(ctx workflow.Context, one *hook) error {
	h.open = append(h.open, one)
	h.show()
	defer func() {
		h.open = slices.DeleteFunc(h.open, func(other *hook) bool { return other == one })
		h.show()
	}()
	spoken := func() bool { return one.word != nil || h.stop.stopped() }
	if one.Kind == validation.KindSignal {
		return one.outcome(h.awaitWord(ctx, one, spoken))
	}
	calling, cancel := workflow.WithCancel(call.Within(call.Stoppable(ctx, "hook "+one.Name), one.Deadline.Std()))
	defer cancel()
	in := checkactivity.HookInput{Hook: one.Name, Subject: h.subject(), Key: one.key}
	future := workflow.ExecuteActivity(calling, call.Checks.CallHook, in)
	err := workflow.Await(ctx, func() bool { return future.IsReady() || spoken() })
	var outcome checks.Outcome
	if !future.IsReady() {
		cancel()
	}
	// A hook that does not block has a coroutine of its own, which waits on its own context.
	if ended := future.Get(ctx, &outcome); err == nil {
		err = ended
	}
	if call.IsOverdue(err) {
		err = overdue(one, err)
	}
	h.capture(one.key, outcome.Captured)
	if err != nil || one.word != nil {
		h.abandon(ctx, in)
	}
	return one.outcome(err)
}

// overdue says that a hook did not go well in its time, and what kept it from that as far as it said so.
func overdue(one *hook, err error) error {
	text := fmt.Sprintf("it did not go well within %s", one.Deadline)
	var cause *temporal.ApplicationError
	if errors.As(err, &cause) {
		text += ": " + cause.Message()
	}
	return errors.New(text)
}

// awaitWord waits until somebody says that a hook of kind signal is done.
func (h *hooks) awaitWord(ctx workflow.Context, one *hook, spoken func() bool) error {
	h.journal.waiting(fmt.Sprintf(`%q of hook %s`, api.MsgHookDone, one.Name))
	_, err := h.clock.awaitUpTo(ctx, one.Deadline.Std(), "deadline of hook "+one.Name, spoken)
	if err == nil && !spoken() {
		err = fmt.Errorf("nobody said that it is done within %s", one.Deadline)
	}
	return err
}

// abandon ends what a hook may have left running.
func (h *hooks) abandon(ctx workflow.Context, in checkactivity.HookInput) {
	tidying := call.Within(call.Quick(ctx, "end hook "+in.Hook), call.TidyWithin)
	if err := workflow.ExecuteActivity(tidying, call.Checks.AbandonHook, in).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("a hook may have left a Job", "hook", in.Hook, "error", err)
	}
}

// underWay is the hook of a name that is waited for.
func (h *hooks) underWay(name string) *hook {
	for _, one := range h.open {
		if one.Name == name && one.word == nil {
			return one
		}
	}
	return nil
}

func (h *hooks) checkDone(p api.HookMessage) error {
	if err := h.check(p); err != nil {
		return err
	}
	if one := h.underWay(p.Hook); one.Kind != validation.KindSignal {
		return fmt.Errorf("hook %s is of kind %s, which ends by itself: %q goes on without it", p.Hook, one.Kind, api.MsgSkipHook)
	}
	return nil
}

func (h *hooks) checkSkip(p api.HookMessage) error {
	if p.Failed {
		return errors.New(`failed: has a meaning in "hook-done" only`)
	}
	return h.check(p)
}

func (h *hooks) check(p api.HookMessage) error {
	if err := firstOf(h.thisRun(p.Run), validation.Name(p.Hook)); err != nil {
		return err
	}
	if h.underWay(p.Hook) == nil {
		return fmt.Errorf("hook %s is not waited for now", p.Hook)
	}
	return nil
}

func (h *hooks) applyDone(p api.HookMessage) string {
	return h.speak(p, hookWord{failed: p.Failed}, "is done")
}

func (h *hooks) applySkip(p api.HookMessage) string {
	return h.speak(p, hookWord{skipped: true}, "is skipped")
}

func (h *hooks) speak(p api.HookMessage, word hookWord, effect string) string {
	one := h.underWay(p.Hook)
	if one == nil {
		return "ignored: hook " + p.Hook + " is not waited for now"
	}
	word.by, word.comment = p.By, p.Comment
	one.word = &word
	if word.failed {
		effect = "has failed"
	}
	return "hook " + p.Hook + " " + effect
}
