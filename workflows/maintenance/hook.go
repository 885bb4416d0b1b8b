package maintenance

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	checkactivity "drydock/activities/checks"
	"drydock/api"
	"drydock/checks"
	"drydock/rules/validation"
	"drydock/workflows/call"
)

// hook is one call of a hook.
type hook struct {
	validation.Hook
	when string
	key  string
	// word is what somebody said of it: that it is done, has failed, or is to be skipped.
	word *hookWord
	// captured is what its cleanup gets to know of it.
	captured string
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
	spoken := func() bool { return one.word != nil || h.stop.decided() != nil }
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
		h.clock.await(future.IsReady)
	}
	if ended := future.Get(h.clock.life, &outcome); err == nil {
		err = ended
	}
	one.captured = outcome.Captured
	if err != nil || one.word != nil {
		h.abandon(in)
	}
	return one.outcome(err)
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
func (h *hooks) abandon(in checkactivity.HookInput) {
	ctx := call.Within(call.Quick(h.clock.life, "end hook "+in.Hook), call.TidyWithin)
	if err := workflow.ExecuteActivity(ctx, call.Checks.AbandonHook, in).Get(h.clock.life, nil); err != nil {
		workflow.GetLogger(h.clock.life).Warn("a hook may have left a Job", "hook", in.Hook, "error", err)
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
