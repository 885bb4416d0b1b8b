package maintenance

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	checkactivity "drydock/activities/checks"
	"drydock/activities/node"
	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/notices"
	"drydock/rules/validation"
	"drydock/workflows/call"
)

// validator lets the node return to production only when what was asked for holds (NotifyMaintenance, Validating).
// Where it does not, the node stays out of service with its slot until somebody decides.
type validator struct {
	core
	// word is what somebody said of the validation, retry that it is to be tried again.
	word  *validation.Signal
	retry bool
	count int
	// listening: somebody's word on the node is waited for; deciding: a decision about what failed.
	listening, deciding bool
}

// validate validates the node whose boot ID was bootID at the cordon.
func (v *validator) validate(bootID string) error {
	wanted := v.spec.Validation
	if wanted == nil || wanted.Empty() {
		return nil
	}
	for {
		v.begin()
		if err := v.freeze.thawed(); err != nil {
			return err
		}
		if err := v.letDaemonSetsBack(); err != nil {
			return err
		}
		why, err := v.untilValidated(*wanted, bootID)
		if err != nil {
			return err
		}
		if why == "" {
			v.enter(validation.Passed)
			v.journal.note("validated")
			return nil
		}
		again, err := v.incomplete("the validation failed: " + why)
		if err != nil || !again {
			return err
		}
	}
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

// letDaemonSetsBack lets the pods of DaemonSets come back that the drain kept away, where they are to be validated.
func (v *validator) letDaemonSetsBack() error {
	if v.spec.Validation.DaemonSets == "" || v.spec.Drain.Plan == nil {
		return nil
	}
	plan, err := v.spec.Drain.Plan.Compile()
	if err != nil {
		return ending{phase: api.Failed, message: err.Error()}
	}
	for _, entry := range plan.Entries() {
		if entry.PodType != drainplan.DaemonSet {
			continue
		}
		ctx := call.Quick(v.clock.life, "let the pods of DaemonSets come back to "+v.spec.Node)
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
	wanted.Signal = false
	v.count++
	e := &evaluation{core: v.core, in: checkactivity.ValidateInput{
		Validation: wanted, BootIDBefore: bootID, Subject: v.subject(), BlockedSignal: api.SignalDrainBlocked,
		Key: fmt.Sprintf("%s/validation/%d", v.runID, v.count),
	}}
	cancel := e.start()
	defer cancel()
	enough := func() bool {
		switch {
		case v.stop.decided() != nil, v.word != nil && !v.word.Validated:
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
		inTime, err = v.clock.awaitUpTo(v.clock.life, wanted.Deadline.Std(), "deadline of the validation", enough)
	} else {
		err = workflow.Await(v.clock.life, enough)
	}
	if err != nil {
		return "", err
	}
	if !e.ended() {
		cancel()
		e.abandon()
	}
	if err := v.stop.decided(); err != nil {
		return "", err
	}
	if v.word != nil && !v.word.Validated {
		return sentence("declared failed", v.word.By, v.word.Comment), nil
	}
	if why := e.failure(); why != "" || inTime {
		return why, nil
	}
	if v.word != nil {
		return fmt.Sprintf("the looks did not end within %s", wanted.Deadline), nil
	}
	return fmt.Sprintf("nobody said %q within %s", api.MsgValidated, wanted.Deadline), nil
}

// incomplete keeps the node out of service until somebody decides: to try again, that it is good as it is, or that it is
// to be released all the same.
func (v *validator) incomplete(why string) (again bool, err error) {
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
	v.word, v.retry, v.deciding = nil, false, true
	defer func() { v.deciding = false }()
	v.journal.note(why)
	v.journal.tell(notices.MaintenanceIncomplete, why)
	if err := v.announcer.warn("MaintenanceIncomplete", "the node stays out of service until somebody decides: "+why); err != nil {
		return false, err
	}
	v.journal.waiting(fmt.Sprintf("a decision: %q, %q, or %q with release", api.MsgRetry, api.MsgValidated, api.MsgCancel))
	v.clock.await(func() bool { return v.retry || v.stop.decided() != nil || v.word != nil })
	v.journal.waiting("")
	v.journal.change(func(s *api.Status) { s.Failure = "" })
	if err := v.stop.decided(); err != nil {
		return false, err
	}
	v.enter(validation.Waiting)
	if !v.retry {
		v.journal.change(func(s *api.Status) { s.Validation.Overruled = true })
		v.journal.note(sentence("declared good", v.word.By, v.word.Comment))
	}
	return v.retry, nil
}

// undecided tells that a validation or a last hook has failed and waits for somebody's decision.
func (v *validator) undecided() bool { return v.deciding && !v.retry && v.word == nil }

// tryAgain decides that what failed is tried again.
func (v *validator) tryAgain() string {
	v.retry = true
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
	v.word = &validation.Signal{Validated: true, By: p.By, Comment: p.Comment}
	return "the node counts as validated"
}

func (v *validator) applyValidationFailed(p api.Simple) string {
	v.word = &validation.Signal{By: p.By, Comment: p.Comment}
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
