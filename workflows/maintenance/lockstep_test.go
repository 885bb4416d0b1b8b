package maintenance_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/workflowtest"
)

// Pods that are to leave, each more than the one before.
var (
	first  = drainplan.Entry{PodType: drainplan.Default, PodPriority: 1000, PodSelector: "app=web"}
	second = drainplan.Entry{PodType: drainplan.Default, PodPriority: 2_000_000_000}
	third  = drainplan.Entry{PodType: drainplan.DaemonSet, PodPriority: 1_000_000_000}
)

// sharedSite prepares a maintenance that plans share.
func sharedSite(t *testing.T) *workflowtest.Site {
	return workflowtest.NewAs(t, api.MaintenanceID("", workflowtest.Node, api.PlansRequestor), api.DefaultTaskQueue)
}

// sharedInput is its input, with more fields.
func sharedInput(fields workflowtest.Input) workflowtest.Input {
	in := workflowtest.InputWith(fields)
	in["requestor"], in["lockstep"] = api.PlansRequestor, true
	return in
}

func targetOf(revision int, targets ...drainplan.Entry) api.NodeTarget {
	return api.NodeTarget{Revision: revision, Targets: targets, Plans: []string{"kernel"}, Waits: fmt.Sprintf("word %d", revision)}
}

func lastTarget(revision int, targets ...drainplan.Entry) api.NodeTarget {
	n := targetOf(revision, targets...)
	n.Last = true
	return n
}

// drained are the tiers of all drains, in order.
func drained(s *workflowtest.Site) []string {
	var all []string
	for i := range s.Count("Drain") {
		in := workflowtest.InputOf[drain.Input](s, "Drain", i)
		var tiers []string
		for _, e := range in.Drain.Plan.Tiers {
			tiers = append(tiers, fmt.Sprintf("%s<=%d%s", e.PodType, e.PodPriority, e.PodSelector))
		}
		all = append(all, strings.Join(tiers, " "))
	}
	return all
}

const (
	upToFirst  = "Default<=1000app=web"
	upToSecond = "Default<=2000000000 Default<=2000000000app=web"
	upToThird  = upToSecond + " DaemonSet<=1000000000"
)

func expectDrains(t *testing.T, s *workflowtest.Site, want ...string) {
	t.Helper()
	if got := drained(s); !slices.Equal(got, want) {
		t.Errorf("drained\n %s, want\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}

// reportedBy is what the lockstep knew by a time after which nothing changed for a while.
func reportedBy(t *testing.T, s *workflowtest.Site, d time.Duration, check func(p api.NodeProgress)) {
	t.Helper()
	s.At(d, func() {
		t.Helper()
		if len(s.Progress) == 0 {
			t.Errorf("after %s the lockstep got no report", d)
			return
		}
		check(s.Progress[len(s.Progress)-1])
	})
}

func expectReported(t *testing.T, s *workflowtest.Site, d time.Duration, phase api.Phase, revision int, isDrained bool) {
	t.Helper()
	reportedBy(t, s, d, func(p api.NodeProgress) {
		t.Helper()
		if p.Phase != phase || p.Revision != revision || p.Drained != isDrained || p.Node != workflowtest.Node || p.RunID != workflowtest.RunID || p.Ended {
			t.Errorf("after %s the lockstep knew %+v, want %s at %d, drained %v", d, p, phase, revision, isDrained)
		}
	})
}

func TestASharedMaintenanceGoesAsFarAsItsPlans(t *testing.T) {
	s := sharedSite(t)
	s.ExpectAt(30*time.Second, api.Pending, `its first target: no plan has said yet how far to drain the node. Workflow drydock-plans sends it (signal "target")`)
	expectReported(t, s, 30*time.Second, api.Pending, 0, false)
	s.At(59*time.Second, func() {
		if n := s.Count("slot-request"); n != 0 {
			t.Errorf("%d slots were asked for before it was known how far to go", n)
		}
	})
	s.SignalAt(time.Minute, api.SignalTarget, targetOf(1))
	s.ExpectAt(9*time.Minute, api.Cordoned, "word 1")
	expectReported(t, s, 9*time.Minute, api.Cordoned, 1, false)
	s.SignalAt(10*time.Minute, api.SignalTarget, targetOf(2, first))
	s.ExpectAt(10*time.Minute+30*time.Second, api.Draining, "")
	s.ExpectAt(12*time.Minute, api.Ready, "word 2")
	expectReported(t, s, 12*time.Minute, api.Ready, 2, true)
	s.SignalAt(20*time.Minute, api.SignalTarget, targetOf(3, first, second))
	s.ExpectAt(20*time.Minute+30*time.Second, api.Draining, "")
	expectReported(t, s, 20*time.Minute+30*time.Second, api.Draining, 3, false)
	s.CheckAt(25*time.Minute, func(status api.Status) {
		if l := status.Lockstep; status.Phase != api.Ready || status.ReadyDeadline != nil || l == nil || l.Revision != 3 || len(l.Targets) != 2 || l.Last {
			t.Errorf("after the second tier: %s until %v, %+v", status.Phase, status.ReadyDeadline, l)
		}
		if strings.Contains(states(status), "ObjectsDrained") {
			t.Errorf("the requestor was notified before its turn: %s", states(status))
		}
	})
	s.SignalAt(30*time.Minute, api.SignalTarget, lastTarget(4, first, second, third))
	s.CheckAt(35*time.Minute, func(status api.Status) {
		if status.Phase != api.Ready || status.ReadyDeadline == nil {
			t.Errorf("after the last tier: %s until %v", status.Phase, status.ReadyDeadline)
		}
	})
	s.DoneAt(40 * time.Minute)
	status := s.Run(sharedInput(nil))
	s.ExpectCompleted()
	s.ExpectPhases(status, api.Pending, api.Scheduled, api.Cordoning, api.Cordoned, api.Draining, api.Ready, api.Draining, api.Ready,
		api.Draining, api.Ready, api.Releasing, api.Completed)
	expectDrains(t, s, upToFirst, upToSecond, upToThird)
	expectStates(t, status, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.ObjectsDrained,
		notices.MaintenanceEnded, notices.MaintenanceComplete)
	in := workflowtest.InputOf[drain.Input](s, "Drain", 2)
	if in.Drain.Plan.Static != spec.SkipStatic || len(in.Drain.Plan.Include) != 0 || !in.ReportCounts || in.Before == nil || in.Before.Tier != 0 {
		t.Errorf("the last drain got %+v", in)
	}
	end := s.Progress[len(s.Progress)-1]
	if !slices.Equal(end.Plans, []string{"kernel"}) || !end.Ended || end.Phase != api.Completed || end.Failure != "" || end.Drained || end.Revision != 4 {
		t.Errorf("at the end the lockstep got %+v", end)
	}
	var shown []string
	for i := range s.Count("AnnouncePhase") {
		shown = append(shown, workflowtest.InputOf[node.AnnounceInput](s, "AnnouncePhase", i).Phase)
	}
	if got := strings.Join(shown, " "); got != "Cordoned Draining Ready Draining Ready Draining Ready" {
		t.Errorf("the node showed %s", got)
	}
}

func TestASharedMaintenanceThatIsToBeDrainedAtOnceIsNeverCordonedOnly(t *testing.T) {
	s := sharedSite(t)
	s.SignalAt(0, api.SignalTarget, lastTarget(1, first))
	s.DoneAt(time.Hour / 2)
	status := s.Run(sharedInput(nil))
	s.ExpectCompleted()
	s.ExpectPhases(status, api.Pending, api.Scheduled, api.Cordoning, api.Draining, api.Ready, api.Releasing, api.Completed)
}

// TestATargetCountsWheneverItComes sends a target at every half minute of a maintenance in which everything takes two, and
// has it go on in a new run beside that: in the end the node is drained to it, unless the end was decided.
func TestATargetCountsWheneverItComes(t *testing.T) {
	const ends = 40 * time.Minute
	for at := time.Duration(0); at < 30*time.Minute; at += 30 * time.Second {
		for _, anew := range []time.Duration{0, -time.Second, time.Second} {
			s := sharedSite(t)
			for _, activity := range []string{"HoldNode", "Drain", "AnnouncePhase", "ReleaseNode"} {
				s.Usual[activity] = workflowtest.Reply{After: 2 * time.Minute}
			}
			s.SignalAt(2*time.Minute, api.SignalTarget, targetOf(1))
			s.SignalAt(10*time.Minute, api.SignalTarget, targetOf(2, first))
			s.SignalAt(at, api.SignalTarget, targetOf(9, first, second))
			if anew != 0 {
				s.ContinueAt(max(at+anew, time.Second))
			}
			expectReported(t, s, ends-time.Second, api.Ready, 9, true)
			s.DoneAt(ends)
			status := s.Run(sharedInput(nil))
			s.ExpectCompleted()
			if status.Phase != api.Completed || status.Lockstep.Revision != 9 {
				t.Errorf("it ended %s with %+v", status.Phase, status.Lockstep)
			}
			if all := drained(s); all[len(all)-1] != upToSecond {
				t.Errorf("a target after %s, a new run %s later: drained %v", at, anew, all)
			}
			if t.Failed() {
				t.Fatalf("with a target after %s, and a new run %s later", at, anew)
			}
		}
	}
}

func TestATargetWhileItDrainsBeginsTheDrainAnew(t *testing.T) {
	s := sharedSite(t)
	s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour})
	s.SignalAt(0, api.SignalTarget, targetOf(1, first))
	s.SignalAt(5*time.Minute, api.SignalTarget, targetOf(2, first)) // the same pods: nothing is begun anew
	s.At(6*time.Minute, func() {
		if n := s.Count("Drain"); n != 1 {
			t.Errorf("%d drains", n)
		}
	})
	s.SignalAt(10*time.Minute, api.SignalTarget, targetOf(3, second))
	s.ExpectAt(12*time.Minute, api.Ready, "word 3")
	s.DoneAt(20 * time.Minute)
	status := s.Run(sharedInput(nil))
	s.ExpectCompleted()
	expectDrains(t, s, upToFirst, upToSecond)
	s.ExpectPhases(status, api.Pending, api.Scheduled, api.Cordoning, api.Draining, api.Ready, api.Releasing, api.Completed)
}

func TestTargetsNeverGoBack(t *testing.T) {
	s := sharedSite(t)
	s.SignalAt(0, api.SignalTarget, targetOf(3, first, second))
	for i, n := range []api.NodeTarget{
		targetOf(2, third), // older
		targetOf(3, third), // as old
		targetOf(4, first), // less
		targetOf(5),        // nothing
	} {
		s.SignalAt(time.Duration(5+i)*time.Minute, api.SignalTarget, n)
	}
	s.CheckAt(10*time.Minute, func(status api.Status) {
		if l := status.Lockstep; status.Phase != api.Ready || l.Revision != 5 || len(l.Targets) != 2 || status.WaitingFor != "word 5" {
			t.Errorf("%s, waiting for %q: %+v", status.Phase, status.WaitingFor, l)
		}
	})
	s.DoneAt(20 * time.Minute)
	s.Run(sharedInput(nil))
	s.ExpectCompleted()
	expectDrains(t, s, upToSecond)
}

func TestWhatIsNoTargetChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		payload any
		want    string
	}{
		"not JSON":            {workflowtest.Raw(`{"revision"`), "not valid JSON"},
		"nothing":             {nil, "want a JSON object"},
		"an unknown field":    {workflowtest.Raw(`{"revision":2,"force":true}`), "force: unknown field"},
		"no revision":         {api.NodeTarget{Targets: []drainplan.Entry{first}}, "revision: 0: want 1 or more"},
		"a negative revision": {api.NodeTarget{Revision: -1}, "revision: -1"},
		"a leap":              {api.NodeTarget{Revision: 1 << 60, Targets: []drainplan.Entry{first}}, "too far ahead of 1"},
		"another run's":       {api.NodeTarget{Run: "another", Revision: 2, Targets: []drainplan.Entry{first}}, "it is meant for run another"},
		"no pod type":         {api.NodeTarget{Revision: 2, Targets: []drainplan.Entry{{PodType: "Any"}}}, `unknown pod type "Any"`},
		"no selector":         {api.NodeTarget{Revision: 2, Targets: []drainplan.Entry{{PodType: drainplan.Default, PodSelector: "a=("}}}, "podSelector"},
		"an endless selector": {api.NodeTarget{Revision: 2, Targets: []drainplan.Entry{{PodType: drainplan.Default, PodSelector: "a=" + strings.Repeat("b", 2000)}}}, "targets[0].podSelector: 2002 bytes"},
		"too many":            {targetOf(2, slices.Repeat([]drainplan.Entry{first}, api.MaxTargets+1)...), "1001 entries"},
		"too large":           {workflowtest.Raw(`{"waits":"` + strings.Repeat("x", 600<<10) + `"}`), "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sharedSite(t)
			s.SignalAt(0, api.SignalTarget, targetOf(1))
			s.SignalAt(5*time.Minute, api.SignalTarget, c.payload)
			s.CheckAt(6*time.Minute, func(status api.Status) {
				if status.Phase != api.Cordoned || status.Lockstep.Revision != 1 || status.WaitingFor != "word 1" {
					t.Errorf("it is %s, and waits for %q: %+v", status.Phase, status.WaitingFor, status.Lockstep)
				}
				if n := len(status.Messages); n != 1 || status.Messages[0].Name != api.SignalTarget || !strings.Contains(status.Messages[0].Effect, c.want) {
					t.Errorf("messages %+v, want one with %s", status.Messages, c.want)
				}
			})
			s.SignalAt(10*time.Minute, api.MsgCancel, nil)
			s.Run(sharedInput(nil))
			if s.Count("Drain") != 0 {
				t.Errorf("it drained: %v", drained(s))
			}
		})
	}
}

func TestAMaintenanceOfItsOwnTakesNoTarget(t *testing.T) {
	s := workflowtest.New(t)
	s.SignalAt(0, api.SignalTarget, targetOf(1, third)) // before the specification is read
	s.SignalAt(5*time.Minute, api.SignalTarget, targetOf(2, third))
	s.ContinueAt(6 * time.Minute)
	s.DoneAt(20 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	s.ExpectLog("slot-request", "HoldNode", "Drain", "AnnouncePhase", "ReleaseNode", "slot-release")
	if plan := workflowtest.InputOf[drain.Input](s, "Drain", 0).Drain.Plan; plan != nil || status.Lockstep != nil {
		t.Errorf("drained by %+v, %+v", plan, status.Lockstep)
	}
	if n := len(status.Messages); n == 0 || !strings.Contains(status.Messages[0].Effect, "no plans share this maintenance") {
		t.Errorf("messages %+v", status.Messages)
	}
}

func TestATargetWhileItIsFrozenWaitsForTheThaw(t *testing.T) {
	s := sharedSite(t)
	s.SignalAt(0, api.SignalTarget, targetOf(1, first))
	s.HoldAt(5*time.Minute, "frozen by amy")
	s.SignalAt(6*time.Minute, api.SignalTarget, targetOf(2, second))
	s.ExpectAt(10*time.Minute, api.Draining, "a thaw: frozen by amy")
	s.SignalAt(12*time.Minute, api.SignalTarget, targetOf(3, second, third))
	s.At(19*time.Minute, func() {
		if n := s.Count("Drain"); n != 1 {
			t.Errorf("%d drains under the freeze", n)
		}
	})
	s.HoldAt(20 * time.Minute)
	s.ExpectAt(25*time.Minute, api.Ready, "word 3")
	s.DoneAt(30 * time.Minute)
	s.Run(sharedInput(nil))
	s.ExpectCompleted()
	expectDrains(t, s, upToFirst, upToThird)
}

func TestATargetAfterAFailureWaitsForTheRetry(t *testing.T) {
	s := sharedSite(t)
	s.SignalAt(0, api.SignalTarget, lastTarget(1, first))
	s.SignalAt(5*time.Minute, api.MsgFailed, api.FailedMessage{Reason: "no firmware"})
	s.SignalAt(6*time.Minute, api.SignalTarget, targetOf(2, second))
	s.ExpectAt(10*time.Minute, api.RequestorFailed, "a decision")
	expectReported(t, s, 10*time.Minute, api.RequestorFailed, 2, false)
	s.SignalAt(11*time.Minute, api.MsgRetry, nil)
	s.ExpectAt(15*time.Minute, api.Ready, "word 2")
	s.DoneAt(20 * time.Minute)
	status := s.Run(sharedInput(nil))
	s.ExpectCompleted()
	expectDrains(t, s, upToFirst, upToSecond)
	if n := strings.Count(states(status), "ObjectsDrained"); n != 1 {
		t.Errorf("ObjectsDrained was announced %d times: %s", n, states(status))
	}
}

func TestATargetDuringTheReleaseIsAnsweredAndChangesNothing(t *testing.T) {
	s := sharedSite(t)
	s.Usual["ReleaseNode"] = workflowtest.Reply{After: 5 * time.Minute}
	s.SignalAt(0, api.SignalTarget, lastTarget(1, first))
	s.DoneAt(10 * time.Minute)
	before := 0
	s.At(12*time.Minute, func() { before = len(s.Progress) })
	s.SignalAt(12*time.Minute, api.SignalTarget, targetOf(2, second))
	s.At(13*time.Minute, func() {
		if len(s.Progress) != before+1 {
			t.Errorf("the lockstep got %d reports", len(s.Progress)-before)
		}
	})
	expectReported(t, s, 13*time.Minute, api.Releasing, 1, true)
	s.Run(sharedInput(nil))
	s.ExpectCompleted()
	expectDrains(t, s, upToFirst)
}

func TestClocksOfASharedMaintenanceRunOnlyWhileThereIsSomethingToDo(t *testing.T) {
	s := sharedSite(t)
	s.Usual["Drain"] = workflowtest.Reply{After: 6 * time.Minute}
	s.SignalAt(0, api.SignalTarget, targetOf(1))
	s.SignalAt(2*time.Hour, api.SignalTarget, targetOf(2, first))
	s.CheckAt(4*time.Hour, func(status api.Status) {
		if status.Phase != api.Ready || len(status.Escalation) != 0 || strings.Contains(states(status), "SLAExpired") {
			t.Errorf("%s after %+v, %s", status.Phase, status.Escalation, states(status))
		}
	})
	s.SignalAt(5*time.Hour, api.SignalTarget, targetOf(3, second))
	s.CheckAt(5*time.Hour+5*time.Minute, func(status api.Status) { // six minutes and these
		if got := taken(status); status.Phase != api.Draining || got != "notify expireSLA" && got != "expireSLA notify" {
			t.Errorf("%s, taken %q", status.Phase, got)
		}
	})
	s.ExpectAt(40*time.Hour, api.Ready, "word 3") // whatever readyTimeout is
	s.SignalAt(41*time.Hour, api.SignalTarget, lastTarget(4, second))
	s.SignalAt(41*time.Hour+10*time.Minute, api.SignalTarget, targetOf(5, second)) // another plan came
	s.CheckAt(43*time.Hour, func(status api.Status) {
		if status.Phase != api.Ready || status.ReadyDeadline != nil {
			t.Errorf("%s until %v", status.Phase, status.ReadyDeadline)
		}
	})
	s.SignalAt(44*time.Hour, api.SignalTarget, lastTarget(6, second))
	s.ExpectAt(44*time.Hour+29*time.Minute, api.Ready, "word 6")
	s.ExpectAt(44*time.Hour+31*time.Minute, api.RequestorFailed, "a decision")
	s.DoneAt(45 * time.Hour)
	s.Run(sharedInput(workflowtest.Input{
		"readyTimeout": "30m", "sla": workflowtest.Input{"after": "10m"},
		"drain": workflowtest.Input{"escalation": []workflowtest.Input{{"after": "10m", "do": "notify"}}},
	}))
	s.ExpectCompleted()
}

func TestADrainByPlansIsNotGivenBackByOneNode(t *testing.T) {
	s := sharedSite(t)
	s.Usual["Drain"] = workflowtest.Reply{After: 24 * time.Hour}
	s.SignalAt(0, api.SignalTarget, targetOf(1, first))
	asked := s.UpdateAt(10*time.Minute, api.MsgEscalate, api.Escalate{Do: spec.GiveBack})
	s.ExpectAt(3*time.Hour, api.Draining, "") // the default rung only tells
	s.SignalAt(4*time.Hour, api.MsgCancel, nil)
	status := s.Run(sharedInput(nil))
	if got := taken(status); got != "notify" {
		t.Errorf("taken %q", got)
	}
	if asked.Rejected == nil || !strings.Contains(asked.Rejected.Error(), "giveBack") {
		t.Errorf("escalated: %+v", asked)
	}
	if end := s.Progress[len(s.Progress)-1]; !end.Ended || end.Phase != api.Cancelled || !strings.Contains(end.Failure, "cancelled") {
		t.Errorf("at the end the lockstep got %+v", end)
	}
}

func TestTheReportIsRepeatedWhereTheLockstepSaysNothing(t *testing.T) {
	for name, away := range map[string]error{"silent": nil, "away": errors.New("workflow not found")} {
		t.Run(name, func(t *testing.T) {
			s := sharedSite(t)
			s.LockstepAway = away
			s.SignalAt(0, api.SignalTarget, targetOf(1, first))
			var before int
			s.At(10*time.Minute, func() { before = len(s.Progress) })
			s.At(24*time.Hour, func() {
				if n := len(s.Progress) - before; n < 20 || n > 30 {
					t.Errorf("%d repeated reports in a day", n)
				}
			})
			s.ExpectAt(24*time.Hour, api.Ready, "word 1")
			s.SignalAt(25*time.Hour, api.SignalTarget, api.NodeTarget{Report: true})
			s.At(25*time.Hour-time.Second, func() { before = len(s.Progress) })
			s.At(25*time.Hour+time.Second, func() {
				if n := len(s.Progress) - before; n != 1 {
					t.Errorf("asked once, it reported %d times", n)
				}
			})
			s.DoneAt(26 * time.Hour)
			s.Run(sharedInput(nil))
			s.ExpectCompleted()
		})
	}
}

func TestTheLockstepGetsAReportWhenItAsksAndOnceASecondAtMost(t *testing.T) {
	s := sharedSite(t)
	s.SignalAt(0, api.SignalTarget, targetOf(1, first))
	var before int
	s.At(10*time.Minute, func() { before = len(s.Progress) })
	for i := range 100 {
		s.SignalAt(10*time.Minute+time.Duration(i)*10*time.Millisecond, api.SignalTarget, api.NodeTarget{Revision: 1, Report: true})
	}
	s.At(10*time.Minute+5*time.Second, func() {
		if n := len(s.Progress) - before; n < 1 || n > 2 {
			t.Errorf("%d reports in a second", n)
		}
	})
	s.DoneAt(20 * time.Minute)
	s.Run(sharedInput(nil))
}

// The other nodes wait for that.
func TestTheLockstepHearsAtOnceThatANodeIsDrained(t *testing.T) {
	s := sharedSite(t)
	s.Answer("Drain", workflowtest.Reply{After: 200 * time.Millisecond}, workflowtest.Reply{After: 200 * time.Millisecond})
	s.SignalAt(0, api.SignalTarget, targetOf(1, first))
	s.SignalAt(10*time.Minute, api.SignalTarget, targetOf(2, second))
	reportedBy(t, s, 10*time.Minute+100*time.Millisecond, func(p api.NodeProgress) {
		if p.Revision != 1 || !p.Drained {
			t.Errorf("before it is drained the lockstep got %+v", p)
		}
	})
	expectReported(t, s, 10*time.Minute+400*time.Millisecond, api.Draining, 2, true)
	expectReported(t, s, 10*time.Minute+10*time.Second, api.Ready, 2, true)
	s.DoneAt(20 * time.Minute)
	s.Run(sharedInput(nil))
	s.ExpectCompleted()
}

func TestTheLockstepKnowsHowManyPodsAreLeft(t *testing.T) {
	s := sharedSite(t)
	s.Answer("Drain", workflowtest.Reply{After: 10 * time.Minute})
	s.SignalAt(0, api.SignalTarget, targetOf(1, first))
	s.SignalAt(2*time.Minute, api.SignalDrainBlocked, api.DrainProgress{At: time.Date(2026, 7, 1, 12, 2, 0, 0, time.UTC), Total: 9, Remaining: 5, Terminating: 2})
	reportedBy(t, s, 3*time.Minute, func(p api.NodeProgress) {
		if p.Pending != 3 || p.Evacuating != 2 {
			t.Errorf("the lockstep knew %+v", p)
		}
	})
	reportedBy(t, s, 12*time.Minute, func(p api.NodeProgress) {
		if p.Pending != 0 || p.Evacuating != 0 || !p.Drained {
			t.Errorf("the lockstep knew %+v", p)
		}
	})
	s.DoneAt(20 * time.Minute)
	s.Run(sharedInput(nil))
}

func TestAMarkThatIsLostUnderASharedDrainIsSetAgain(t *testing.T) {
	s := sharedSite(t)
	s.Answer("Drain", workflowtest.Reply{After: time.Second, Err: workflowtest.Failing(api.ErrorNotHolder, "the node does not carry this maintenance's mark")})
	s.SignalAt(0, api.SignalTarget, targetOf(1, first))
	s.DoneAt(20 * time.Minute)
	s.Run(sharedInput(nil))
	s.ExpectCompleted()
	expectDrains(t, s, upToFirst, upToFirst)
	if s.Count("HoldNode") != 2 {
		t.Errorf("it did %v", s.Log)
	}
}

func TestASharedMaintenanceEndsWithItsNode(t *testing.T) {
	gone := api.NodeChange{RequestID: workflowtest.RunID + "/1", Missing: true}
	for name, word := range map[string]api.NodeTarget{"cordoned": targetOf(1), "draining": targetOf(1, first)} {
		t.Run(name, func(t *testing.T) {
			s := sharedSite(t)
			s.Usual["Drain"] = workflowtest.Reply{After: 24 * time.Hour}
			s.SignalAt(0, api.SignalTarget, word)
			s.SignalAt(5*time.Minute, api.SignalNodeChanged, gone)
			s.Answer("HoldNode", workflowtest.Reply{}, deleted)
			status := s.Run(sharedInput(nil))
			if end := s.Progress[len(s.Progress)-1]; status.Phase != api.NodeGone || !end.Ended || end.Phase != api.NodeGone || !strings.Contains(end.Failure, "deleted") {
				t.Errorf("it ended %s, and the lockstep got %+v", status.Phase, end)
			}
		})
	}
}

func TestASharedMaintenanceThatLosesItsSlotIsDrainedAgain(t *testing.T) {
	s := sharedSite(t)
	s.Answer("AdoptNode", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorSlotNotHeld, "no slot")})
	s.SignalAt(0, api.SignalTarget, lastTarget(1, first))
	s.SignalAt(10*time.Minute, api.SignalNodeChanged, api.NodeChange{RequestID: workflowtest.RunID + "/1", Unmarked: true})
	s.ExpectAt(15*time.Minute, api.Ready, "word 1")
	s.DoneAt(20 * time.Minute)
	status := s.Run(sharedInput(nil))
	s.ExpectCompleted()
	expectDrains(t, s, upToFirst, upToFirst)
	if status.Attempt != 2 || s.Count("AnnouncePhase") != 2 {
		t.Errorf("attempt %d, %v", status.Attempt, s.Log)
	}
}

func TestASharedMaintenanceWithoutALockstepCanBeCancelled(t *testing.T) {
	s := sharedSite(t)
	s.LockstepAway = errors.New("workflow not found")
	s.ExpectAt(48*time.Hour, api.Pending, `"cancel" ends it`)
	s.SignalAt(49*time.Hour, api.MsgCancel, nil)
	status := s.Run(workflowtest.Input{"node": workflowtest.Node, "lockstep": true})
	if status.Phase != api.Cancelled || s.Count("slot-request") != 0 || s.Count("HoldNode") != 0 {
		t.Errorf("it ended %s after %v", status.Phase, s.Log)
	}
}

func TestTheRequestorOfSharedMaintenancesIsTheirs(t *testing.T) {
	s := sharedSite(t)
	in := workflowtest.InputWith(nil)
	in["requestor"] = api.PlansRequestor
	s.Env.ExecuteWorkflow(api.NodeMaintenanceType, in.Payload(t), workflowtest.Raw(""))
	s.ExpectFailure(api.ErrorInvalidSpec, `requestor: "plans" is that of the maintenances which plans share`)
	s.ExpectLog()
}

func TestDaemonSetsThatPlansDrainedComeBackForTheValidation(t *testing.T) {
	for want, targets := range map[int][]drainplan.Entry{0: {first}, 1: {first, third}} {
		s := sharedSite(t)
		s.SignalAt(0, api.SignalTarget, lastTarget(1, targets...))
		s.DoneAt(20 * time.Minute)
		s.Run(sharedInput(workflowtest.Input{"validation": workflowtest.Input{"ready": true}}))
		s.ExpectCompleted()
		if n := s.Count("Untaint"); n != want {
			t.Errorf("%v: the taint was taken off %d times", targets, n)
		}
	}
}

func TestTheSlotIsAskedForWithTheTargetsGang(t *testing.T) {
	s := sharedSite(t)
	var asked []string
	s.Scheduler = func(_ string, arg any) error {
		if r, ok := arg.(api.SlotRequest); ok {
			if asked = append(asked, fmt.Sprint(r.Gang)); r.Gang == nil {
				s.Grant(r.ID)
			}
		}
		return nil
	}
	of := func(n api.NodeTarget, size int) api.NodeTarget {
		n.Gang = &schedule.Gang{Name: "kernel", Size: size}
		return n
	}
	s.SignalAt(0, api.SignalTarget, of(targetOf(1), 3))
	s.SignalAt(time.Minute, api.SignalTarget, of(targetOf(2), 0)) // no gang has no nodes
	s.SignalAt(2*time.Minute, api.SignalTarget, of(targetOf(3), 2))
	s.SignalAt(3*time.Minute, api.SignalTarget, lastTarget(4, first))
	s.ExpectAt(10*time.Minute, api.Ready, "word 4")
	s.DoneAt(20 * time.Minute)
	status := s.Run(sharedInput(nil))
	s.ExpectCompleted()
	if got := slices.Compact(asked); len(got) != 3 || got[0] != "&{kernel 3}" || got[1] != "&{kernel 2}" || got[2] != "<nil>" {
		t.Errorf("asked for %v", got)
	}
	if m := status.Messages; len(m) != 2 || !strings.Contains(m[0].Effect, "gang.size: 0") {
		t.Errorf("messages %+v", status.Messages)
	}
}

// goesOn is a target of plans that will drain the node further.
func goesOn(revision int, targets ...drainplan.Entry) api.NodeTarget {
	n := targetOf(revision, targets...)
	n.Further = true
	return n
}

// Between its tiers a node stays Draining: nothing is announced, and its clocks stand still.
func TestANodeStaysDrainingBetweenItsTiers(t *testing.T) {
	s := sharedSite(t)
	s.Usual["Drain"] = workflowtest.Reply{After: 6 * time.Minute}
	s.SignalAt(0, api.SignalTarget, goesOn(1, first))
	s.ExpectAt(30*time.Minute, api.Draining, "word 1")
	expectReported(t, s, 30*time.Minute, api.Draining, 1, true)
	s.SignalAt(50*time.Minute, api.SignalTarget, func() api.NodeTarget { n := goesOn(2, first); n.Waits = "another"; return n }())
	s.ExpectAt(59*time.Minute, api.Draining, "another")
	s.SignalAt(time.Hour, api.SignalTarget, goesOn(3, first, second))
	s.CheckAt(time.Hour+3*time.Minute, func(status api.Status) {
		if status.Phase != api.Draining || status.WaitingFor != "" || len(status.Escalation) != 0 {
			t.Errorf("%s, waits for %q, %+v", status.Phase, status.WaitingFor, status.Escalation)
		}
	})
	s.SignalAt(2*time.Hour, api.SignalTarget, lastTarget(4, first, second, third))
	s.CheckAt(2*time.Hour+5*time.Minute, func(status api.Status) { // twelve minutes of drains, and most of five
		if got := taken(status); status.Phase != api.Draining || got != "notify" {
			t.Errorf("%s, taken %q", status.Phase, got)
		}
	})
	s.ExpectAt(2*time.Hour+10*time.Minute, api.Ready, "word 4")
	s.DoneAt(3 * time.Hour)
	status := s.Run(sharedInput(workflowtest.Input{"drain": workflowtest.Input{"escalation": []workflowtest.Input{{"after": "15m", "do": "notify"}}}}))
	s.ExpectCompleted()
	s.ExpectPhases(status, api.Pending, api.Scheduled, api.Cordoning, api.Draining, api.Ready, api.Releasing, api.Completed)
	expectDrains(t, s, upToFirst, upToSecond, upToThird, upToThird) // begun anew by the rung
	var notes []string
	for _, one := range status.Transitions {
		if strings.HasPrefix(one.Message, "drained") {
			notes = append(notes, one.Message)
		}
	}
	if got := strings.Join(notes, "; "); got != "drained as far as its plans have come; drained as far as its plans have come" {
		t.Errorf("the account says %s", got)
	}
}

// Nothing more is drained where the plan that wanted more is gone.
func TestANodeThatStandsIsReadyOnceNothingMoreIsDrained(t *testing.T) {
	for _, anew := range []time.Duration{0, 10 * time.Minute, 21 * time.Minute} {
		s := sharedSite(t)
		s.SignalAt(0, api.SignalTarget, goesOn(1, first))
		s.ExpectAt(15*time.Minute, api.Draining, "word 1")
		if anew > 0 {
			s.ContinueAt(anew)
		}
		s.SignalAt(20*time.Minute, api.SignalTarget, lastTarget(2, first))
		s.ExpectAt(30*time.Minute, api.Ready, "word 2")
		expectReported(t, s, 30*time.Minute, api.Ready, 2, true)
		s.DoneAt(40 * time.Minute)
		s.Run(sharedInput(nil))
		s.ExpectCompleted()
		expectDrains(t, s, upToFirst)
	}
}

// A node that stands is not its requestor's: it is undone like one in the middle of its drain.
func TestANodeThatStandsIsUndone(t *testing.T) {
	s := sharedSite(t)
	s.SignalAt(0, api.SignalTarget, goesOn(1, first))
	asked := s.UpdateAt(10*time.Minute, api.MsgEscalate, api.Escalate{Do: spec.Notify})
	s.CheckAt(15*time.Minute, func(status api.Status) {
		if got := taken(status); got != "notify" || status.Phase != api.Draining {
			t.Errorf("%s, taken %q, %+v", status.Phase, got, asked)
		}
	})
	s.SignalAt(20*time.Minute, api.MsgCancel, api.Cancel{BeforeReady: true})
	if status := s.Run(sharedInput(nil)); status.Phase != api.Cancelled {
		t.Errorf("it ended %s", status.Phase)
	}
	if end := s.Progress[len(s.Progress)-1]; !end.Ended || end.Phase != api.Cancelled {
		t.Errorf("at the end the lockstep got %+v", end)
	}
}

// The drains of tiers that are soon over cost the lockstep one word each.
func TestTheLockstepHearsOnceOfEachTier(t *testing.T) {
	s := sharedSite(t)
	s.Usual["Drain"] = workflowtest.Reply{After: 8 * time.Second}
	s.SignalAt(0, api.SignalTarget, goesOn(1, first))
	var before int
	s.At(10*time.Minute, func() { before = len(s.Progress) })
	s.SignalAt(10*time.Minute, api.SignalTarget, goesOn(2, first, second))
	s.SignalAt(10*time.Minute+10*time.Second, api.SignalTarget, lastTarget(3, first, second, third))
	s.At(10*time.Minute+20*time.Second, func() {
		if reports := s.Progress[before:]; len(reports) != 2 || !reports[0].Drained || reports[0].Revision != 2 || !reports[1].Drained || reports[1].Revision != 3 {
			t.Errorf("it got %+v", reports)
		}
	})
	s.DoneAt(30 * time.Minute)
	s.Run(sharedInput(nil))
	s.ExpectCompleted()
}

// What the maintenance itself says in the middle of a drain may come to the lockstep after the drain's word: it says again that
// the node is drained.
func TestAWordInTheMiddleOfADrainIsNotTheLast(t *testing.T) {
	s := sharedSite(t)
	s.Usual["Drain"] = workflowtest.Reply{After: time.Minute}
	s.SignalAt(0, api.SignalTarget, goesOn(1, first))
	s.SignalAt(30*time.Second, api.SignalTarget, api.NodeTarget{Report: true})
	s.At(5*time.Minute, func() {
		n := len(s.Progress)
		if n < 3 || s.Progress[n-3].Drained || !s.Progress[n-2].Drained || !s.Progress[n-1].Drained {
			t.Errorf("the lockstep got %+v", s.Progress)
		}
	})
	s.SignalAt(10*time.Minute, api.MsgCancel, nil)
	s.Run(sharedInput(nil))
}
