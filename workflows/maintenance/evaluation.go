package maintenance

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	checkactivity "drydock/activities/checks"
	"drydock/api"
	"drydock/rules/validation"
	"drydock/workflows/call"
)

// evaluation is the worker's own look at whether the node is well: an activity that ends when all holds, or none where
// nothing but somebody's word is asked for.
type evaluation struct {
	core
	in     checkactivity.ValidateInput
	future workflow.Future
}

// start begins it; cancel takes it back.
func (e *evaluation) start() (cancel workflow.CancelFunc) {
	ctx, cancel := workflow.WithCancel(call.Stoppable(e.clock.life, "validate "+e.spec.Node))
	if e.in.Validation.Empty() {
		e.journal.waiting(fmt.Sprintf("%q or %q", api.MsgValidated, api.MsgValidationFailed))
		return cancel
	}
	e.journal.waiting("the validation of the node")
	e.future = workflow.ExecuteActivity(ctx, call.Checks.Validate, e.in)
	return cancel
}

func (e *evaluation) ended() bool { return e.future == nil || e.future.IsReady() }

// failure is why it has ended without success, empty where it passed or there was none.
func (e *evaluation) failure() string {
	if e.future == nil {
		return ""
	}
	var validated checkactivity.Validated
	if err := e.future.Get(e.clock.life, &validated); err != nil {
		return call.Cause(err)
	}
	e.journal.change(func(s *api.Status) { s.Validation.Results = validated.Results })
	if validated.State == validation.Passed {
		return ""
	}
	if why := (validation.Report{Results: validated.Results}).Summary(problemsNamed); why != "" {
		return why
	}
	return fmt.Sprintf("all held in the end, but not for %s before the deadline (%s)", e.spec.Validation.Soak, e.spec.Validation.Deadline)
}

// abandon ends the Jobs of an evaluation that was taken back, once it cannot create them again.
func (e *evaluation) abandon() {
	e.clock.await(e.future.IsReady)
	e.future = nil
	if len(e.in.Validation.Checks) == 0 {
		return
	}
	ctx := call.Within(call.Quick(e.clock.life, "end the checks of "+e.spec.Node), call.TidyWithin)
	if err := workflow.ExecuteActivity(ctx, call.Checks.AbandonChecks, e.in).Get(e.clock.life, nil); err != nil {
		workflow.GetLogger(e.clock.life).Warn("checks may have left Jobs", "error", err)
	}
}
