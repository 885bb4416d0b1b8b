package maintenance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	policyactivity "drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/workflows/workflowtest"
)

// TestAnUpdateIsAnsweredOnceItIsJudged: who hears that something is approved can rely on it.
func TestAnUpdateIsAnsweredOnceItIsJudged(t *testing.T) {
	asked := workflowtest.InputWith(workflowtest.Input{"approval": true})
	s := workflowtest.New(t)
	s.Answer("JudgeApproval", judged(time.Minute, "", "policy two: not oneself"), judged(time.Minute, "", ""))
	refused := s.UpdateAt(10*time.Minute, api.MsgApprove, workflowtest.Input{"by": "ops"})
	counts := s.UpdateAt(10*time.Minute+time.Second, api.MsgApprove, workflowtest.Input{"by": "amy"})
	late := s.UpdateAt(10*time.Minute+2*time.Second, api.MsgDeny, workflowtest.Input{"by": "bob"})
	s.DoneAt(4 * time.Hour)
	status := s.Run(asked)
	s.ExpectCompleted()
	for name, c := range map[string]struct {
		got          *workflowtest.Outcome
		effect, fail string
	}{
		"refused": {refused, "", "policy two: not oneself"},
		"counts":  {counts, "the maintenance is approved", ""},
		"late":    {late, "", "it was approved already"},
	} {
		if !c.got.Accepted || c.got.Effect != c.effect || (c.got.Err != nil) != (c.fail != "") || c.fail != "" && !strings.Contains(c.got.Err.Error(), c.fail) {
			t.Errorf("%s: %+v, want %q or %q", name, c.got, c.effect, c.fail)
		}
	}
	expectMessages(t, status, "approve by ops: ignored: policy two: not oneself", "approve by amy: the maintenance is approved",
		"deny by bob: ignored: it was approved already")
}

// TestUpdatesOfOneMomentAreAnsweredEachForItself: there are more pods to look for in the first, so that the second is done before it.
func TestUpdatesOfOneMomentAreAnsweredEachForItself(t *testing.T) {
	s := workflowtest.New(t)
	long := workflowtest.Reply{After: 24 * time.Hour}
	s.Answer("Drain", long, long, workflowtest.Reply{After: time.Minute})
	s.Usual["FindPod"] = workflowtest.Reply{After: time.Second}
	more := s.UpdateAt(5*time.Minute, api.MsgConsent, consent(workflowtest.Input{"force": true, "pods": []string{"default/a", "default/b"}}))
	fewer := s.UpdateAt(5*time.Minute, api.MsgConsent, consent(workflowtest.Input{"force": true, "pods": []string{"default/c"}}))
	s.DoneAt(30 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	const lost = ": the drain may lose pods that nobody re-creates"
	want := []string{"consented to force for default/a, default/b" + lost, "consented to force for default/c" + lost}
	if got := []string{more.Effect, fewer.Effect}; !slices.Equal(got, want) {
		t.Errorf("answered %q (%v, %v)", got, more.Err, fewer.Err)
	}
	if got := workflowtest.EffectsOf(status, api.MsgConsent); !slices.Equal(got, want) {
		t.Errorf("recorded %q", got)
	}
}

func TestAnUpdateIsAnsweredWhereTheMaintenanceEnds(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("JudgeApproval", judged(time.Hour, "", ""))
	approve := s.UpdateAt(10*time.Minute, api.MsgApprove, workflowtest.Input{"by": "amy"})
	s.SignalAt(11*time.Minute, api.MsgCancel, nil)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"approval": true}))
	s.ExpectCancelled()
	if approve.Err == nil || !strings.Contains(approve.Err.Error(), "the maintenance is ending") {
		t.Errorf("%+v", approve)
	}
	expectMessages(t, status, "approve by amy: ignored: the maintenance is ending")
}

// TestThePolicyJudgesWhatAMessageMakesOfAMaintenance: what a rule refuses at the start is not had by a message later.
func TestThePolicyJudgesWhatAMessageMakesOfAMaintenance(t *testing.T) {
	for name, c := range map[string]struct {
		payload workflowtest.Input
		// judged is what the policy sees of it.
		judged, effect string
	}{
		api.MsgJoin:     {workflowtest.Input{"requestor": "bios"}, `"additionalRequestors":["bios"]`, "bios shares the maintenance of ops"},
		api.MsgEscalate: {workflowtest.Input{"do": "kill"}, `"do":"kill"`, "takes the rung kill"},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.Prepared.Policy = true
			s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: time.Minute})
			s.Answer("JudgeAmendment", workflowtest.Reply{After: time.Second, Value: policyactivity.Judged{Refused: "policy own: no"}}, workflowtest.Reply{After: time.Second})
			refused := s.UpdateAt(5*time.Minute, name, c.payload)
			s.CheckAt(6*time.Minute, func(status api.Status) {
				if len(status.Requestors) != 1 || len(status.Escalation) > 0 {
					t.Errorf("refused, and %+v, %+v", status.Requestors, status.Escalation)
				}
			})
			applied := s.UpdateAt(10*time.Minute, name, c.payload)
			s.SignalAt(20*time.Minute, api.MsgEscalate, workflowtest.Input{"do": "kill"})
			s.DoneAt(time.Hour)
			s.SignalAt(time.Hour, api.MsgDone, workflowtest.Input{"requestor": "bios"})
			s.Run(workflowtest.InputWith(nil))
			s.ExpectCompleted()
			expectJudged(t, s, c.judged, refused, applied, c.effect)
		})
	}
}

func expectJudged(t *testing.T, s *workflowtest.Site, want string, refused, applied *workflowtest.Outcome, effect string) {
	t.Helper()
	if refused.Err == nil || !strings.Contains(refused.Err.Error(), "policy own: no") || applied.Err != nil || !strings.HasPrefix(applied.Effect, effect) {
		t.Errorf("refused %+v, applied %+v", refused, applied)
	}
	asked := workflowtest.InputOf[policyactivity.AmendmentInput](s, "JudgeAmendment", 0)
	if !strings.Contains(string(asked.Maintenance), want) {
		t.Errorf("judged %s, want %s", asked.Maintenance, want)
	}
}

func TestThePolicyJudgesAHoldOfAnotherLength(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Policy = true
	s.Answer("JudgeAmendment", workflowtest.Reply{Value: policyactivity.Judged{Refused: "policy own: no"}}, workflowtest.Reply{After: time.Second})
	refused := s.UpdateAt(5*time.Minute, api.MsgExtend, workflowtest.Input{"for": "100h"})
	same := s.UpdateAt(10*time.Minute, api.MsgExtend)
	applied := s.UpdateAt(15*time.Minute, api.MsgExtend, workflowtest.Input{"for": "2h"})
	s.DoneAt(time.Hour)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	expectJudged(t, s, `"readyTimeout":"100h0m0s"`, refused, applied, "the node may be held until")
	if same.Err != nil || s.Count("JudgeAmendment") != 2 {
		t.Errorf("%+v; judged %d times", same, s.Count("JudgeAmendment"))
	}
}

func TestThePolicyJudgesAHookThatIsSkipped(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Policy = true
	s.Prepared.Hooks = []validation.Hook{hookPlan("wipe", func(p *validation.Hook) { p.Kind = validation.KindSignal })}
	s.Answer("JudgeAmendment", workflowtest.Reply{Value: policyactivity.Judged{Refused: "policy own: no"}}, workflowtest.Reply{After: time.Second})
	refused := s.UpdateAt(2*time.Minute, api.MsgSkipHook, workflowtest.Input{"hook": "wipe"})
	applied := s.UpdateAt(3*time.Minute, api.MsgSkipHook, workflowtest.Input{"hook": "wipe"})
	s.DoneAt(time.Hour)
	s.Run(workflowtest.InputWith(workflowtest.Input{"hooks": workflowtest.Input{"afterDrain": []string{"wipe"}}}))
	s.ExpectCompleted()
	expectJudged(t, s, "", refused, applied, "hook wipe is skipped")
	if asked := workflowtest.InputOf[policyactivity.AmendmentInput](s, "JudgeAmendment", 0); strings.Contains(string(asked.Maintenance), "wipe") {
		t.Errorf("judged %s, with the hook", asked.Maintenance)
	}
}

// TestAJoinThatComesWithTheStartIsJudged: it is read before anybody knows whether there is a policy.
func TestAJoinThatComesWithTheStartIsJudged(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Policy = true
	s.Answer("JudgeAmendment", workflowtest.Reply{Value: policyactivity.Judged{Refused: "policy own: no"}})
	s.SignalAt(0, api.MsgJoin, workflowtest.Input{"requestor": "bios"})
	s.DoneAt(time.Hour)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if got := workflowtest.EffectsOf(status, api.MsgJoin); len(got) != 1 || got[0] != "ignored: policy own: no" || len(status.Requestors) != 1 {
		t.Errorf("%q, %+v", got, status.Requestors)
	}
}
