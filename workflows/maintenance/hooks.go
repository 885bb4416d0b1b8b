package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	checkactivity "drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/workflows/call"
)

// When hooks are called.
const (
	hookBeforeCordon  = "beforeCordon"
	hookAfterDrain    = "afterDrain"
	hookBeforeRelease = "beforeRelease"
	hookCleanup       = "closing"
)

// hooks calls the hooks of the specification, and undoes them at every end of an attempt.
type hooks struct {
	*core
	*hooksState
	// open are the running hooks, background is how many of them do not block the maintenance.
	open       []*hook
	background int
}

type hooksState struct {
	// ToClean are the calls whose cleanup is to come, Called counts all calls.
	ToClean []cleanup `json:"toClean,omitempty"`
	Called  int       `json:"called,omitempty"`
}

// cleanup undoes a call of a hook. Captured is a part of the call's response.
type cleanup struct {
	Hook     validation.Hook `json:"hook"`
	Key      string          `json:"key"`
	Captured string          `json:"captured,omitempty"`
}

func (h *hooks) idle() bool { return len(h.open) == 0 && h.background == 0 }

func (h *hooks) step(when string, names []string) error {
	if err := h.callAll(when, names); err != nil {
		return h.control.stepFailed(err)
	}
	return nil
}

func (h *hooks) callAll(when string, names []string) error {
	for _, name := range names {
		if err := h.control.proceed(); err != nil {
			return err
		}
		one, err := h.next(when, name)
		if err != nil {
			return err
		}
		if !one.Blocking {
			h.background++
			workflow.GoNamed(h.control.life, "hook "+name, func(ctx workflow.Context) {
				defer func() { h.background-- }()
				h.note(one, h.call(ctx, one))
			})
			continue
		}
		h.journal.waiting("hook " + name)
		err = h.call(h.control.life, one)
		h.journal.waiting("")
		h.note(one, err)
		if over := h.control.decided(); over != nil {
			return over
		}
		if err != nil && one.OnFailure == validation.FailMaintenance {
			return ending{Phase: api.Failed, Message: fmt.Sprintf("hook %s %s failed: %s", name, when, call.Cause(err))}
		}
	}
	return nil
}

// next is the next call of a hook. It is to be undone from now on, also where it breaks off half way.
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

func (h *hooks) show() {
	h.journal.change(func(s *api.Status) {
		s.OpenHooks = nil
		for _, one := range h.open {
			s.OpenHooks = append(s.OpenHooks, one.Name)
		}
	})
}

func (h *hooks) note(one *hook, err error) {
	run := api.HookRun{At: h.control.now(), Name: one.Name, When: one.when, Outcome: "done"}
	switch {
	case one.skipped:
		run.Outcome, run.By = sentence("skipped", "", one.word.Comment), one.word.By
	case err != nil:
		run.Outcome = "failed: " + call.Cause(err)
	}
	h.journal.change(func(s *api.Status) { s.Hooks = bounded(s.Hooks, run) })
	h.journal.note(fmt.Sprintf("hook %s %s: %s", one.Name, one.when, run.Outcome))
}

// cleanupFor is the least time for which the cleanup of a hook is tried.
const cleanupFor = 30 * time.Minute

// cleanUp undoes all hooks that were called, the latest first, at every end of an attempt. It waits for hooks in the background where
// the maintenance was completed, and otherwise skips them.
func (h *hooks) cleanUp(completed bool) {
	if !completed {
		for _, one := range h.open {
			one.word, one.skipped = &api.HookMessage{Message: api.Message{Comment: "the attempt is over"}}, true
		}
	}
	if h.background > 0 {
		h.journal.waiting("hooks still running")
		h.control.awaitAlways(func() bool { return h.background == 0 })
	}
	for _, one := range slices.Backward(h.ToClean) {
		h.journal.waiting("the closing of hook " + one.Hook.Name)
		subject := h.subject()
		subject.Captured = one.Captured
		ctx := call.Within(call.Long(h.control.life, "close hook "+one.Hook.Name), max(one.Hook.Deadline.Std(), cleanupFor))
		err := workflow.ExecuteActivity(ctx, call.Checks.CallHook, checkactivity.HookInput{
			Hook: one.Hook.Name, Cleanup: true, Subject: subject, Key: one.Key + "/" + hookCleanup,
		}).Get(h.control.life, nil)
		h.note(&hook{Hook: one.Hook, when: hookCleanup}, err)
	}
	h.ToClean = nil
}

type hook struct {
	validation.Hook
	when string
	key  string
	// word is what somebody said of the hook; skipped is set where that was to go on without it.
	word    *api.HookMessage
	skipped bool
}

// outcome is the error of a call, unless a person has declared the hook done or failed.
func (h *hook) outcome(err error) error {
	switch {
	case h.word == nil:
		return err
	case h.word.Failed:
		return temporal.NewNonRetryableApplicationError(sentence("declared failed", h.word.By, h.word.Comment), api.ErrorHookFailed, nil)
	default:
		return nil
	}
}

// call calls a hook and waits for its end, for a person who declares it done or failed, or for its deadline.
func (h *hooks) call(ctx workflow.Context, one *hook) error {
	h.open = append(h.open, one)
	h.show()
	defer func() {
		h.open = slices.DeleteFunc(h.open, func(other *hook) bool { return other == one })
		h.show()
	}()
	spoken := func() bool { return one.word != nil || h.control.stopped() }
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
		err = errors.New(overdue(one.Deadline, err))
	}
	if i := slices.IndexFunc(h.ToClean, func(c cleanup) bool { return c.Key == one.key }); i >= 0 {
		h.ToClean[i].Captured = outcome.Captured
	}
	if err != nil || one.word != nil {
		ending := call.Within(call.Quick(ctx, "end hook "+in.Hook), call.TidyWithin)
		_ = attempt(ending, "hook "+in.Hook+" may have left a Job", call.Checks.AbandonHook, in)
	}
	return one.outcome(err)
}

// overdue says that a hook or work did not succeed in its time, with the last error of the activity.
func overdue(deadline period.Duration, err error) string {
	text := fmt.Sprintf("no success within %s", deadline)
	if cause, failed := errors.AsType[*temporal.ApplicationError](err); failed {
		text += ": " + cause.Message()
	}
	return text
}

func (h *hooks) awaitWord(ctx workflow.Context, one *hook, spoken func() bool) error {
	h.journal.waiting(fmt.Sprintf(`%q for hook %s`, api.MsgHookDone, one.Name))
	if !h.control.awaitAlwaysUpTo(ctx, one.Deadline.Std(), "deadline of hook "+one.Name, spoken) {
		return fmt.Errorf("no hook-done within %s", one.Deadline)
	}
	return nil
}

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
	if err := validation.Name(p.Hook); err != nil {
		return err
	}
	if h.underWay(p.Hook) == nil {
		return fmt.Errorf("it does not wait for hook %s, but for %s", p.Hook, h.awaited())
	}
	return nil
}

func (h *hooks) awaited() string {
	var names []string
	for _, one := range h.open {
		if one.word == nil {
			names = append(names, one.Name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

func (h *hooks) applyDone(p api.HookMessage) string {
	return h.speak(p, false, "is done")
}

func (h *hooks) applySkip(p api.HookMessage, check func() error) string {
	without := func(s *spec.Maintenance) { s.Hooks = s.Hooks.Without(p.Hook) }
	return h.admission.amendSince010(api.MsgSkipHook, without, check, func() string {
		return h.speak(p, true, "is skipped")
	})
}

func (h *hooks) speak(p api.HookMessage, skipped bool, effect string) string {
	one := h.underWay(p.Hook) // check has found it
	one.word, one.skipped = &p, skipped
	if p.Failed {
		effect = "has failed"
	}
	return "hook " + p.Hook + " " + effect
}
