package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	checkactivity "drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/workflows/call"
)

// validator validates a node before it returns to production (NotifyMaintenance, Validating). A node that fails stays out of service with
// its slot until somebody decides.
type validator struct {
	*core
	*validatorState
	// word is what somebody said of the validation.
	word *verdict
	// listening is set while it waits for a word on the node, deciding while it waits for a decision about a failure.
	listening, deciding bool
}

type validatorState struct {
	Count int `json:"count,omitempty"`
	// Undecided is the failure that waits for a decision.
	Undecided string `json:"undecided,omitempty"`
}

type verdict struct {
	validation.Signal
	retry bool
}

func (w *verdict) failed() bool { return w != nil && !w.Validated && !w.retry }

func (v *validator) validate(tiers *spec.Plan) error {
	if v.spec.Validation == nil || v.spec.Validation.Empty() {
		return nil
	}
	return v.untilGood("the validation failed: ", func() (string, error) { return v.once(*v.spec.Validation, tiers) })
}

// untilGood tries what has to work before the node is given back, and tries again where somebody decides so. A failure is shown as what,
// followed by why.
func (v *validator) untilGood(what string, try func() (why string, err error)) error {
	for {
		failure := v.Undecided // of a run before this one
		if failure == "" {
			why, err := try()
			if err != nil || why == "" {
				return err
			}
			failure = what + why
		}
		if again, err := v.incomplete(failure); err != nil || !again {
			return err
		}
	}
}

func (v *validator) once(wanted validation.Validation, tiers *spec.Plan) (why string, err error) {
	v.journal.enter(api.Validating, "")
	v.journal.announce(notices.Validating, "")
	v.journal.change(func(s *api.Status) {
		s.Failure = ""
		s.Validation = &api.ValidationStatus{State: validation.Waiting}
	})
	v.word = nil
	v.hold.showPhase()
	if err := v.control.proceed(); err != nil {
		return "", err
	}
	if err := v.letPodsBack(tiers); err != nil {
		return "", err
	}
	if why, err = v.untilValidated(wanted); err != nil || why != "" {
		return why, err
	}
	v.enter(validation.Passed)
	v.journal.note("validated")
	return "", nil
}

func (v *validator) enter(state validation.State) {
	v.journal.change(func(s *api.Status) { s.Validation.State = state })
}

// letPodsBack lets the pods come back that the drain kept away: a device plugin makes what is allocatable, and Jobs of
// checks run on the node. The cordon stays.
func (v *validator) letPodsBack(tiers *spec.Plan) error {
	if tiers == nil {
		return nil
	}
	plan, err := tiers.Compile()
	if err != nil {
		return ending{Phase: api.Failed, Message: err.Error()}
	}
	if !slices.ContainsFunc(plan.Entries(), func(e drainplan.Entry) bool { return e.PodType == drainplan.DaemonSet }) {
		return nil
	}
	ctx := call.Quick(v.control.life, "let pods come back to "+v.spec.Node)
	in := node.UntaintInput{Node: v.spec.Node, RunID: v.runID}
	_ = attempt(ctx, "the taint was not taken off", call.Nodes.Untaint, in)
	return nil
}

// untilValidated waits for the evaluation and for a person's confirmation, if the specification wants them. It returns why the validation
// failed.
func (v *validator) untilValidated(wanted validation.Validation) (why string, err error) {
	v.Count++
	e := &evaluation{core: v.core, in: checkactivity.ValidateInput{
		Validation: wanted.Looks(), BootIDBefore: v.hold.BootID, Subject: v.subject(), BlockedSignal: api.SignalDrainBlocked,
		Key: fmt.Sprintf("%s/validation/%d", v.runID, v.Count),
	}}
	cancel := e.start()
	defer cancel()
	enough := func() bool {
		return v.word.failed() || e.ended() && (!wanted.Signal || v.word != nil || e.failure() != "")
	}
	inTime := true
	v.listening = wanted.Signal
	defer func() { v.listening = false }()
	if wanted.Signal {
		inTime, err = v.control.awaitUpTo(wanted.Deadline.Std(), "deadline of the validation", enough)
	} else {
		err = v.control.await(enough)
	}
	if !e.ended() {
		cancel()
		e.abandon()
	}
	if err != nil {
		return "", err
	}
	if v.word.failed() {
		return sentence("declared failed", v.word.By, v.word.Comment), nil
	}
	if why := e.failure(); why != "" || inTime {
		return why, nil
	}
	if v.word != nil {
		known := validation.Report{Results: v.journal.status().Validation.Results}
		return cmp.Or(known.Summary(problemsNamed), fmt.Sprintf("it was not seen to hold within %s", wanted.Deadline)), nil
	}
	return fmt.Sprintf("nobody said %q within %s", api.MsgValidated, wanted.Deadline), nil
}

// incomplete keeps the node out of service until somebody decides: to try again, that the node is good, or to release it.
func (v *validator) incomplete(why string) (again bool, err error) {
	v.word, v.deciding = nil, true
	defer func() { v.deciding = false }()
	if v.Undecided == "" { // otherwise a run before this one said so
		if err := v.sayIncomplete(why); err != nil {
			return false, err
		}
	}
	v.journal.waiting(fmt.Sprintf("a decision: %q, %q, or %q with release", api.MsgRetry, api.MsgValidated, api.MsgCancel))
	if err := v.control.awaitOrContinue(func() bool { return v.word != nil }); err != nil {
		return false, err
	}
	v.Undecided = ""
	v.journal.waiting("")
	v.journal.change(func(s *api.Status) {
		s.Failure = ""
		s.Validation.State, s.Validation.Overruled = validation.Waiting, !v.word.retry
	})
	if !v.word.retry {
		v.journal.note(sentence("declared good", v.word.By, v.word.Comment))
	}
	return v.word.retry, nil
}

func (v *validator) sayIncomplete(why string) error {
	v.journal.ensure(api.Validating, why)
	v.journal.change(func(s *api.Status) {
		if s.Validation == nil {
			s.Validation = &api.ValidationStatus{}
		}
		s.Validation.State, s.Validation.Overruled = validation.Failed, false
		s.Failure = why
	})
	v.journal.note(why)
	v.journal.announce(notices.MaintenanceIncomplete, why)
	if err := v.hold.warn(v.control.steps, api.EventIncomplete, "the node stays out of service until somebody decides: "+why); err != nil {
		return err
	}
	v.Undecided = bounds.Cut(why, bounds.Text)
	return nil
}

// undecided reports whether a validation or a last hook has failed and waits for somebody's decision.
func (v *validator) undecided() bool { return v.deciding && v.word == nil }

func (v *validator) checkValidated(api.Simple) error {
	if !v.undecided() && !v.listening {
		return errors.New("nobody has to decide: its checks do (validation.signal is not set), or the validation has ended")
	}
	return nil
}

func (v *validator) checkValidationFailed(p api.Simple) error {
	if err := v.checkValidated(p); err != nil {
		return err
	}
	if !v.listening {
		return errors.New("it has failed already")
	}
	return nil
}

func (v *validator) applyValidated(p api.Simple) string {
	v.word = &verdict{Signal: validation.Signal{Validated: true, By: p.By, Comment: p.Comment}}
	return "the node counts as validated"
}

func (v *validator) applyValidationFailed(p api.Simple) string {
	v.word = &verdict{Signal: validation.Signal{By: p.By, Comment: p.Comment}}
	return "the validation has failed"
}

func (v *validator) notYet(p api.DrainProgress) {
	if v.deciding || v.journal.status().Validation == nil || v.spec.Validation == nil {
		return
	}
	var results []validation.Result
	for _, b := range p.Blockers {
		results = append(results, validation.Result{Name: b.Pod, Message: b.Message})
	}
	v.journal.change(func(s *api.Status) { s.Validation.Results = results })
	if len(p.Blockers) == 0 {
		v.enter(validation.Soaking)
		v.journal.waiting(fmt.Sprintf("the soak to end (%s)", v.spec.Validation.Soak))
		return
	}
	v.enter(validation.Waiting)
	v.journal.waiting("the validation: " + validation.Report{Results: results}.Summary(problemsNamed))
}

// evaluation is an activity that ends when all conditions hold. There is none where the specification wants a person's
// confirmation only.
type evaluation struct {
	*core
	in     checkactivity.ValidateInput
	future workflow.Future
}

func (e *evaluation) start() (cancel workflow.CancelFunc) {
	ctx, cancel := workflow.WithCancel(call.Stoppable(e.control.life, "validate "+e.spec.Node))
	if e.in.Validation.Empty() {
		e.journal.waiting(fmt.Sprintf("%q or %q", api.MsgValidated, api.MsgValidationFailed))
		return cancel
	}
	e.journal.waiting("the validation")
	e.future = workflow.ExecuteActivity(ctx, call.Checks.Validate, e.in)
	return cancel
}

func (e *evaluation) ended() bool { return e.future == nil || e.future.IsReady() }

// failure returns why the evaluation failed, empty if it passed or there was none.
func (e *evaluation) failure() string {
	if e.future == nil {
		return ""
	}
	var validated checkactivity.Validated
	if err := e.future.Get(e.control.life, &validated); err != nil {
		return call.Cause(err)
	}
	e.journal.change(func(s *api.Status) { s.Validation.Results = validated.Results })
	if validated.State == validation.Passed {
		return ""
	}
	return cmp.Or(validation.Report{Results: validated.Results}.Summary(problemsNamed),
		fmt.Sprintf("all held in the end, but not for %s before the deadline (%s)", e.spec.Validation.Soak, e.spec.Validation.Deadline))
}

// abandon ends the Jobs of a cancelled evaluation, once it cannot create them again.
func (e *evaluation) abandon() {
	e.control.awaitAlways(e.future.IsReady)
	e.future = nil
	if len(e.in.Validation.Checks) == 0 {
		return
	}
	ctx := call.Within(call.Quick(e.control.life, "end the checks of "+e.spec.Node), call.TidyWithin)
	_ = attempt(ctx, "checks may have left Jobs", call.Checks.AbandonChecks, e.in)
}
