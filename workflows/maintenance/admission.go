package maintenance

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	policyactivity "drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
)

// admission admits a maintenance, by its approval, preflight and notice, before a slot is requested. It also admits what people change of
// the maintenance (inquiries.go), by the policy or by the cluster.
type admission struct {
	*core
	// words are the decisions that were read and not judged yet, in their order.
	words []word
	// moved is set where somebody moved the notBefore, over once the notice is over.
	moved, over bool
	// inPreflight is set while a preflight runs that reports what blocks.
	inPreflight bool
	// inquiries are the messages that an activity looks into before they count.
	inquiries []*judgement
}

// word is an "approve" or a "deny". Before is the length of the history when it was read.
type word struct {
	policyactivity.Word
	judgement *judgement
	at        time.Time
	before    int64
}

// maxWords bounds the words that wait for their judgement, which costs an activity each.
const maxWords = 20

const beingJudged = "it is being judged"

func (a *admission) awaitApproval() error {
	if a.prepared.Refused != "" {
		return ending{Phase: api.Failed, Kind: api.ErrorPolicyRefused, Message: a.prepared.Refused}
	}
	if !a.spec.Approval {
		a.dismissWords(ignored + "the maintenance needs no approval")
		return nil
	}
	if err := a.judgeWords(); err != nil { // they may have come with the start
		return err
	}
	if !a.decided() && a.journal.phase() != api.AwaitingApproval { // otherwise a run before this one began to wait
		a.journal.enter(api.AwaitingApproval, "")
		a.journal.waiting(awaitedWord)
		a.journal.announce(notices.AwaitingApproval, "")
		a.journal.attribute(api.AttributePhase.ValueSet(string(api.AwaitingApproval)))
	}
	for !a.decided() {
		spoken, err := a.awaitWord()
		if err == nil && spoken {
			err = a.judgeWords()
		}
		if err != nil {
			return err
		}
		if !spoken {
			a.journal.announce(notices.ApprovalReminder, "waits for approval since "+instant(a.journal.status().Since))
		}
	}
	if a.journal.phase() == api.AwaitingApproval {
		a.journal.attribute(api.AttributePhase.ValueSet(string(api.Pending)))
	}
	if word := a.journal.status().Approval; word.Denied {
		return ending{Phase: api.Cancelled, Message: sentence("denied", word.By, word.Comment)}
	}
	return nil
}

func (a *admission) decided() bool { return a.journal.status().Approval != nil }

const awaitedWord = `"approve" or "deny"`

func (a *admission) awaitWord() (spoken bool, err error) {
	there := func() bool { return len(a.words) > 0 }
	every := a.spec.ApprovalReminder.Std()
	if every == 0 {
		return true, a.control.awaitOrContinue(there)
	}
	waited := a.control.now().Sub(a.journal.status().Since)
	return a.control.awaitUpToOrContinue(every-waited%every, "remind of the approval", there)
}

func (a *admission) judgeWords() error {
	for len(a.words) > 0 && !a.decided() {
		if err := a.judgeWord(a.words[0]); err != nil {
			return err
		}
		a.words = a.words[1:]
	}
	if status := a.journal.status().Approval; status != nil {
		a.dismissWords(ignored + "it was " + status.Verb() + " already")
	}
	return nil
}

// judgeWord has an activity find who sent a word, and whether the policy accepts it. A word that is not judged in time does not
// count: Temporal allows few updates at once, and the word may be one.
func (a *admission) judgeWord(w word) error {
	a.journal.waiting(sentence("the policy's decision on \""+w.Name+"\"", w.By, ""))
	ctx := call.Within(call.Quick(a.control.steps, sentence("judge "+w.Name, w.By, "")), inquiryWithin)
	judged, err := run[policyactivity.Judged](ctx, call.Policies.JudgeApproval, policyactivity.ApprovalInput{
		Word: w.Word, At: w.at, Before: w.before, Maintenance: a.forPolicy(),
	})
	if err != nil && !call.IsOverdue(err) {
		return a.control.stepFailed(err)
	}
	a.journal.waiting(awaitedWord)
	if err != nil {
		a.journal.settle(w.judgement, ignored+"the policy did not decide within "+inquiryWithin.String()+": "+call.Cause(err))
		return nil
	}
	a.journal.rewrite(w.judgement, func(m *api.Received) { m.Identity = judged.Identity })
	if judged.Refused != "" {
		a.journal.settle(w.judgement, ignored+judged.Refused)
		return nil
	}
	decided := api.ApprovalStatus{
		At: w.at, By: w.By, Comment: w.Comment, Identity: judged.Identity, Principal: judged.Principal, Denied: w.Name == api.MsgDeny,
	}
	a.journal.change(func(s *api.Status) { s.Approval = &decided })
	a.journal.settle(w.judgement, "the maintenance is "+decided.Verb())
	return nil
}

func (a *admission) dismissWords(effect string) {
	for _, w := range a.words {
		a.journal.settle(w.judgement, effect)
	}
	a.words = nil
}

// awaitNotice announces the maintenance, and waits for its notBefore.
func (a *admission) awaitNotice() error {
	if !a.journal.wasAnnounced(notices.MaintenanceScheduled) {
		a.journal.announce(notices.MaintenanceScheduled, noticeText(a.spec))
	}
	for a.spec.NotBefore != nil && a.spec.NotBefore.After(a.control.now()) {
		a.journal.ensure(api.Pending, "")
		a.hold.showConditions()
		a.journal.waiting("its time: " + noticeText(a.spec))
		a.moved = false
		if _, err := a.control.awaitUpToOrContinue(a.spec.NotBefore.Sub(a.control.now()), "notBefore", func() bool { return a.moved }); err != nil {
			return err
		}
		if a.moved {
			a.journal.announce(notices.MaintenanceScheduled, noticeText(a.spec))
		}
	}
	a.over = true
	a.journal.waiting("")
	return nil
}

// noticeText says when a maintenance may begin, empty if it may now.
func noticeText(s spec.Maintenance) string {
	if s.NotBefore == nil {
		return ""
	}
	return "not before " + s.NotBefore.UTC().Format(time.RFC3339)
}

func (a *admission) checkReschedule(p api.Reschedule) error {
	switch {
	case a.spec.Node == "":
		return errors.New("it has not read its input yet: send it again")
	case a.over:
		return fmt.Errorf("the maintenance is %s, and does not wait for its time any more", a.journal.phase())
	case p.NotBefore.IsZero():
		return errors.New("notBefore: required: the time before which it does not begin")
	case p.NotBefore.Before(a.control.now().Add(-spec.LateNotice)):
		return fmt.Errorf("notBefore: %s is over: give a time to come, or the present one to begin at once", instant(p.NotBefore))
	}
	return nil
}

func (a *admission) applyReschedule(p api.Reschedule, check func() error) string {
	return a.amend(api.MsgReschedule, func(s *spec.Maintenance) { s.NotBefore = &p.NotBefore }, check, func() string {
		a.spec.NotBefore, a.moved = &p.NotBefore, true
		a.journal.change(func(s *api.Status) { s.Spec.NotBefore = &p.NotBefore })
		a.journal.note(sentence("moved to "+noticeText(a.spec), p.By, p.Comment))
		return "it begins " + noticeText(a.spec)
	})
}

func (a *admission) checkDecision(api.Simple) error {
	if word := a.journal.status().Approval; word != nil {
		return fmt.Errorf("it was %s already", word.Verb())
	}
	if len(a.words) >= maxWords {
		return fmt.Errorf("%d decisions wait for the policy already", len(a.words))
	}
	// A message that comes with the start is read before the specification is.
	if phase := a.journal.phase(); phase != api.AwaitingApproval && (phase != api.Pending || !a.journal.isFresh()) {
		return a.journal.inPhase(api.AwaitingApproval)
	}
	return nil
}

func (a *admission) takeWord(name string, p api.Simple) string {
	a.words = append(a.words, word{
		Word: policyactivity.WordOf(name, p), judgement: a.journal.judge(), at: a.control.now(),
		before: int64(workflow.GetInfo(a.control.life).GetCurrentHistoryLength()),
	})
	return beingJudged
}
