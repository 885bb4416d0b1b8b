package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/drain"
	policyactivity "drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

func TestAPodThatIsNotThereIsNotSkipped(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{After: 20 * time.Minute})
	s.Answer("FindPod", workflowtest.Reply{After: time.Second, Value: drain.PodFound{Missing: "there is no pod default/nosuch"}})
	s.SignalAt(5*time.Minute, api.MsgSkipPod, workflowtest.Input{"pod": "default/nosuch"})
	s.CheckAt(5*time.Minute+500*time.Millisecond, func(status api.Status) {
		if m := status.Messages[0]; m.Outcome != api.Judged {
			t.Errorf("while it is looked for: %+v", m)
		}
	})
	s.DoneAt(30 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if m := status.Messages[0]; m.Outcome != api.Ignored || m.Effect != "ignored: there is no pod default/nosuch" {
		t.Errorf("%+v", m)
	}
	if len(status.SkippedPods) > 0 || s.Count("Drain") != 1 {
		t.Errorf("skipped %v; it did %v", status.SkippedPods, s.Log)
	}
	if in := workflowtest.InputOf[drain.PodInput](s, "FindPod", 0); in != (drain.PodInput{Node: workflowtest.Node, Pod: "default/nosuch"}) {
		t.Errorf("it looked for %+v", in)
	}
}

// What is found only when the drain is over, or the maintenance, comes to nothing, and says so.
func TestAPodThatIsFoundTooLateIsNotSkipped(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		effect  string
	}{
		"the node is empty":         {"", "ignored: n1 is Ready, and not Draining"},
		"the maintenance has ended": {api.MsgCancel, "ignored: the maintenance is ending"},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.Answer("Drain", workflowtest.Reply{After: 6 * time.Minute})
			s.Answer("FindPod", workflowtest.Reply{After: 90 * time.Second})
			s.SignalAt(5*time.Minute, api.MsgSkipPod, workflowtest.Input{"pod": "default/web"})
			if c.message != "" {
				s.SignalAt(5*time.Minute+30*time.Second, c.message, nil)
			}
			s.DoneAt(30 * time.Minute)
			status := s.Run(workflowtest.InputWith(nil))
			if got := workflowtest.EffectsOf(status, api.MsgSkipPod); len(got) != 1 || got[0] != c.effect || len(status.SkippedPods) > 0 {
				t.Errorf("%v, skipped %v", got, status.SkippedPods)
			}
		})
	}
}

// consent is a whole one.
func consent(fields workflowtest.Input) workflowtest.Input {
	in := workflowtest.Input{"by": "amy", "comment": "caches only"}
	for name, value := range fields {
		in[name] = value
	}
	return in
}

func TestConsentChangesTheNextDrain(t *testing.T) {
	s := workflowtest.New(t)
	long := workflowtest.Reply{After: 24 * time.Hour}
	s.Answer("Drain", long, long, long, workflowtest.Reply{After: time.Minute})
	s.SignalAt(5*time.Minute, api.MsgConsent, consent(workflowtest.Input{"force": true, "pods": []string{"default/a", "default/b"}}))
	data := s.UpdateAt(10*time.Minute, api.MsgConsent, consent(workflowtest.Input{"deleteEmptyDir": true}))
	twice := s.UpdateAt(11*time.Minute, api.MsgConsent, consent(workflowtest.Input{"deleteEmptyDir": true}))
	s.SignalAt(15*time.Minute, api.MsgConsent, consent(workflowtest.Input{"force": true}))
	s.DoneAt(30 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	first, second := workflowtest.InputOf[drain.Input](s, "Drain", 1), workflowtest.InputOf[drain.Input](s, "Drain", 2)
	if len(first.Consents) != 2 || first.Consents[1] != (drain.Consent{Pod: "default/b", Force: true}) || first.Drain.Force || first.Drain.DeleteEmptyDir {
		t.Errorf("after the first consent: %+v", first)
	}
	if !second.Drain.DeleteEmptyDir || second.Drain.Force || len(second.Consents) != 2 {
		t.Errorf("after the second: %+v", second)
	}
	if third := workflowtest.InputOf[drain.Input](s, "Drain", 3); !third.Drain.Force || !third.Drain.DeleteEmptyDir {
		t.Errorf("after the third: %+v", third)
	}
	if got := strings.Join(workflowtest.EffectsOf(status, api.MsgConsent), "\n"); got !=
		"consented to force for default/a, default/b: the drain may lose pods that nobody re-creates\n"+
			"consented to deleteEmptyDir for all pods: the drain may lose emptyDir data\n"+
			"consented to force for all pods: the drain may lose pods that nobody re-creates" {
		t.Errorf("effects:\n%s", got)
	}
	if len(status.Consents) != 3 || status.Consents[0].By != "amy" || status.Consents[0].Comment != "caches only" || status.Spec.Drain.Force {
		t.Errorf("consents %+v", status.Consents)
	}
	if data.Err != nil || twice.Rejected == nil || !strings.Contains(twice.Rejected.Error(), "has that consent already, for all pods") {
		t.Errorf("%+v, %+v", data, twice)
	}
	if s.Count("JudgeAmendment") > 0 {
		t.Error("it was judged where there is no policy")
	}
}

func TestPodsThatAreNotThereAreNotConsentedTo(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Policy = true
	s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: time.Minute})
	there, missing := workflowtest.Reply{After: time.Second}, workflowtest.Reply{Value: drain.PodFound{Missing: "there is no pod default/b"}}
	s.Answer("FindPod", there, missing, there, there)
	both := consent(workflowtest.Input{"force": true, "pods": []string{"default/a", "default/b"}})
	s.SignalAt(5*time.Minute, api.MsgConsent, both)
	s.CheckAt(6*time.Minute, func(status api.Status) {
		if m := status.Messages[0]; m.Outcome != api.Ignored || m.Effect != "ignored: there is no pod default/b" || len(status.Consents) > 0 {
			t.Errorf("%+v, consents %+v", m, status.Consents)
		}
		if s.Count("JudgeAmendment") > 0 {
			t.Error("it was judged all the same")
		}
	})
	s.SignalAt(7*time.Minute, api.MsgConsent, both)
	s.DoneAt(30 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if len(status.Consents) != 1 || s.Count("FindPod") != 4 || s.Count("JudgeAmendment") != 1 {
		t.Errorf("consents %+v; it did %v", status.Consents, s.Log)
	}
}

func TestAConsentSaysToWhatByWhomAndWhy(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("HoldNode", workflowtest.Reply{After: time.Minute})
	s.Answer("Drain", workflowtest.Reply{After: 20 * time.Minute})
	early := s.UpdateAt(30*time.Second, api.MsgConsent, consent(workflowtest.Input{"force": true}))
	refused := map[string]*workflowtest.Outcome{}
	for want, payload := range map[string]workflowtest.Input{
		"consent to what?":   consent(nil),
		"by and comment":     {"force": true, "by": "amy"},
		"who consents":       {"force": true, "comment": "x"},
		"pods[1]":            consent(workflowtest.Input{"force": true, "pods": []string{"a/b", "b"}}),
		"meant for run late": consent(workflowtest.Input{"force": true, "run": "late"}),
	} {
		refused[want] = s.UpdateAt(5*time.Minute, api.MsgConsent, payload)
	}
	s.DoneAt(30 * time.Minute)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	for want, out := range refused {
		if out.Rejected == nil || !strings.Contains(out.Rejected.Error(), want) {
			t.Errorf("%s: %+v", want, out)
		}
	}
	if early.Rejected == nil || !strings.Contains(early.Rejected.Error(), "not Draining") {
		t.Errorf("early: %+v", early)
	}
	if s.Count("Drain") != 1 {
		t.Errorf("it did %v", s.Log)
	}
}

func TestThePolicyJudgesAConsent(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Policy = true
	s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: time.Minute})
	s.Answer("JudgeAmendment", workflowtest.Reply{Value: policyactivity.Judged{Refused: "policy no-force: not with force"}}, workflowtest.Reply{After: time.Second})
	s.SignalAt(5*time.Minute, api.MsgConsent, consent(workflowtest.Input{"force": true}))
	s.SignalAt(10*time.Minute, api.MsgConsent, consent(workflowtest.Input{"deleteEmptyDir": true}))
	s.DoneAt(30 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	got := workflowtest.EffectsOf(status, api.MsgConsent)
	if len(got) != 2 || got[0] != "ignored: policy no-force: not with force" || got[1] != "consented to deleteEmptyDir for all pods: the drain may lose emptyDir data" {
		t.Errorf("%q", got)
	}
	asked := workflowtest.InputOf[policyactivity.AmendmentInput](s, "JudgeAmendment", 0)
	if !strings.Contains(string(asked.Maintenance), `"force":true`) || strings.Contains(string(asked.Maintenance), `"deleteEmptyDir":true`) {
		t.Errorf("judged %s", asked.Maintenance)
	}
	if in := workflowtest.InputOf[drain.Input](s, "Drain", -1); in.Drain.Force || !in.Drain.DeleteEmptyDir || s.Count("Drain") != 2 {
		t.Errorf("%+v; it did %v", in, s.Log)
	}
}
