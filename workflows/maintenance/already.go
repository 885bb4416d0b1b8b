package maintenance

import (
	"fmt"
	"slices"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

// NothingToDo implements inbox.Idle: what each message asks for may have happened already.
func (m *maintenance) NothingToDo(name string, content any) (why string) {
	if m.thisRun(api.RunOf(content)) != nil {
		return ""
	}
	s, r := m.journal.status(), m.requestors
	switch p := content.(type) {
	case api.Done:
		return r.doneAlready(p)
	case api.FailedMessage:
		return already(s.Phase == api.RequestorFailed, sentence("is RequestorFailed already", "", s.Failure))
	case api.Cancel:
		return already(s.Phase == api.Releasing, "is Releasing already")
	case api.Extend:
		return r.extendedAlready(p)
	case api.Started:
		return already(s.Phase == api.Ready && s.StartedAt != nil && !p.Claim, "the work has begun already")
	case api.Membership:
		return r.memberAlready(name, p)
	case api.Escalate:
		return m.drainer.escalatedAlready(p)
	case api.SkipPod:
		return already(s.Phase == api.Draining && slices.Contains(s.SkippedPods, p.Pod), p.Pod+" is skipped already")
	case api.Consent:
		return already(s.Phase == api.Draining && m.drainer.consentedAlready(p), "has that consent already, for all pods")
	case api.Reschedule:
		return already(!m.admission.over && s.Spec.NotBefore != nil && s.Spec.NotBefore.Equal(p.NotBefore), "begins not before "+instant(p.NotBefore)+" already")
	case api.Simple:
		return m.simplyAlready(name)
	}
	return ""
}

// simplyAlready is NothingToDo of the messages that carry nothing.
func (m *maintenance) simplyAlready(name string) string {
	s := m.journal.status()
	switch name {
	case api.MsgRetry:
		return already(s.Phase == api.Ready, "is Ready already")
	case api.MsgDrained:
		return already(s.Phase == api.Ready && s.Spec.Drain.Mode == spec.ModeExternal, "is Ready already")
	case api.MsgApprove, api.MsgDeny:
		if s.Approval == nil || s.Approval.Denied != (name == api.MsgDeny) {
			return ""
		}
		return "is " + s.Approval.Verb() + " already"
	case api.MsgValidationFailed:
		return already(m.validator.undecided(), "has failed its validation already")
	}
	return ""
}

func already(holds bool, text string) string {
	if !holds {
		return ""
	}
	return text
}

func (r *requestors) doneAlready(p api.Done) string {
	phase := r.journal.phase()
	place, err := r.find(p.Requestor)
	switch {
	case err != nil:
		return ""
	case phase == api.Validating || phase == api.Releasing:
		return fmt.Sprintf("was done already, and is %s", phase)
	case !r.journal.heldByRequestor() || r.journal.status().Requestors[place].DoneAt == nil:
		return ""
	}
	return r.journal.status().Requestors[place].Name + " was done already" + r.backOnce()
}

func (r *requestors) extendedAlready(p api.Extend) string {
	s := r.journal.status()
	switch {
	case s.Phase != api.Ready:
		return ""
	case s.ReadyDeadline == nil:
		return "may be held for ever: its ready timeout is 0"
	}
	return already(!r.deadline(p).After(*s.ReadyDeadline), "may be held until "+instant(*s.ReadyDeadline)+" already")
}

func (r *requestors) memberAlready(name string, p api.Membership) string {
	switch {
	case spec.RequestorName(p.Requestor) != nil:
		return ""
	case name == api.MsgLeave:
		return already(r.check(p.Requestor) != nil, p.Requestor+" does not share the maintenance")
	default:
		return already(slices.Contains(r.open(), p.Requestor), p.Requestor+" shares the maintenance already")
	}
}

// escalatedAlready: there is no more force than kill.
func (d *drainer) escalatedAlready(p api.Escalate) string {
	s := d.journal.status()
	allowed := s.Force != "" && (s.Force == p.Do || s.Force == spec.Kill && p.Do == spec.BypassBudget)
	return already(s.Phase == api.Draining && allowed, "the drain already goes as far as "+s.Force)
}

func (d *drainer) consentedAlready(p api.Consent) bool {
	now := d.consented()
	return wholeConsent(p) == nil && (now.Force || !p.Force) && (now.DeleteEmptyDir || !p.DeleteEmptyDir)
}
