package maintenance_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/node"
	policyactivity "drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/workflowtest"
)

func TestAMaintenanceThatThePolicyRefusesTouchesNothing(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Policy, s.Prepared.Refused = true, "policy no-force: not with force"
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"approval": true}))
	s.ExpectFailure(api.ErrorPolicyRefused, "policy no-force: not with force")
	s.ExpectLog()
	s.ExpectPhases(status, api.Failed)
	if status.Failure != "policy no-force: not with force" {
		t.Errorf("failure %q", status.Failure)
	}
	expectStates(t, status, notices.MaintenanceUnknown, notices.MaintenanceIncomplete, notices.MaintenanceEnded, notices.MaintenanceCancelled)
}

// The specification goes to whoever judges it, and where there is no policy to nobody: it would be history for nothing.
func TestTheSpecificationIsJudgedWhenTheNodeIsHeld(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Policy = true
	s.DoneAt(time.Hour)
	s.Run(workflowtest.InputWith(workflowtest.Input{"ticket": "CHG-1"}))
	s.ExpectCompleted()
	var judged spec.Maintenance
	held := workflowtest.InputOf[node.HoldInput](s, "HoldNode", 0)
	if err := json.Unmarshal(held.Maintenance, &judged); err != nil || judged.Node != workflowtest.Node || judged.Ticket != "CHG-1" || judged.Drain.Mode != spec.ModeEvict {
		t.Errorf("%s, %v", held.Maintenance, err)
	}

	without := workflowtest.New(t)
	without.DoneAt(time.Hour)
	without.Run(workflowtest.InputWith(nil))
	if held := workflowtest.InputOf[node.HoldInput](without, "HoldNode", 0); len(held.Maintenance) > 0 {
		t.Errorf("%s", held.Maintenance)
	}
}

// What is restored while the requestor has the node was judged before: labels that changed since do not end the work.
func TestAMarkThatIsRestoredIsNotJudgedAgain(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Policy = true
	s.SignalAt(10*time.Minute, api.SignalNodeChanged, api.NodeChange{RequestID: workflowtest.RunID + "/1", Unmarked: true})
	s.DoneAt(time.Hour)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if n := s.Count("AdoptNode"); n != 1 {
		t.Fatalf("marked again %d times: %v", n, s.Log)
	}
	if again := workflowtest.InputOf[node.HoldInput](s, "AdoptNode", 0); len(again.Maintenance) > 0 {
		t.Errorf("judged again: %s", again.Maintenance)
	}
}

func TestANodeThatThePolicyRefusesIsGivenBack(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Policy = true
	s.Answer("HoldNode", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorPolicyRefused, "policy production: ask somebody")})
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectFailure(api.ErrorPolicyRefused, "policy production: ask somebody")
	s.ExpectPhases(status, api.Pending, api.Scheduled, api.Cordoning, api.Releasing, api.Failed)
	if s.Count("Drain") != 0 {
		t.Error("it was drained")
	}
}

func TestARequestOverTheQuotaFails(t *testing.T) {
	s := workflowtest.New(t)
	s.Scheduler = func(_ string, arg any) error {
		if r, ok := arg.(api.SlotRequest); ok {
			s.Refuse(r.ID, api.SlotAnswer{Code: schedule.Quota, Reason: "quota: ops has 2 requests that wait for a slot; the limit is 2 (pending)"})
		}
		return nil
	}
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectFailure(api.ErrorPolicyRefused, "quota: ops has 2 requests")
	s.ExpectPhases(status, api.Pending, api.Failed)
}

// judged is the policy's answer to a word.
func judged(after time.Duration, principal, refused string) workflowtest.Reply {
	return workflowtest.Reply{After: after, Value: policyactivity.Judged{Sender: api.Sender{Identity: "7@host@", Principal: principal}, Refused: refused}}
}

// messagesOf are the words that were said with what became of each.
func messagesOf(status api.Status) string {
	var texts []string
	for _, m := range status.Messages {
		if m.Name == api.MsgApprove || m.Name == api.MsgDeny {
			texts = append(texts, m.Name+" by "+m.By+": "+m.Effect)
		}
	}
	return strings.Join(texts, "\n")
}

func expectMessages(t *testing.T, status api.Status, want ...string) {
	t.Helper()
	if got := messagesOf(status); got != strings.Join(want, "\n") {
		t.Errorf("messages\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestAnApprovalCountsOnceItIsJudged(t *testing.T) {
	asked := workflowtest.InputWith(workflowtest.Input{"approval": true, "approvalReminder": "1h"})
	by := func(name string) workflowtest.Input { return workflowtest.Input{"by": name} }

	t.Run("refused, then by another", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Prepared.Policy = true
		s.Answer("JudgeApproval", judged(time.Minute, "jwt:ops", "policy two-people: not oneself"), judged(time.Minute, "jwt:amy", ""))
		s.SignalAt(10*time.Minute, api.MsgApprove, by("ops"))
		s.CheckAt(10*time.Minute+30*time.Second, func(status api.Status) {
			if status.Phase != api.AwaitingApproval || status.WaitingFor != `the policy's decision on "approve" by ops` || status.Approval != nil {
				t.Errorf("while it is judged: %s, waits for %q, approval %+v", status.Phase, status.WaitingFor, status.Approval)
			}
			expectMessages(t, status, "approve by ops: it is being judged")
		})
		s.CheckAt(20*time.Minute, func(status api.Status) {
			if status.Phase != api.AwaitingApproval || !strings.Contains(status.WaitingFor, "approve") || status.Approval != nil {
				t.Errorf("once it was refused: %s, waits for %q, approval %+v", status.Phase, status.WaitingFor, status.Approval)
			}
		})
		s.SignalAt(30*time.Minute, api.MsgApprove, by("amy"))
		s.DoneAt(4 * time.Hour)
		status := s.Run(asked)
		s.ExpectCompleted()
		if a := status.Approval; a == nil || a.By != "amy" || a.Principal != "jwt:amy" || a.Denied || !a.At.Equal(status.Messages[1].At) {
			t.Errorf("approval %+v", a)
		}
		expectMessages(t, status, "approve by ops: ignored: policy two-people: not oneself", "approve by amy: the maintenance is approved")
		in := workflowtest.InputOf[policyactivity.ApprovalInput](s, "JudgeApproval", 0)
		var m spec.Maintenance
		if err := json.Unmarshal(in.Maintenance, &m); err != nil || in.Word != (policyactivity.Word{Name: "approve", By: "ops"}) || !m.Approval {
			t.Errorf("%+v, %v", in, err)
		}
	})
	t.Run("words in the order in which they came", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("JudgeApproval", judged(time.Minute, "", ""))
		s.SignalAt(10*time.Minute, api.MsgApprove, by("amy"))
		s.SignalAt(10*time.Minute+time.Second, api.MsgDeny, by("bob"))
		s.SignalAt(10*time.Minute+2*time.Second, api.MsgApprove, by("cleo"))
		s.DoneAt(4 * time.Hour)
		status := s.Run(asked)
		s.ExpectCompleted()
		expectMessages(t, status, "approve by amy: the maintenance is approved",
			"deny by bob: ignored: it was approved already", "approve by cleo: ignored: it was approved already")
		if n := s.Count("JudgeApproval"); n != 1 {
			t.Errorf("judged %d times", n)
		}
	})
	t.Run("denied while an approval is judged that is refused", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("JudgeApproval", judged(time.Minute, "", "policy two: no"), judged(0, "jwt:bob", ""))
		s.SignalAt(10*time.Minute, api.MsgApprove, by("ops"))
		s.SignalAt(10*time.Minute+time.Second, api.MsgDeny, by("bob"))
		status := s.Run(asked)
		s.ExpectCancelled()
		if a := status.Approval; a == nil || !a.Denied || a.Principal != "jwt:bob" || status.Failure != "denied by bob" {
			t.Errorf("approval %+v, failure %q", a, status.Failure)
		}
	})
	t.Run("cancelled while it is judged", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("JudgeApproval", judged(time.Hour, "", ""))
		s.SignalAt(10*time.Minute, api.MsgApprove, by("amy"))
		s.SignalAt(11*time.Minute, api.MsgCancel, nil)
		status := s.Run(asked)
		s.ExpectCancelled()
		if status.Approval != nil {
			t.Errorf("approval %+v", status.Approval)
		}
	})
	t.Run("not judged in time", func(t *testing.T) {
		away := temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, temporal.NewApplicationError("the API server is away", ""))
		s := workflowtest.New(t)
		s.Answer("JudgeApproval", workflowtest.Reply{Err: deadline()}, workflowtest.Reply{Err: away}, judged(0, "jwt:amy", ""))
		late := s.UpdateAt(10*time.Minute, api.MsgApprove, by("ops"))
		s.SignalAt(15*time.Minute, api.MsgApprove, by("ops"))
		s.CheckAt(20*time.Minute, func(status api.Status) {
			if status.Phase != api.AwaitingApproval || !strings.Contains(status.WaitingFor, "approve") || status.Approval != nil {
				t.Errorf("%s, waits for %q, approval %+v", status.Phase, status.WaitingFor, status.Approval)
			}
			if limit := s.Called["JudgeApproval"].ScheduleToCloseTimeout; limit != 2*time.Minute || late.Err == nil {
				t.Errorf("judged for %s, answered %+v", limit, late)
			}
		})
		s.SignalAt(30*time.Minute, api.MsgApprove, by("amy"))
		s.DoneAt(4 * time.Hour)
		status := s.Run(asked)
		s.ExpectCompleted()
		expectMessages(t, status, "approve by ops: ignored: the policy did not decide within 2m0s: it did not end in time",
			"approve by ops: ignored: the policy did not decide within 2m0s: the API server is away", "approve by amy: the maintenance is approved")
	})
	t.Run("a bounded number waits", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("JudgeApproval", judged(time.Minute, "", ""))
		for range 25 {
			s.SignalAt(10*time.Minute, api.MsgApprove, by("amy"))
		}
		s.DoneAt(4 * time.Hour)
		status := s.Run(asked)
		s.ExpectCompleted()
		if got := messagesOf(status); strings.Count(got, "ignored: 20 decisions wait for the policy already") < 4 {
			t.Error(got)
		}
	})
	t.Run("reminders go on after one that was refused", func(t *testing.T) {
		s := workflowtest.New(t)
		s.Answer("JudgeApproval", judged(0, "", "policy two: no"))
		s.SignalAt(30*time.Minute, api.MsgApprove, by("ops"))
		s.SignalAt(100*time.Minute, api.MsgDeny, nil)
		status := s.Run(asked)
		s.ExpectCancelled()
		expectStates(t, status, notices.MaintenanceUnknown, notices.AwaitingApproval, notices.ApprovalReminder,
			notices.MaintenanceEnded, notices.MaintenanceCancelled)
	})
}

// A word that comes with the start is judged like any other, and one that nobody asked for comes to nothing.
func TestAWordThatComesWithTheStart(t *testing.T) {
	s := workflowtest.New(t)
	s.SignalAt(0, api.MsgApprove, workflowtest.Input{"by": "amy"})
	s.DoneAt(time.Hour)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"approval": true}))
	s.ExpectCompleted()
	if status.Approval == nil || status.Approval.By != "amy" {
		t.Errorf("approval %+v", status.Approval)
	}
	expectMessages(t, status, "approve by amy: the maintenance is approved")
}
