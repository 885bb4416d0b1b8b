package maintenance

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	checkactivity "drydock/activities/checks"
	"drydock/activities/node"
	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/notices"
	"drydock/rules/validation"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
)

// validate lets the node return to production only when what was asked for holds (NotifyMaintenance, Validating). Where
// it does not, the node stays out of service with its slot until somebody decides.
func (m *maintenance) validate() error {
	v := m.spec.Validation
	if v == nil || v.Empty() {
		return nil
	}
	for {
		m.enter(api.Validating, "")
		m.tell(notices.Validating, "")
		m.status.Failure = ""
		m.status.Validation = &api.ValidationStatus{State: validation.Waiting}
		m.word = nil
		m.showPhase()
		if err := m.thawed(); err != nil {
			return err
		}
		if err := m.makeWay(); err != nil {
			return err
		}
		why, err := m.untilValidated(*v)
		if err != nil {
			return err
		}
		if why == "" {
			m.status.Validation.State = validation.Passed
			m.note("validated")
			return nil
		}
		again, err := m.incomplete("the validation failed: " + why)
		if err != nil || !again {
			return err
		}
	}
}

// thawed is the gate before every side effect once the node is Ready.
func (m *maintenance) thawed() error {
	if m.held() {
		m.waiting("a thaw: " + strings.Join(m.holdReasons, "; "))
		m.await(func() bool { return !m.held() || m.decided() != nil })
		m.waiting("")
	}
	return m.decided()
}

// makeWay lets the pods of DaemonSets come back that the drain kept away, where they are to be validated.
func (m *maintenance) makeWay() error {
	if m.spec.Validation.DaemonSets == "" || m.spec.Drain.Plan == nil {
		return nil
	}
	plan, err := m.spec.Drain.Plan.Compile()
	if err != nil {
		return ending{phase: api.Failed, message: err.Error()}
	}
	for _, entry := range plan.Entries() {
		if entry.PodType != drainplan.DaemonSet {
			continue
		}
		ctx := call.Quick(m.life, "let the pods of DaemonSets come back to "+m.spec.Node)
		in := node.UntaintInput{Node: m.spec.Node, RunID: m.status.RunID}
		if err := workflow.ExecuteActivity(ctx, call.Nodes.Untaint, in).Get(m.life, nil); err != nil {
			workflow.GetLogger(m.life).Warn("the taint was not taken off", "error", err)
		}
		return nil
	}
	return nil
}

// untilValidated waits for the looks and for somebody's word, as far as each is asked for. It returns why the validation
// failed, empty where it passed.
func (m *maintenance) untilValidated(v validation.Validation) (why string, err error) {
	wantsWord := v.Signal
	v.Signal = false
	m.validations++
	in := checkactivity.ValidateInput{
		Validation: v, BootIDBefore: m.bootID, Subject: m.subject(), BlockedSignal: api.SignalDrainBlocked,
		Key: fmt.Sprintf("%s/validation/%d", m.status.RunID, m.validations),
	}
	ctx, cancel := workflow.WithCancel(call.Stoppable(m.life, "validate "+m.spec.Node))
	defer cancel()
	var looks workflow.Future
	if v.Empty() {
		m.waiting(fmt.Sprintf("%q or %q", api.MsgValidated, api.MsgValidationFailed))
	} else {
		m.waiting("the validation of the node")
		looks = workflow.ExecuteActivity(ctx, call.Checks.Validate, in)
	}
	looked := func() bool { return looks == nil || looks.IsReady() }
	enough := func() bool {
		switch {
		case m.release, m.nodeGone != "", m.word != nil && !m.word.Validated:
			return true
		case !looked():
			return false
		default:
			return !wantsWord || m.word != nil || m.lookFailed(looks) != ""
		}
	}
	inTime := true
	m.listening = wantsWord
	defer func() { m.listening = false }()
	if wantsWord {
		inTime, err = m.awaitUpTo(m.life, v.Deadline.Std(), "deadline of the validation", enough)
	} else {
		err = workflow.Await(m.life, enough)
	}
	if err != nil {
		return "", err
	}
	if !looked() {
		cancel()
		// Its Jobs are ended once it cannot create them again.
		m.await(looks.IsReady)
		m.endLooks(in)
		looks = nil
	}
	if err := m.decided(); err != nil {
		return "", err
	}
	if m.word != nil && !m.word.Validated {
		return inbox.Sentence("declared failed", m.word.By, m.word.Comment), nil
	}
	if why := m.lookFailed(looks); why != "" || inTime {
		return why, nil
	}
	if m.word != nil {
		return fmt.Sprintf("the looks did not end within %s", v.Deadline), nil
	}
	return fmt.Sprintf("nobody said %q within %s", api.MsgValidated, v.Deadline), nil
}

// decided is the end of a maintenance that is not to wait any longer for its node to be good.
func (m *maintenance) decided() error {
	switch {
	case m.nodeGone != "":
		return ending{phase: api.NodeGone, message: m.nodeGone}
	case m.release:
		return ending{phase: api.Cancelled, message: m.cancelled}
	default:
		return nil
	}
}

// lookFailed is why the looks have ended without success, empty where they passed or there were none.
func (m *maintenance) lookFailed(looks workflow.Future) string {
	if looks == nil {
		return ""
	}
	var validated checkactivity.Validated
	if err := looks.Get(m.life, &validated); err != nil {
		return inbox.CauseOf(err)
	}
	m.status.Validation.Results = validated.Results
	if validated.State == validation.Passed {
		return ""
	}
	if why := (validation.Report{Results: validated.Results}).Summary(problemsNamed); why != "" {
		return why
	}
	return fmt.Sprintf("all held in the end, but not for %s before the deadline (%s)", m.spec.Validation.Soak, m.spec.Validation.Deadline)
}

// endLooks ends the Jobs of a validation that is not waited for any more.
func (m *maintenance) endLooks(in checkactivity.ValidateInput) {
	if len(in.Validation.Checks) == 0 {
		return
	}
	ctx := call.Within(call.Quick(m.life, "end the checks of "+m.spec.Node), call.TidyWithin)
	if err := workflow.ExecuteActivity(ctx, call.Checks.AbandonChecks, in).Get(m.life, nil); err != nil {
		workflow.GetLogger(m.life).Warn("checks may have left Jobs", "error", err)
	}
}

// incomplete keeps the node out of service until somebody decides: to try again, that it is good as it is, or that it is
// to be released all the same.
func (m *maintenance) incomplete(why string) (again bool, err error) {
	if m.status.Phase != api.Validating {
		m.enter(api.Validating, why)
	}
	if m.status.Validation == nil {
		m.status.Validation = &api.ValidationStatus{}
	}
	m.status.Validation.State, m.status.Validation.Overruled = validation.Failed, false
	m.status.Failure = why
	m.word, m.again, m.deciding = nil, false, true
	defer func() { m.deciding = false }()
	m.note(why)
	m.tell(notices.MaintenanceIncomplete, why)
	if err := m.warn("MaintenanceIncomplete", "the node stays out of service until somebody decides: "+why); err != nil {
		return false, err
	}
	m.waiting(fmt.Sprintf("a decision: %q, %q, or %q with release", api.MsgRetry, api.MsgValidated, api.MsgCancel))
	m.await(func() bool { return m.again || m.decided() != nil || m.word != nil })
	m.waiting("")
	m.status.Failure = ""
	if err := m.decided(); err != nil {
		return false, err
	}
	m.status.Validation.State = validation.Waiting
	if !m.again {
		m.status.Validation.Overruled = true
		m.note(inbox.Sentence("declared good", m.word.By, m.word.Comment))
	}
	return m.again, nil
}

// undecided tells that a validation or a last hook has failed and waits for somebody's decision.
func (m *maintenance) undecided() bool { return m.deciding && !m.again && m.word == nil }

func (m *maintenance) checkValidated(p api.Simple) error {
	if err := firstOf(m.thisRun(p.Run), m.inPhase(api.Validating)); err != nil {
		return err
	}
	if !m.undecided() && !m.listening {
		return errors.New("nobody's word is waited for: the validation looks by itself (validation.signal is not set), or has ended")
	}
	return nil
}

func (m *maintenance) checkValidationFailed(p api.Simple) error {
	if err := m.checkValidated(p); err != nil {
		return err
	}
	if !m.listening {
		return errors.New("it has failed already")
	}
	return nil
}

func (m *maintenance) applyValidated(p api.Simple) string {
	m.word = &validation.Signal{Validated: true, By: p.By, Comment: p.Comment}
	return "the node counts as validated"
}

func (m *maintenance) applyValidationFailed(p api.Simple) string {
	m.word = &validation.Signal{By: p.By, Comment: p.Comment}
	return "the validation has failed"
}

// notValidated takes what the looks say does not hold.
func (m *maintenance) notValidated(p api.DrainProgress) {
	if m.deciding || m.status.Validation == nil || m.spec.Validation == nil {
		return
	}
	m.status.Validation.Results = nil
	for _, b := range p.Blockers {
		m.status.Validation.Results = append(m.status.Validation.Results, validation.Result{Name: b.Pod, Message: b.Message})
	}
	if len(p.Blockers) == 0 {
		m.status.Validation.State = validation.Soaking
		m.waiting(fmt.Sprintf("all to keep holding for %s", m.spec.Validation.Soak))
		return
	}
	m.status.Validation.State = validation.Waiting
	m.waiting("what does not hold yet: " + validation.Report{Results: m.status.Validation.Results}.Summary(problemsNamed))
}
