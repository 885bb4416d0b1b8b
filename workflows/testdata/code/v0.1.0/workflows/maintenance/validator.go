package maintenance

import (
	checkactivity "drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/checks"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/node"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/drainplan"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/validation"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"fmt"
	"go.temporal.io/sdk/workflow"
)

// validator lets the node return to production only when what was asked for holds (NotifyMaintenance, Validating).
// Where it does not, the node stays out of service with its slot until somebody decides.
type validator struct {
	core
	validatorState
	// word is what somebody said of the validation: that it passed or failed, or that it is to be tried again.
	word *verdict
	// listening: somebody's word on the node is waited for; deciding: a decision about what failed.
	listening, deciding bool
}

// validatorState is what the next run has to know. Count counts the validations, Undecided says what failed and waits for
// a decision.
type validatorState struct {
	Count     int    `json:"count,omitempty"`
	Undecided string `json:"undecided,omitempty"`
}

// verdict is what somebody decides about a validation.
type verdict struct {
	validation.Signal
	retry bool
}

// failed tells that somebody declared the validation failed.
func (w *verdict) failed() bool { return w != nil && !w.Validated && !w.retry }

// validate validates the node whose boot ID was bootID at the cordon.
func (v *validator) validate(bootID string) error {
	wanted := v.spec.Validation
	if wanted == nil || wanted.Empty() {
		return nil
	}
	for {
		why := v.Undecided // by a run before this one
		if why == "" {
			failed, err := v.once(*wanted, bootID)
			if err != nil || failed == "" {
				return err
			}
			why = "the validation failed: " + failed
		}
		again, err := v.incomplete(why)
		if err != nil || !again {
			return err
		}
	}
}

// once validates the node once, and tells why that failed.
func (v *validator) once(wanted validation.Validation, bootID string) (why string, err error) {
	v.begin()
	if err := v.freeze.proceed(); err != nil {
		return "", err
	}
	if err := v.letPodsBack(); err != nil {
		return "", err
	}
	if why, err = v.untilValidated(wanted, bootID); err != nil || why != "" {
		return why, err
	}
	v.enter(validation.Passed)
	v.journal.note("validated")
	return "", nil
}

func (v *validator) begin() {
	v.journal.enter(api.Validating, "")
	v.journal.tell(notices.Validating, "")
	v.journal.change(func(s *api.Status) {
		s.Failure = ""
		s.Validation = &api.ValidationStatus{State: validation.Waiting}
	})
	v.word = nil
	v.announcer.showPhase()
}

func (v *validator) enter(state validation.State) {
	v.journal.change(func(s *api.Status) { s.Validation.State = state })
}

// letPodsBack lets the pods come back that the drain kept away: a device plugin makes what is allocatable, and Jobs of
// checks run on the node. The cordon stays.
func (v *validator) letPodsBack() error {
	if v.spec.Drain.Plan == nil {
		return nil
	}
	plan, err := v.spec.Drain.Plan.Compile()
	if err != nil {
		return ending{Phase: api.Failed, Message: err.Error()}
	}
	for _, entry := range plan.Entries() {
		if entry.PodType != drainplan.DaemonSet {
			continue
		}
		ctx := call.Quick(v.clock.life, "let pods come back to "+v.spec.Node)
		in := node.UntaintInput{Node: v.spec.Node, RunID: v.runID}
		if err := workflow.ExecuteActivity(ctx, call.Nodes.Untaint, in).Get(v.clock.life, nil); err != nil {
			workflow.GetLogger(v.clock.life).Warn("the taint was not taken off", "error", err)
		}
		return nil
	}
	return nil
}

// untilValidated waits for the evaluation and for somebody's word, as far as each is asked for. It returns why the
// validation failed, empty where it passed.
func (v *validator) untilValidated(wanted validation.Validation, bootID string) (why string, err error) {
	wantsWord := wanted.Signal
	v.Count++
	e := &evaluation{core: v.core, in: checkactivity.ValidateInput{
		Validation: wanted.Looks(), BootIDBefore: bootID, Subject: v.subject(), BlockedSignal: api.SignalDrainBlocked,
		Key: fmt.Sprintf("%s/validation/%d", v.runID, v.Count),
	}}
	cancel := e.start()
	defer cancel()
	enough := func() bool {
		switch {
		case v.word.failed():
			return true
		case !e.ended():
			return false
		default:
			return !wantsWord || v.word != nil || e.failure() != ""
		}
	}
	inTime := true
	v.listening = wantsWord
	defer func() { v.listening = false }()
	if wantsWord {
		inTime, err = v.stop.awaitUpTo(wanted.Deadline.Std(), "deadline of the validation", enough)
	} else {
		err = v.stop.await(enough)
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
		return v.unmet(wanted), nil
	}
	return fmt.Sprintf("nobody said %q within %s", api.MsgValidated, wanted.Deadline), nil
}

// unmet says what did not hold when the time was over, as far as that is known.
func (v *validator) unmet(wanted validation.Validation) string {
	if why := (validation.Report{Results: v.journal.status().Validation.Results}).Summary(problemsNamed); why != "" {
		return why
	}
	return fmt.Sprintf("it was not seen to hold within %s", wanted.Deadline)
}

// incomplete keeps the node out of service until somebody decides: to try again, that it is good as it is, or that it is
// to be released all the same.
func (v *validator) incomplete(why string) (again bool, err error) {
	v.word, v.deciding = nil, true
	defer func() { v.deciding = false }()
	if v.Undecided == "" { // otherwise a run before this one said so
		if err := v.sayIncomplete(why); err != nil {
			return false, err
		}
	}
	v.journal.waiting(fmt.Sprintf("a decision: %q, %q, or %q with release", api.MsgRetry, api.MsgValidated, api.MsgCancel))
	if err := v.stop.await(func() bool { return v.word != nil || v.leave.due() }); err != nil {
		return false, err
	}
	if v.word == nil {
		return false, errContinue
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

// sayIncomplete shows that the node stays out of service, and why.
func (v *validator) sayIncomplete(why string) error {
	if v.journal.phase() != api.Validating {
		v.journal.enter(api.Validating, why)
	}
	v.journal.change(func(s *api.Status) {
		if s.Validation == nil {
			s.Validation = &api.ValidationStatus{}
		}
		s.Validation.State, s.Validation.Overruled = validation.Failed, false
		s.Failure = why
	})
	v.journal.note(why)
	v.journal.tell(notices.MaintenanceIncomplete, why)
	if err := v.announcer.warn(v.stop.steps, "MaintenanceIncomplete", "the node stays out of service until somebody decides: "+why); err != nil {
		return err
	}
	v.Undecided = bounds.Cut(why, bounds.Text)
	return nil
}

// undecided tells that a validation or a last hook has failed and waits for somebody's decision.
func (v *validator) undecided() bool { return v.deciding && v.word == nil }

// tryAgain decides that what failed is tried again.
func (v *validator) tryAgain() string {
	v.word = &verdict{retry: true}
	return "what failed is tried again"
}

func (v *validator) checkValidated(p api.Simple) error {
	if err := firstOf(v.thisRun(p.Run), v.journal.inPhase(api.Validating)); err != nil {
		return err
	}
	if !v.undecided() && !v.listening {
		return errors.New("nobody's word is waited for: the validation looks by itself (validation.signal is not set), or has ended")
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

// notYet takes what the evaluation says does not hold.
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
		v.journal.waiting(fmt.Sprintf("all to keep holding for %s", v.spec.Validation.Soak))
		return
	}
	v.enter(validation.Waiting)
	v.journal.waiting("what does not hold yet: " + validation.Report{Results: results}.Summary(problemsNamed))
}

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
