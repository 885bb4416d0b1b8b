package maintenance

import (
	policyactivity "drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/policy"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"fmt"
	"go.temporal.io/sdk/workflow"
	"time"
)

// approval is what comes before a slot is asked for: somebody's word, and the notice.
type approval struct {
	core
	// words are those that were read and not judged yet, in their order.
	words []word
}

// word is an "approve" or a "deny". Before is the number of events there were when it was read.
type word struct {
	policyactivity.Word
	at     time.Time
	before int64
}

// maxWords bounds those that wait for their judgement, each of which costs an activity.
const maxWords = 20

// beingJudged is the effect of a word until it is judged.
const beingJudged = "it is being judged"

// awaitApproval waits for somebody's word before anything else is done, and has the channels reminded meanwhile.
func (a *approval) awaitApproval() error {
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
		a.journal.tell(notices.AwaitingApproval, "")
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
			a.journal.tell(notices.ApprovalReminder, "waits for approval since "+instant(a.journal.status().Since))
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

func (a *approval) decided() bool { return a.journal.status().Approval != nil }

const awaitedWord = `"approve" or "deny"`

// awaitWord waits for somebody's word, or until it is time for a reminder.
func (a *approval) awaitWord() (spoken bool, err error) {
	there := func() bool { return len(a.words) > 0 || a.leave.due() }
	spoken = true
	if every := a.spec.ApprovalReminder.Std(); every > 0 {
		waited := a.clock.now().Sub(a.journal.status().Since)
		spoken, err = a.stop.awaitUpTo(every-waited%every, "remind of the approval", there)
	} else {
		err = a.stop.await(there)
	}
	if err == nil && len(a.words) == 0 && a.leave.due() {
		err = errContinue
	}
	return spoken, err
}

// judgeWords judges the words in their order, until one counts.
func (a *approval) judgeWords() error {
	for len(a.words) > 0 && !a.decided() {
		if err := a.judge(a.words[0]); err != nil {
			return err
		}
		a.words = a.words[1:]
	}
	if status := a.journal.status().Approval; status != nil {
		a.dismissWords(ignored + "it was " + status.Verb() + " already")
	}
	return nil
}

// judge has an activity find who sent a word, and whether the policy lets it count.
func (a *approval) judge(w word) error {
	a.journal.waiting(sentence("the judgement of \""+w.Name+"\"", w.By, ""))
	ctx := call.Quick(a.stop.steps, sentence("judge "+w.Name, w.By, ""))
	var judged policyactivity.Judged
	err := workflow.ExecuteActivity(ctx, call.Policies.JudgeApproval, policyactivity.ApprovalInput{
		Word: w.Word, At: w.at, Before: w.before, Maintenance: a.forPolicy(),
	}).Get(ctx, &judged)
	if err != nil {
		return a.stop.stepFailed(err)
	}
	a.journal.waiting(awaitedWord)
	if judged.Refused != "" {
		a.outcome(w, ignored+judged.Refused)
		return nil
	}
	approved := api.ApprovalStatus{
		At: w.at, By: w.By, Comment: w.Comment, Principal: judged.Principal, Denied: w.Name == api.MsgDeny,
	}
	a.journal.change(func(s *api.Status) { s.Approval = &approved })
	a.outcome(w, "the maintenance is "+approved.Verb())
	return nil
}

// dismissWords is for words that come to nothing.
func (a *approval) dismissWords(effect string) {
	for _, w := range a.words {
		a.outcome(w, effect)
	}
	a.words = nil
}

// outcome says in the record of a word what became of it.
func (a *approval) outcome(w word, effect string) {
	a.journal.change(func(s *api.Status) {
		for i, m := range s.Messages {
			if m.Name == w.Name && m.At.Equal(w.at) && m.Effect == beingJudged {
				s.Messages[i].Effect, s.Messages[i].Outcome = effect, outcomeOf(effect)
				return
			}
		}
	})
}

// awaitNotice announces the maintenance, and waits until its notice is over.
func (a *approval) awaitNotice() error {
	notice := noticeText(a.spec)
	if !a.journal.wasTold(notices.MaintenanceScheduled) {
		a.journal.tell(notices.MaintenanceScheduled, notice)
	}
	if a.spec.NotBefore == nil || !a.spec.NotBefore.After(a.clock.now()) {
		return nil
	}
	if a.journal.phase() != api.Pending || a.journal.isFresh() {
		a.journal.enter(api.Pending, "")
	}
	a.announcer.showConditions()
	a.journal.waiting(notice)
	left, err := a.stop.awaitUpTo(a.spec.NotBefore.Sub(a.clock.now()), "notBefore", a.leave.due)
	if err != nil {
		return err
	}
	if left {
		return errContinue
	}
	a.journal.waiting("")
	return nil
}

// noticeText is when a maintenance may begin, empty where that is now.
func noticeText(s spec.Maintenance) string {
	if s.NotBefore == nil {
		return ""
	}
	return "not before " + s.NotBefore.UTC().Format(time.RFC3339)
}

func (a *approval) checkDecision(p api.Simple) error {
	if err := a.thisRun(p.Run); err != nil {
		return err
	}
	if word := a.journal.status().Approval; word != nil {
		return fmt.Errorf("it was %s already", word.Verb())
	}
	if len(a.words) >= maxWords {
		return fmt.Errorf("%d words wait for their judgement already", len(a.words))
	}
	// A message that comes with the start is read before the specification is.
	if phase := a.journal.phase(); phase != api.AwaitingApproval && (phase != api.Pending || !a.journal.isFresh()) {
		return a.journal.inPhase(api.AwaitingApproval)
	}
	return nil
}

func (a *approval) applyApprove(p api.Simple) string { return a.hear(api.MsgApprove, p) }

func (a *approval) applyDeny(p api.Simple) string { return a.hear(api.MsgDeny, p) }

// hear takes a word, which counts once it is judged.
func (a *approval) hear(name string, p api.Simple) string {
	a.words = append(a.words, word{
		Word: policyactivity.WordOf(name, p), at: a.clock.now(),
		before: int64(workflow.GetInfo(a.clock.life).GetCurrentHistoryLength()),
	})
	return beingJudged
}
