package maintenance

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	checkactivity "drydock/activities/checks"
	"drydock/api"
	"drydock/rules/validation"
	"drydock/workflows/call"
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
	// toClean were called and have a cleanup, open are under way, background of them beside the maintenance.
	toClean, open []*hook
	called        int
	background    int
}

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
		if err := h.gate(when); err != nil {
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
		err = h.call(h.context(), one)
		h.journal.waiting("")
		h.note(one, err)
		if h.stop.stopped() && when != hookBeforeRelease {
			return h.stop.interrupted()
		}
		if over := h.stop.decided(); over != nil {
			return over
		}
		if err != nil && one.OnFailure == validation.FailMaintenance {
			return ending{phase: api.Failed, message: fmt.Sprintf("hook %s %s failed: %s", name, when, call.Cause(err))}
		}
	}
	return nil
}

// next is the next call of a hook, which is to be undone from now on: one that broke off half way too.
func (h *hooks) next(when, name string) (*hook, error) {
	i := slices.IndexFunc(h.prepared.Hooks, func(p validation.Hook) bool { return p.Name == name })
	if i < 0 {
		return nil, ending{phase: api.Failed, message: fmt.Sprintf("hook %q is not in the worker's configuration", name)}
	}
	h.called++
	one := &hook{Hook: h.prepared.Hooks[i], when: when, key: fmt.Sprintf("%s/%s/%d", h.runID, name, h.called)}
	if one.HasCleanup {
		h.toClean = append(h.toClean, one)
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

// gate is what a side effect waits for, before the node is Ready and after.
func (h *hooks) gate(when string) error {
	if when == hookBeforeRelease {
		return h.freeze.thawed()
	}
	return h.freeze.proceed()
}

// context ends with the steps until the node is Ready, and with nothing after that.
func (h *hooks) context() workflow.Context {
	if h.journal.phase() == api.Validating {
		return h.clock.life
	}
	return h.stop.steps
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
	for _, one := range slices.Backward(h.toClean) {
		h.journal.waiting("the closing of hook " + one.Name)
		subject := h.subject()
		subject.Captured = one.captured
		ctx := call.Within(call.Long(h.clock.life, "close hook "+one.Name), max(one.Deadline.Std(), cleanupFor))
		err := workflow.ExecuteActivity(ctx, call.Checks.CallHook, checkactivity.HookInput{
			Hook: one.Name, Cleanup: true, Subject: subject, Key: one.key + "/" + hookCleanup,
		}).Get(h.clock.life, nil)
		h.note(&hook{Hook: one.Hook, when: hookCleanup}, err)
	}
	h.toClean = nil
}
