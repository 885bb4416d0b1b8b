package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
)

func TestAnUnhealthyNodeIsRemediatedOnceItsDurationIsOver(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.well(10*time.Minute, "b")
	s.stands(8*time.Minute, func(st api.HealthStatus) {
		if st.Phase != health.PhaseRemediating || st.HealthyNodes != 2 || st.ObservedNodes != 3 || len(st.UnhealthyNodes) != 1 {
			t.Errorf("%+v", st.Status)
		}
	})
	s.stands(11*time.Minute, func(st api.HealthStatus) {
		if st.Phase != health.PhaseEnabled || st.HealthyNodes != 3 {
			t.Errorf("%+v", st.Status)
		}
	})
	s.live(12 * time.Minute)
	s.want([]string{"5m10s begin b at step 1", "5m11s object 1 of b", "10m2s removed b"}, "begin", "object", "removed")
	if !slices.Contains(s.recorded, "DetectedUnhealthy b") || !slices.Contains(s.recorded, "RemediationCreated b") || !slices.Contains(s.recorded, "RemediationRemoved b") {
		t.Errorf("recorded %q", s.recorded)
	}
}

func TestANodeThatRecoversByItselfIsLeftAlone(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.well(5*time.Minute, "b")
	s.live(12 * time.Minute)
	s.want(nil, "begin")
}

func TestNothingBeginsBelowMinHealthy(t *testing.T) {
	s := newSite(t, oneStep(`,"minHealthy":"51%"`), names("n", 7)...)
	s.ill(10*time.Second, 0, names("n", 4)...)
	s.stands(8*time.Minute, func(st api.HealthStatus) {
		if st.Phase != health.PhaseEnabled || len(st.UnhealthyNodes) != 4 || st.Remediating != 0 || st.Blocked == "" {
			t.Errorf("%+v", st.Status)
		}
	})
	s.well(9*time.Minute, "n0003")
	s.live(12 * time.Minute)
	if s.begun != 3 {
		t.Errorf("%d began, want 3 once enough are healthy\n%s", s.begun, strings.Join(s.log, "\n"))
	}
}

func TestAPausedCheckBeginsNothingAndReleases(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c", "d", "e")
	s.ill(10*time.Second, 0, "a")
	s.at(6*time.Minute, func() { s.signal(api.MsgPause, api.HealthMessage{Message: api.Message{By: "ops", Comment: "upgrade"}}) })
	s.ill(6*time.Minute+time.Second, 0, "b")
	s.well(12*time.Minute, "a")
	s.stands(13*time.Minute, func(st api.HealthStatus) {
		if st.Phase != health.PhasePaused || st.ObservedNodes != 5 || st.HealthyNodes != 4 {
			t.Errorf("%+v", st.Status)
		}
	})
	s.at(14*time.Minute, func() { s.signal(api.MsgResume, api.ResumeHealth{Message: api.Message{By: "ops"}}) })
	s.live(16 * time.Minute)
	s.want([]string{"5m10s begin a at step 1", "12m2s removed a", "14m0s begin b at step 1"}, "begin", "removed")
}

func TestRemediationEscalatesThroughTwoTemplatesOfOneKind(t *testing.T) {
	s := newSite(t, twoSteps, "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.well(15*time.Minute, "b")
	s.live(16 * time.Minute)
	s.want([]string{
		"5m10s begin b at step 1", "5m11s object 1 of b", "7m12s object 2 of b", "15m2s removed b",
	}, "begin", "object", "removed")
	r := s.remediations["b"]
	if r.p.Steps[0].TimedOut == nil || r.p.Steps[1].TimedOut == nil {
		t.Errorf("steps %+v", r.p.Steps)
	}
	if !slices.Contains(s.recorded, "NoTemplateLeft b") {
		t.Errorf("recorded %q", s.recorded)
	}
}

func TestANodeWhoseMachineIsNotBelievedHasAnEvent(t *testing.T) {
	const why = "machine fixers/a, which annotation machine.openshift.io/machine of the node names, does not name the node"
	for name, c := range map[string]struct {
		spec, event string
		answer      func(s *site, r *remedied)
		goesOn      func(s *site) bool
	}{
		"and is tried again later": {oneStep(""), "RemediationFailed b", func(s *site, r *remedied) { s.end(r, why) },
			func(s *site) bool { return s.begun == 2 }},
		"and the next step is taken": {twoSteps, "RemediationEscalated b", func(s *site, r *remedied) {
			failed := false
			r.p.Steps = []health.StepState{{Index: 0, StartedAt: s.env.Now(), Succeeded: &failed, Failure: why}}
			s.say(r)
		}, func(s *site) bool { return s.begun == 1 && s.remediations["b"].order.Step == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.spec, "a", "b", "c")
			s.makes = time.Hour
			s.ill(10*time.Second, 0, "b")
			s.at(5*time.Minute+15*time.Second, func() { c.answer(s, s.remediations["b"]) })
			s.live(8 * time.Minute)
			if got := s.messages[c.event]; !strings.Contains(got, why) {
				t.Errorf("the node has the Event %q: %q", c.event, got)
			}
			if !c.goesOn(s) {
				t.Errorf("it does not go on: %q", s.log)
			}
		})
	}
}

func TestAStormCoolsDownBeforeAnythingBegins(t *testing.T) {
	s := newSite(t, oneStep(`,"minHealthy":4,"stormCooldownDuration":"2m"`), names("n", 7)...)
	s.ill(10*time.Second, 0, names("n", 4)...)
	s.well(8*time.Minute, "n0000")
	s.stands(9*time.Minute, func(st api.HealthStatus) {
		if st.Storm == nil || s.begun != 0 {
			t.Errorf("storm %+v, %d began", st.Storm, s.begun)
		}
	})
	s.live(12 * time.Minute)
	if got := s.logged("begin"); len(got) != 3 || !strings.HasPrefix(got[0], "10m0s") {
		t.Errorf("%q", got)
	}
}

func TestARecoveredNodeWaitsForSomebodysWord(t *testing.T) {
	s := newSite(t, oneStep(`,"healthyDelay":"-1s"`), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.well(7*time.Minute, "b")
	s.at(8*time.Minute, func() { s.signal(api.MsgConfirm, api.ConfirmHealthy{Message: api.Message{By: "ann"}, Node: "b"}) })
	s.at(30*time.Minute, func() {
		s.signal(api.MsgConfirm, api.ConfirmHealthy{Message: api.Message{By: "ann", Comment: "it is back"}, Node: "b"})
	})
	s.live(32 * time.Minute)
	s.want([]string{"30m2s removed b"}, "removed")
}

func TestAMissingTemplateDisablesTheCheck(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.change(time.Minute, func() { s.disabled = [2]string{"template n/soft is missing", health.DisabledTemplateNotFound} })
	s.stands(8*time.Minute, func(st api.HealthStatus) {
		if st.Phase != health.PhaseDisabled || s.begun != 0 {
			t.Errorf("%+v", st.Status)
		}
	})
	s.change(9*time.Minute, func() { s.disabled = [2]string{} })
	s.live(10 * time.Minute)
	s.want([]string{"9m0s begin b at step 1"}, "begin")
}

func TestANodeThatIsDeletedAndMadeAgainEndsItsRemediation(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.change(7*time.Minute, func() { n := s.nodes["b"]; n.facts.Gone, n.facts.Left, n.ill = true, true, nil })
	s.change(9*time.Minute, func() { s.add("b").facts.UID = "uid-2" })
	s.ill(10*time.Minute, 0, "b")
	s.live(16 * time.Minute)
	s.want([]string{"5m10s begin b at step 1", "7m2s removed b", "15m0s begin b at step 1"}, "begin", "removed")
}

func TestAResetCheckGoesOnWithWhatRuns(t *testing.T) {
	s := newSite(t, twoSteps, "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	for _, when := range []time.Duration{5*time.Minute + 10500*time.Millisecond, 6 * time.Minute, 11 * time.Minute} {
		s.reset(when)
	}
	s.well(15*time.Minute, "b")
	s.live(16 * time.Minute)
	s.want([]string{"5m10s begin b at step 1", "5m11s object 1 of b", "7m12s object 2 of b", "15m2s removed b"}, "begin", "object", "removed")
	if n := len(s.logged("found")); n != 4 {
		t.Errorf("it was looked %d times what runs", n)
	}
}

func TestACheckThatBeginsAnewFindsWhatRuns(t *testing.T) {
	s := newSite(t, oneStep(`,"minHealthy":2`), "a", "b", "c")
	r := &remedied{done: func() {}, in: api.RemediationInput{Node: "b"}}
	r.p = health.Progress{Node: "b", UID: "uid-b", RunID: runOf("older"), StartedAt: s.start.Add(-time.Hour), Steps: []health.StepState{{
		Index: 0, StartedAt: s.start.Add(-time.Hour), Resource: &health.Resource{Kind: "Reboot", Name: "b"},
	}}}
	s.remediations["b"] = r
	s.nodes["b"].ill[0] = s.start.Add(-2 * time.Hour)
	s.ill(10*time.Second, 0, "c")
	s.well(7*time.Minute, "b")
	s.live(9 * time.Minute)
	s.want([]string{"7m2s removed b", "7m2s begin c at step 1"}, "begin", "removed")
}

func TestARemediationThatEndsWithoutAWordIsTakenUpAgain(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.at(6*time.Minute, func() { r := s.remediations["b"]; r.lost = true; r.done() })
	s.well(15*time.Minute, "b")
	s.live(16 * time.Minute)
	s.want([]string{"5m10s begin b at step 1", "6m0s begin b at step 1", "15m2s removed b"}, "begin", "removed")
	if r := s.remediations["b"]; !r.in.Resume || len(r.in.Left) != 1 {
		t.Errorf("%+v", r.in)
	}
}

func TestContinueAsNewWithEverythingInFlight(t *testing.T) {
	for _, after := range []int{1, 2, 3, 5, 7, 11} {
		s := newSite(t, twoSteps, names("n", 12)...)
		s.continueAfter = after
		s.channels = []notices.Channel{{Name: "ops", RetryFor: period.Duration(10 * time.Minute)}}
		s.ill(10*time.Second, 0, names("n", 5)...)
		s.ill(6*time.Minute, 1, "n0007")
		s.well(8*time.Minute, "n0000", "n0003")
		s.well(15*time.Minute, "n0001", "n0002", "n0004", "n0007")
		s.live(17 * time.Minute)
		if s.begun != 6 || s.running() != 0 || s.runs < 3 {
			t.Errorf("after %d: %d began, %d run, in %d runs\n%s", after, s.begun, s.running(), s.runs, strings.Join(s.log, "\n"))
		}
		states := map[string]int{}
		for _, sent := range s.received {
			state, _, _ := strings.Cut(sent, " ")
			states[state]++
		}
		if states["NodeUnhealthy"] != 6 || states["RemediationBegun"] < 6 || states["RemediationEnded"] != 6 {
			t.Errorf("after %d: the channel was sent %v", after, states)
		}
	}
}

func TestForgedAndLateMessagesChangeNothing(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.at(time.Minute, func() {
		s.signal(api.SignalRemediationProgress, health.Progress{Node: "../x", RunID: runOf("x")})
		s.signal(api.SignalRemediationProgress, health.Progress{Node: "c", RunID: "no run"})
		s.signal("no-such-message", 1)
	})
	s.at(6*time.Minute, func() {
		p := s.remediations["b"].p
		p.RunID, p.Ended = runOf("forged"), true
		s.signal(api.SignalRemediationProgress, p)
	})
	s.stands(7*time.Minute, func(st api.HealthStatus) {
		if st.Remediating != 1 {
			t.Errorf("%+v", st.Status)
		}
	})
	s.live(8 * time.Minute)
	s.want([]string{"5m10s begin b at step 1"}, "begin")
}

func TestManyUnhealthyNodesAreWithinBounds(t *testing.T) {
	all := names("node-with-a-name-that-is-as-long-as-they-are-in-some-clusters-", 300)
	s := newSite(t, oneStep(`,"maxUnhealthy":"100%"`), all...)
	s.continueAfter = 400
	s.ill(10*time.Second, 0, all...)
	s.stands(20*time.Minute, func(st api.HealthStatus) {
		if st.Remediating != 300 {
			t.Errorf("%d are remediated", st.Remediating)
		}
	})
	s.well(25*time.Minute, all...)
	s.live(40 * time.Minute)
	if s.begun != 300 || s.running() != 0 {
		t.Errorf("%d began, %d run", s.begun, s.running())
	}
	if len(s.packed) > 512<<10 {
		t.Errorf("%d bytes are carried", len(s.packed))
	}
}

func TestEditsThatWouldLeaveRemediationsBehindAreRefused(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	configure := func(when time.Duration, id, spec string) {
		s.at(when, func() {
			s.signal(api.MsgConfigure, api.ConfigureHealth{Message: api.Message{ID: id, By: "ann"}, Spec: []byte(spec)})
		})
	}
	configure(6*time.Minute, "template", strings.Replace(oneStep(""), "soft", "hard", 1))
	configure(7*time.Minute, "threshold", oneStep(`,"minHealthy":1`))
	configure(8*time.Minute, "bad", `{"selector":{}}`)
	s.at(9*time.Minute, func() { s.signal(api.MsgRemove, api.HealthMessage{Message: api.Message{ID: "early"}}) })
	s.well(10*time.Minute, "b")
	s.at(11*time.Minute, func() { s.signal(api.MsgRemove, api.HealthMessage{Message: api.Message{ID: "late"}}) })
	s.live(12 * time.Minute)
	if !s.ended {
		t.Errorf("it did not end: %v", s.err)
	}
	want := map[string]api.Outcome{"template": api.Ignored, "threshold": api.Applied, "bad": api.Ignored, "early": api.Ignored, "late": api.Applied}
	for _, m := range s.status().Messages {
		if m.Outcome != want[m.ID] {
			t.Errorf("%s: %s (%s)", m.ID, m.Outcome, m.Effect)
		}
	}
	if n := len(s.status().Messages); n != len(want) {
		t.Errorf("%d messages", n)
	}
	if needed := s.status().Spec.Required(3); needed != 1 {
		t.Errorf("of three nodes %d have to be healthy: the new threshold does not count", needed)
	}
}

// A worker that dies takes no report along: the next watch begins with what the check knows, in this run and in the next.
func TestAWatchBeginsWithWhatTheCheckKnows(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.at(time.Minute, func() {
		s.env.SetContinueAsNewSuggested(true)
		s.signal("no-such-message", 1)
	})
	s.live(2 * time.Minute)
	if s.runs != 2 || len(s.watches) != 4 {
		t.Fatalf("%d runs, watches %+v", s.runs, s.watches)
	}
	for i, known := range []int{0, 0, 1, 1} {
		if w := s.watches[i]; w.Known.All != (i > 0) || len(w.Known.Nodes) != known || w.Check != "workers" || w.RunID != s.run || w.CreatedAt.IsZero() {
			t.Errorf("watch %d: %+v", i, w)
		}
	}
}

// While many remediations begin and end the watch is not begun anew for each: it would rest, and nobody would watch.
func TestRemediationsLeaveTheWatchAlone(t *testing.T) {
	s := newSite(t, oneStep(`,"maxUnhealthy":"100%"`), names("n", 30)...)
	for i, name := range names("n", 20) {
		s.ill(10*time.Second+time.Duration(i)*10*time.Second, 0, name)
	}
	began := 0
	s.at(5*time.Minute, func() { began = len(s.watches) })
	s.at(9*time.Minute, func() {
		if got := len(s.watches); got != began || s.begun != 20 {
			t.Errorf("%d watches were begun while %d remediations began", got-began, s.begun)
		}
	})
	s.well(10*time.Minute, names("n", 20)...)
	s.live(12 * time.Minute)
	if s.running() != 0 {
		t.Errorf("%d remediations go on", s.running())
	}
}

func TestAnotherSelectorHasEverythingSeenAnew(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.at(time.Minute, func() {
		spec := strings.Replace(oneStep(""), "worker", "storage", 1)
		s.signal(api.MsgConfigure, api.ConfigureHealth{Message: api.Message{ID: "1", By: "ann"}, Spec: []byte(spec)})
		s.nodes = map[string]*seenNode{}
		s.add("d").ill[0] = s.start.Add(-time.Hour)
		s.add("e")
		s.add("f")
	})
	s.live(3 * time.Minute)
	s.want([]string{"1m0s begin d at step 1"}, "begin")
	if last := s.watches[len(s.watches)-1]; last.Intent.Selector != "role=storage" || len(last.Known.Nodes) != 1 {
		t.Errorf("%+v", last)
	}
}

func TestWhoAskedForACheckStays(t *testing.T) {
	s := newSite(t, oneStep(`,"object":{"resource":"healthchecks.drydock.dev","name":"workers","uid":"uid-1"}`), "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.at(time.Minute, func() {
		s.signal(api.MsgConfigure, api.ConfigureHealth{Message: api.Message{ID: "1", By: "ann"}, Spec: []byte(oneStep(`,"healthyDelay":"1m"`))})
	})
	s.stands(2*time.Minute, func(st api.HealthStatus) {
		if o := st.Spec.Object; st.Spec.HealthyDelay == 0 || o == nil || o.UID != "uid-1" {
			t.Errorf("it was asked for by %+v: %+v", o, st.Spec)
		}
	})
	s.live(3 * time.Minute)
	if s.calls < 3 || s.calls > 20 {
		t.Errorf("the bridge was called %d times", s.calls)
	}
}

func TestAnOlderCheckWithTheSameNodesIsNamed(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.change(time.Minute, func() { s.overlap = health.Overlap{Check: "elder", Node: "b"} })
	s.ill(2*time.Minute, 0, "b")
	s.makes = time.Hour
	s.at(7*time.Minute+30*time.Second, func() { // the elder has the node's lease
		r := s.remediations["b"]
		r.p.LeaseHeldBy = "NodeHealthCheck-elder"
		s.end(r, "")
	})
	s.stands(8*time.Minute, func(st api.HealthStatus) {
		if st.Phase != health.PhaseEnabled || !strings.Contains(st.Overlap, "elder") || !strings.Contains(st.UnhealthyNodes[0].Blocked, "held by NodeHealthCheck-elder") {
			t.Errorf("%+v", st.Status)
		}
		announced := slices.ContainsFunc(st.Events, func(e api.HealthEvent) bool {
			return e.Reason == health.EventOverlap && strings.Contains(e.Text, "node b")
		})
		if !announced || !strings.Contains(s.check.Page(s.env.Now()).Details, "elder") {
			t.Errorf("events %+v, page %q", st.Events, s.check.Page(s.env.Now()).Details)
		}
	})
	s.live(9 * time.Minute)
	s.want([]string{"7m0s begin b at step 1", "8m30s begin b at step 1"}, "begin") // it tries again
}

func TestARemediationThatIsOverBeforeItBeginsDoesNotBegin(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	spec, err := health.Decode([]byte(s.spec))
	if err != nil {
		t.Fatal(err)
	}
	left := health.Order{Node: "b", Revision: 2, Healthy: true, Why: "the check does not select the node any more"}
	s.packed, err = api.Pack(check{
		Spec: spec, Known: true, Queue: []health.Begin{{Node: "b", UID: "uid-b"}}, Prepared: &settings.Prepared{},
		Health: health.State{Nodes: health.Nodes{{Facts: health.Facts{Name: "b", UID: "uid-b"}, Remediation: &health.Running{BeganAt: s.start, Order: left}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.live(5 * time.Minute)
	if r := s.remediations["b"]; r != nil || len(s.check.Queue) > 0 || s.check.Health.Remediating() {
		t.Errorf("it was begun, or is to begin: %+v\n%s", r, strings.Join(s.log, "\n"))
	}
}

func TestAPauseWithdrawsWhatWasDecidedAndHasNotBegun(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	spec, err := health.Decode([]byte(s.spec))
	if err != nil {
		t.Fatal(err)
	}
	s.nodes["b"].ill[0] = s.start.Add(-time.Hour)
	s.packed, err = api.Pack(check{
		Spec: spec, Known: true, Queue: []health.Begin{{Node: "b", UID: "uid-b"}}, Prepared: &settings.Prepared{},
		Health: health.State{
			Pauses: []health.Pause{{By: "jane", At: s.start}},
			Seen:   health.Seen{Known: true, Groups: []health.GroupCount{{Nodes: 3, Matching: 1}}},
			Nodes: health.Nodes{{
				Facts:       health.Facts{Name: "b", UID: "uid-b"},
				Remediation: &health.Running{BeganAt: s.start, Order: health.Order{Node: "b", Revision: 1}},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.live(5 * time.Minute)
	if got := s.logged("begin"); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if status := s.status(); status.Remediating != 0 || status.Unhealthy != 1 {
		t.Errorf("%d under remediation, %d unhealthy", status.Remediating, status.Unhealthy)
	}
}

func TestUnreportedObjectsOfALostRemediationAreSearched(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.makes = time.Hour
	s.ill(10*time.Second, 0, "b")
	s.at(6*time.Minute, func() { r := s.remediations["b"]; r.lost = true; r.done() })
	s.well(15*time.Minute, "b")
	s.live(16 * time.Minute)
	s.want([]string{"5m10s begin b at step 1", "6m0s begin b at step 1", "15m2s removed b"}, "begin", "removed")
	if r := s.remediations["b"]; !r.in.Resume || len(r.in.Left) != 0 {
		t.Errorf("%+v", r.in)
	}
}

func TestARemediationThatGoesOnIsTakenUpWhateverWasSaid(t *testing.T) {
	s := newSite(t, twoSteps, "a", "b", "c")
	s.ill(10*time.Second, 0, "b")
	s.at(11*time.Minute, func() { // it has gone through both steps
		p := s.remediations["b"].p
		p.Ended = true
		s.signal(api.SignalRemediationProgress, p)
	})
	s.well(25*time.Minute, "b")
	s.live(40 * time.Minute)
	s.want([]string{"5m10s begin b at step 1"}, "begin")
	if removed := s.logged("removed"); len(removed) != 1 {
		t.Errorf("removed %q\n%s", removed, strings.Join(s.log, "\n"))
	}
}

// A check that lacks a permission says so at once, with what grants it, and goes on once it has it.
func TestAMissingPermissionIsShownAtOnce(t *testing.T) {
	const why = "listing the leases of nodes: forbidden (grant it with rbac-health.yaml)"
	s := newSite(t, oneStep(""), "a", "b")
	s.denied = temporal.NewNonRetryableApplicationError(why, api.ErrorMissingPermission, nil)
	s.stands(5*time.Second, func(status api.HealthStatus) {
		if len(status.Troubles) != 1 || status.Troubles[0].Why != why || status.Troubles[0].NextTry.IsZero() {
			t.Errorf("%+v", status.Troubles)
		}
		value, err := s.env.QueryWorkflow(api.QueryExplain, api.ExplainRequest{Node: "a"})
		var explained api.HealthExplanation
		if err == nil {
			err = value.Get(&explained)
		}
		if err != nil || !slices.ContainsFunc(explained.Blocks, func(b string) bool { return strings.Contains(b, why) }) {
			t.Errorf("%v, %v", explained, err)
		}
	})
	s.at(time.Minute, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.denied = nil
	})
	s.stands(5*time.Minute, func(status api.HealthStatus) {
		if len(status.Troubles) != 0 || status.ObservedNodes != 2 {
			t.Errorf("%+v", status)
		}
	})
	s.live(10 * time.Minute)
}

// What the watch of the nodes cannot do a check shows as its own trouble.
func TestTheTroublesOfTheWatchAreShown(t *testing.T) {
	const why = "may not watch nodes (grant it with rbac.yaml)"
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.blind = temporal.NewNonRetryableApplicationError(why, api.ErrorMissingPermission, nil)
	s.nodes["b"].ill[0] = s.start.Add(-time.Hour)
	s.stands(5*time.Second, func(st api.HealthStatus) {
		if len(st.Troubles) != 1 || st.Troubles[0].Why != why || !strings.Contains(st.WaitingFor, "the watch of the nodes") {
			t.Errorf("%+v, waits for %q", st.Troubles, st.WaitingFor)
		}
	})
	s.at(time.Minute, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.blind, s.unseen = nil, "may not list clusterversions"
	})
	s.stands(3*time.Minute, func(st api.HealthStatus) {
		if len(st.Troubles) != 1 || st.Troubles[0].Why != "may not list clusterversions" || st.Troubles[0].NextTry.IsZero() || st.WaitingFor != "" || s.begun != 1 {
			t.Errorf("%+v, waits for %q, %d begun", st.Troubles, st.WaitingFor, s.begun)
		}
	})
	s.change(4*time.Minute, func() { s.unseen = "" })
	s.stands(5*time.Minute, func(st api.HealthStatus) {
		if len(st.Troubles) != 0 {
			t.Errorf("%+v", st.Troubles)
		}
	})
	s.live(6 * time.Minute)
}
